"""What a filter means: a predicate over stored items. Facts: table 6.

    Compare   two values of one class (numbers of all types, strings, …), else false; `ne` is true
              for Cosmos DB and false for Storage where the property is missing or of another class
    Not       of that answer: there is no unknown

`conditions.py` lets the index find candidates; where it can't say all, this predicate decides.
"""

from __future__ import annotations

import base64
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, assert_never

from armillary.api.table.filter import grammar
from armillary.api.table.filter.grammar import parse_filter
from armillary.api.table.wire.etags import ticks_of
from armillary.encoding.edm import values as edm
from armillary.encoding.edm.values import PARTITION_KEY, ROW_KEY, TYPE, VALUE, stored_name

Item: TypeAlias = Mapping[str, Any]
Predicate: TypeAlias = Callable[[Item], bool]
#: Class and a value that compares with others of its class; None: there is none.
Comparable: TypeAlias = tuple[str, Any] | None

COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": operator.eq,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}


def parse_table_filter(text: str | None) -> Callable[[str], bool]:
    """A filter over names of tables."""
    if not text:
        return lambda name: True
    holds = predicate(parse_filter(text))
    return lambda name: holds({"TableName": edm.tagged(edm.STRING, name)})


def predicate(node: grammar.Filter, *, storage: bool = False) -> Predicate:
    match node:
        case grammar.And(terms):
            parts = [predicate(one, storage=storage) for one in terms]
            return lambda item: all(holds(item) for holds in parts)
        case grammar.Or(terms):
            parts = [predicate(one, storage=storage) for one in terms]
            return lambda item: any(holds(item) for holds in parts)
        case grammar.Not(term):
            inner = predicate(term, storage=storage)
            return lambda item: not inner(item)
        case grammar.Truth(name):
            value = _reader(name)
            return lambda item: value(item) == ("boolean", True)
        case grammar.Compare(sign, left, right):
            return _comparison(sign, _reader(left), _reader(right), storage=storage)
        case _:
            assert_never(node)


def _comparison(
    sign: str,
    left: Callable[[Item], Comparable],
    right: Callable[[Item], Comparable],
    *,
    storage: bool,
) -> Predicate:
    if sign == "ne":

        def differs(item: Item) -> bool:
            one, other = left(item), right(item)
            if one is None or other is None or one[0] != other[0]:
                return not storage
            return bool(one[1] != other[1])

        return differs
    compare = COMPARISONS[sign]

    def holds(item: Item) -> bool:
        one, other = left(item), right(item)
        if one is None or other is None or one[0] != other[0]:
            return False
        return compare(one[1], other[1])

    return holds


def _reader(operand: grammar.Property | grammar.Literal) -> Callable[[Item], Comparable]:
    if isinstance(operand, grammar.Literal):
        value = comparable(operand.tagged)
        return lambda item: value
    match operand.name:
        case "PartitionKey":
            return lambda item: _text(item.get(PARTITION_KEY))
        case "RowKey":
            return lambda item: _text(item.get(ROW_KEY))
        case "Timestamp":
            return lambda item: ("moment", ticks_of(item["_etag"]))
    name = stored_name(operand.name)
    return lambda item: comparable(item.get(name))


def _text(value: Any) -> Comparable:
    return ("string", value.encode("utf-16-be", "surrogatepass")) if type(value) is str else None


def comparable(value: Any) -> Comparable:
    if not edm.is_tagged(value):
        return None
    kind, data = value[TYPE], value[VALUE]
    try:
        if kind == edm.STRING:
            return _text(data)
        if kind == edm.INT32 or kind == edm.INT64:
            return "number", int(data)
        if kind == edm.DOUBLE:
            return "number", edm.double_of(data)
        if kind == edm.BOOLEAN:
            return "boolean", bool(data)
        if kind == edm.DATETIME:
            return "moment", int(data)
        if kind == edm.GUID:
            return "guid", str(data)
        if kind == edm.BINARY:
            return "binary", base64.b64decode(data)
    except (ValueError, KeyError, TypeError):  # what another API wrote in this form
        pass
    return None
