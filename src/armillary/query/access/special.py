"""Filters that spatial and full-text indexes can help with: calls in, lookups out.

    ST_DISTANCE(c.at, {…}) < 500     Near(/at, boxes within 500 m of the shape)
    ST_WITHIN(c.at, {…})             Near(/at, boxes around the shape)
    FullTextContains(c.text, "red bicycle")   both tokens; whether side by side, the item says

A box says too much, so the item is always looked at again; one token says exactly enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from armillary.encoding.geo.boxes import boxes_of, widened
from armillary.encoding.geo.cells import Box
from armillary.encoding.terms import is_exact, string_term
from armillary.encoding.text_tokens import tokens
from armillary.query.functions.full_text import wanted_term
from armillary.store.index.kinds.full_text import TOKEN, TOKEN_CUT_BYTES
from armillary.store.index.paths import Path
from armillary.store.rows.layout import after
from armillary.values import JSON

METRES_MAX: Final = 5_000_000  # farther is nearly everywhere
SPATIAL_TESTS: Final = ("STWITHIN", "STINTERSECTS")
TEXT_TESTS: Final = ("FULLTEXTCONTAINS", "FULLTEXTCONTAINSALL", "FULLTEXTCONTAINSANY")

Range = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Near:
    """Shapes at a path that may touch some boxes. Which cells that are, the index says."""

    path: Path
    boxes: tuple[Box, ...]
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """Ranges of one term's tokens: all of them are needed. Exact when there is one, not cut."""

    ranges: tuple[Range, ...]
    exact: bool


def near(path: Path, shape: JSON, distance: float, geography: bool) -> Near | None:
    """None when the index can't help: no shape, or too far around it."""
    found = boxes_of(shape, geometry=not geography)
    if not found or (geography and not distance <= METRES_MAX):
        return None
    if distance > 0:
        found = widened(found, distance, geometry=not geography)
    return Near(path, tuple(found))


def words(term: JSON, language: str) -> Words | None:
    """The tokens of a term; None when other words may do as well, or when it is no term."""
    text, distance = wanted_term(term)
    if text is None or distance:
        return None
    found = tokens(text, language)
    return Words(
        tuple(map(_token_range, dict.fromkeys(found))),
        len(found) == 1 and is_exact(found[0], TOKEN_CUT_BYTES),
    )


def _token_range(token: str) -> Range:
    start = TOKEN + string_term(token, TOKEN_CUT_BYTES)
    return start, after(start)


def every(terms: Sequence[JSON], language: str) -> list[Words] | None:
    found = [words(term, language) for term in terms]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None
