"""The JSON value model: the terms, comparisons and keys of NoSQL and Gremlin containers.

Everything is as in `terms.py`, `values.py` and `partition_key.py`; this gives it the interface of
`models.py`. Hot loops (index entries, compiled filters) have these functions inlined; tests hold
them to these.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from armillary.encoding import terms
from armillary.encoding.models import Range, ValueModel, Whole
from armillary.encoding.partition_key import Component, scalar_key
from armillary.encoding.terms import STRING_CODE, Partial
from armillary.limits import TERM_CUT_BYTES
from armillary.values import JSON, comparable, identity, order_key, same

_TYPES: Final[dict[type, Range]] = {
    type(None): terms.type_range(terms.NULL_CODE),
    bool: (bytes((terms.FALSE_CODE,)), bytes((terms.TRUE_CODE + 1,))),
    int: terms.type_range(terms.NUMBER_CODE),
    float: terms.type_range(terms.NUMBER_CODE),
    str: terms.type_range(terms.STRING_CODE),
}


class JsonModel:
    name = "json"
    inner_names: frozenset[str] = frozenset()
    missing_first = True
    everything: Range = (bytes((terms.NULL_CODE,)), bytes((terms.OBJECT_CODE + 1,)))

    def is_scalar(self, value: JSON) -> bool:
        return type(value) is not dict and type(value) is not list

    def term(self, value: JSON, cut: int = TERM_CUT_BYTES) -> bytes:
        return terms.term(value, cut)

    def is_exact(self, value: JSON, cut: int = TERM_CUT_BYTES) -> bool:
        return terms.is_exact(value, cut)

    def split_term(self, data: bytes, offset: int = 0) -> tuple[JSON | Whole | Partial, int]:
        return terms.decode_term(data, offset)

    def is_term(self, data: bytes) -> bool:
        code = data[0]
        if code == terms.NUMBER_CODE:
            return len(data) == 1 + 8
        if code != STRING_CODE:
            return len(data) == 1
        cut = data.find(terms.CUT_END)  # 00 stands before nothing else but FF and ends
        if cut < 0:
            return data.endswith(terms.WHOLE_END)
        return len(data) == cut + len(terms.CUT_END) + terms.DIGEST_BYTES

    def recut(self, term: bytes, cut: int) -> tuple[bytes, bool] | None:
        value, _ = terms.decode_term(term)
        if term[0] != STRING_CODE:
            return term, not isinstance(value, Partial)
        if isinstance(value, Partial):
            return None
        return terms.string_term(value, cut), terms.is_exact(value, cut)

    def shared_bytes(self, bound: bytes, cut: int) -> int:
        return 1 + cut if bound[0] == STRING_CODE else len(bound)

    def neighbours(self, value: JSON) -> Range:
        if type(value) is list or type(value) is dict:
            return terms.type_range(terms.term(value)[0])
        if type(value) is str and not terms.is_exact(value):
            return terms.string_prefix_range(value)
        found = terms.term(value)
        stripped = found.rstrip(b"\xff")
        return found, stripped[:-1] + bytes((stripped[-1] + 1,))

    def comparable(self, value: JSON) -> Range | None:
        return _TYPES.get(type(value))

    def same(self, left: JSON, right: JSON) -> bool:
        return same(left, right)

    def compare(self, left: JSON, right: JSON) -> int | None:
        pair = comparable(left, right)
        return None if pair is None else (pair[0] > pair[1]) - (pair[0] < pair[1])

    def order_key(self, value: JSON) -> Any:
        return order_key(value)

    def identity(self, value: JSON) -> Hashable:
        return identity(value)

    def full_term(self, value: JSON) -> bytes:
        """Members of an object in one order, whatever the order of the document."""
        if isinstance(value, str):
            return terms.string_term(value, len(value) * 6)
        if isinstance(value, dict):
            members = sorted((terms.string_term(name, len(name) * 6), name) for name in value)
            inner = b"".join(text + self.full_term(value[name]) for text, name in members)
            return terms.OBJECT_TERM + inner + b"\x00"
        if isinstance(value, list):
            return terms.ARRAY_TERM + b"".join(map(self.full_term, value)) + b"\x00"
        if isinstance(value, int | float) and not isinstance(value, bool):
            # The digits tell apart the integers that share a double.
            whole = b"%d\x00" % int(value) if int(value) == value else b"\x00"
            return terms.term(value) + whole
        return terms.term(value)

    def key(self, value: JSON) -> Component:
        return scalar_key(value)

    def check_body(self, document: dict[str, JSON]) -> None:
        """Any JSON object."""


JSON_MODEL: Final[ValueModel] = JsonModel()
