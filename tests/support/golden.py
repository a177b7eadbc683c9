"""Golden files: one JSON object per line, read by anyone, checked by a test."""

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent.parent / "golden"


def load(name: str) -> list[dict[str, Any]]:
    lines = (GOLDEN / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line]


def unmark(marked: str) -> tuple[str, list[tuple[int, int]]]:
    """Text with «marked» places → the plain text and the places, by their start."""
    text: list[str] = []
    opened: list[int] = []
    places: list[tuple[int, int]] = []
    for character in marked:
        if character == "«":
            opened.append(len(text))
        elif character == "»":
            places.append((opened.pop(), len(text)))
        else:
            text.append(character)
    assert not opened, f"a mark is not closed: {marked}"
    return "".join(text), sorted(places)
