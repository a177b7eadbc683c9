"""Filters and statistics from a full-text index.

    FullTextContains(c.text, "red bicycle")   both tokens; whether side by side, the item says

One token says exactly enough. And what BM25 has to know of all items (nosql-rest 5.6):

    SUM(_FullTextWordCount(c.text))                 the row of each text with its number of words
    COUNTIF(FullTextContains(c.text, "red"))        the rows of one token
    COUNTIF(FullTextContains(c.text, "red car"))    items with both tokens are loaded, to look

`_measure` says of an aggregate whether it is one of these (not for a term that other words may
satisfy too); the index does not answer for one logical partition, whose few items are quicker to
read than all of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from armillary.encoding.documents import BODY_BYTES, EPK_AT, EPK_LENGTH_AT
from armillary.encoding.paths import extract
from armillary.encoding.terms import is_exact, string_term
from armillary.encoding.text_tokens import tokens
from armillary.query.access.coverage import other_index
from armillary.query.access.kinds.base import AccessKind, Reading
from armillary.query.access.lookups import Access, Both, Lookup, Places, path_at
from armillary.query.access.rids import RID_BYTES
from armillary.query.access.term_ranges import Range
from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Scope, constant
from armillary.query.functions import Context
from armillary.query.functions.full_text import contains, wanted_term
from armillary.store.index.kinds.full_text import (
    COUNT,
    TOKEN,
    TOKEN_CUT_BYTES,
    WORDS,
    TextIndex,
)
from armillary.store.index.paths import ARRAY, Path, path_hash
from armillary.store.rows import layout
from armillary.store.rows.layout import after
from armillary.values import JSON

if TYPE_CHECKING:
    from armillary.query.run.items import StoreView

ANY: Final = "FULLTEXTCONTAINSANY"


@dataclass(frozen=True, slots=True)
class Words:
    """Ranges of one term's tokens: all of them are needed. Exact when there is one, not cut."""

    ranges: tuple[Range, ...]
    exact: bool


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


def _every(terms: Sequence[JSON], language: str) -> list[Words] | None:
    found = [words(term, language) for term in terms]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def _contains(reading: Reading, call: nodes.Call, places: Places) -> Access | None:
    path, values = path_at(call.args[0], places), reading.constants(call.args[1:])
    if not path or ARRAY in path or values is None:
        return None
    names = tuple(each for each in path if isinstance(each, str))
    found = _every(values, reading.scope.context.at(names).language)
    if found is None:
        return None
    parts = [_access(path, each) for each in found]
    if len(parts) == 1 or call.function == ANY:
        return reading.either(parts)
    return Both(tuple(parts))


def _access(path: Path, found: Words) -> Access:
    """A phrase needs all of its words; a term without any is never there."""
    if not found.ranges:
        return Lookup(path, (), True, layout.FX, term_at=len(TOKEN))
    lookups = [
        Lookup(path, (each,), found.exact, layout.FX, term_at=len(TOKEN)) for each in found.ranges
    ]
    return lookups[0] if len(lookups) == 1 else Both(tuple(lookups))


# --- statistics -----------------------------------------------------------------------------------

_ASKED: Final = frozenset({("SUM", "_FULLTEXTWORDCOUNT"), ("COUNTIF", "FULLTEXTCONTAINS")})


@dataclass(frozen=True, slots=True)
class TextPart:
    """What is asked of one path: how many items hold `term`, or (no term) how many words it has."""

    path: tuple[str, ...]
    context: Context
    term: JSON = None
    is_total: bool = False

    def measured(self, view: StoreView) -> tuple[int, int] | None:
        """(the number, of how many items it is the sum)."""
        index = None if view.piece.key is not None else other_index(view, layout.FX, self.path)
        if not isinstance(index, TextIndex) or index.language != self.context.language:
            return None
        if self.is_total:
            return _words(view, self.path)
        found = _holders(view, self)
        return found, found


def _measure(call: nodes.Call, alias: str, scope: Scope) -> TextPart | None:
    test = call.args[0]
    if not isinstance(test, nodes.Call) or (call.function, test.function) not in _ASKED:
        return None
    path = nodes.property_path(test.args[0])
    if path is None or path[0] != alias or len(path) == 1:
        return None
    context = scope.context.at(path[1:])
    if call.function == "SUM":
        return TextPart(path[1:], context, is_total=True)
    if any(
        isinstance(node, nodes.Identifier | nodes.Subquery) for node in nodes.walk(test.args[1])
    ):
        return None
    known, term = constant(test.args[1], scope)
    return TextPart(path[1:], context, term) if known and not wanted_term(term)[1] else None


def _words(view: StoreView, path: tuple[str, ...]) -> tuple[int, int]:
    prefix = layout.FX + path_hash(path) + WORDS
    total = texts = 0
    for _, value in view.entries(prefix, layout.after(prefix)):
        if view.is_inside(value[COUNT.size :]):
            total += COUNT.unpack_from(value)[0]
            texts += 1
    return total, texts


def _holders(view: StoreView, part: TextPart) -> int:
    wanted = words(part.term, part.context.language)
    if wanted is None or not wanted.ranges:
        return 0  # no term, or nothing but stop words: the test is never true
    found = set.intersection(*(_rids(view, part.path, each) for each in wanted.ranges))
    return len(found) if wanted.exact else _looked_at(view, part, found)


def _rids(view: StoreView, path: tuple[str, ...], found: Range) -> set[bytes]:
    prefix = layout.FX + path_hash(path)
    rows = view.entries(prefix + found[0], prefix + found[1])
    return {key[-RID_BYTES:] for key, _ in view.inside(rows)}


def _looked_at(view: StoreView, part: TextPart, rids: set[bytes]) -> int:
    """Whether the words stand side by side, only the items know."""
    count = 0
    for _, value in view.load(sorted(rids)):
        if view.is_visible(value):
            view.metrics.retrieved_items += 1
            view.metrics.retrieved_bytes += BODY_BYTES.unpack_from(value)[0]
            item = orjson.loads(value[EPK_AT + value[EPK_LENGTH_AT] :])
            count += contains(part.context, extract(item, part.path), part.term) is True
    return count


KIND: Final = AccessKind(
    prefix=layout.FX,
    calls=dict.fromkeys(("FULLTEXTCONTAINS", "FULLTEXTCONTAINSALL", ANY), _contains),
    measure=_measure,
)
