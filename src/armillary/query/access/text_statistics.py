"""Statistics of full text from its index: what BM25 has to know of all items (nosql-rest 5.6).

    SUM(_FullTextWordCount(c.text))                 the row of each text with its number of words
    COUNTIF(FullTextContains(c.text, "red"))        the rows of one token
    COUNTIF(FullTextContains(c.text, "red car"))    items with both tokens are loaded, to look

`text_part` says of an aggregate whether it is one of these (not for a term that other words may
satisfy too); `measured` gives None where there is no such index, and for one logical partition,
whose few items are quicker to read than all rows of the index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import orjson

from armillary.encoding.documents import BODY_BYTES, EPK_AT, EPK_LENGTH_AT
from armillary.encoding.paths import extract
from armillary.query.access.choice import other_index
from armillary.query.access.rids import RID_BYTES
from armillary.query.access.special import Range, words
from armillary.query.expr import nodes
from armillary.query.expr.evaluate import Scope, constant
from armillary.query.functions import Context
from armillary.query.functions.full_text import contains, wanted_term
from armillary.query.run.items import StoreView
from armillary.store.index.kinds.full_text import COUNT, WORDS, TextIndex
from armillary.store.index.paths import path_hash
from armillary.store.rows import layout
from armillary.values import JSON

_ASKED: Final = frozenset({("SUM", "_FULLTEXTWORDCOUNT"), ("COUNTIF", "FULLTEXTCONTAINS")})


@dataclass(frozen=True, slots=True)
class TextPart:
    """What is asked of one path: how many items hold `term`, or (no term) how many words it has."""

    path: tuple[str, ...]
    context: Context
    term: JSON = None
    is_total: bool = False


def text_part(call: nodes.Call, alias: str, scope: Scope) -> TextPart | None:
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


def measured(view: StoreView, part: TextPart) -> tuple[int, int] | None:
    """(the number, of how many items it is the sum)."""
    index = None if view.piece.key is not None else other_index(view, layout.FX, part.path)
    if not isinstance(index, TextIndex) or index.language != part.context.language:
        return None
    if part.is_total:
        return _words(view, part.path)
    found = _holders(view, part)
    return found, found


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
    return {key[-RID_BYTES:] for key, epk in rows if view.is_inside(epk)}


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
