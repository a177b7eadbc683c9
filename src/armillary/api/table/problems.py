"""What is wrong with a request, in the words of `api/errors.py: TABLE_PROBLEMS`, which has the
status, the code and the text of each."""

from __future__ import annotations

from typing import Any

from armillary.errors import BadInput


class Refused(BadInput):
    """A request that the Table protocol refuses; `problem` is a row of `TABLE_PROBLEMS`."""

    def __init__(self, message: str | None = None, **facts: Any) -> None:
        super().__init__(message or f"The request is refused: {facts.get('problem')}.", **facts)


def refused(problem: str, detail: object = "", message: str | None = None) -> Refused:
    return Refused(message, problem=problem, detail=detail)
