"""Why a test of a public suite fails, where it is known: suite → (part of its name, cause)."""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = "cause not known"

CAUSES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "javascript": (
        (
            "DISTINCT ORDER BY queries with continuation",
            "the SDK drops repeated values itself, and its continuation forgets the last one when "
            "a page ends inside what it has buffered",
        ),
    ),
    "go": (),
    "python": (
        (
            "test_query_response_headers_concurrent",
            "a race inside the SDK (OrderedDict mutated during iteration)",
        ),
    ),
    "rust": (),
}


def cause_of(suite: str, test: str) -> str:
    found = (cause for part, cause in CAUSES.get(suite, ()) if part in test)
    return next(found, UNKNOWN)
