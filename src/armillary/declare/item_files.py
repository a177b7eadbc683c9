"""Items from a file: a JSON array, or one JSON object per line; `.gz` of either.

A broken line is an error with its number: what is put in by a file should be all of it.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from armillary.errors import BadInput


def read_items(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            first = file.read(1)
            while first.isspace():
                first = file.read(1)
            if first == b"[":
                yield from _array(path, first + file.read())
                return
            file.seek(0)
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _item(f"{path}:{number}", line)
    except (OSError, EOFError) as error:
        raise BadInput(f"The file {path} can't be read: {error}.") from error


def _array(path: Path, text: bytes) -> Iterator[dict[str, Any]]:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{path}:{error.lineno}: {error.msg}.") from error
    for number, one in enumerate(found, 1):
        yield _checked(f"{path}, item {number}", one)


def _item(place: str, line: bytes) -> dict[str, Any]:
    try:
        return _checked(place, orjson.loads(line))
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{place}: {error.msg}.") from error


def _checked(place: str, one: Any) -> dict[str, Any]:
    if not isinstance(one, dict):
        raise BadInput(f"{place}: an item is a JSON object.")
    return one
