"""Reads `tests/golden/functions.txt`: one call of a system function per line, and its result."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armillary.values import UNDEFINED

PATH = Path(__file__).parent.parent / "golden" / "functions.txt"


@dataclass(frozen=True, slots=True)
class FunctionCase:
    line: int
    call: str
    result: Any
    unverified: bool

    def __str__(self) -> str:
        return f"{self.line}: {self.call}"


def function_cases() -> list[FunctionCase]:
    cases: list[FunctionCase] = []
    for number, text in enumerate(PATH.read_text("utf-8").splitlines(), 1):
        if not text or text.startswith("#"):
            continue
        line = text.removesuffix("  # unverified")
        call, _, result = line.rpartition(" -> ")
        assert call, f"line {number} has no result"
        expected = UNDEFINED if result == "undefined" else json.loads(result)
        cases.append(FunctionCase(number, call, expected, line != text))
    return cases
