"""What is wrong with a request, in the words of `api/errors.py: TABLE_PROBLEMS`, which has the
status, the code and the text of each."""

from __future__ import annotations

from armillary.errors import BadInput


def refused(
    problem: str, detail: object = "", message: str | None = None, hint: str = ""
) -> BadInput:
    """The error to raise. `message`: where the row leaves the text to us, and for logs. `hint`: a
    sentence behind the service's own, which often does not say what is wrong."""
    text = message or hint or f"The request is refused: {problem}."
    return BadInput(text, problem=problem, detail=detail, hint=hint)
