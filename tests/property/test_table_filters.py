"""Filters of tables: what the plan finds, with its indexes and partitions, is what a naive reading
of the filter finds by looking at every entity."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.table import COSMOS, STORAGE, TableApi, table_api

GUIDS = ["c9da6455-213d-42c9-9a79-3e9149a57833", "00000000-0000-0000-0000-000000000001"]
TIMES = ["2020-01-01T00:00:00.0000000Z", "2020-01-01T00:00:00.0000001Z", "1999-05-05T05:05:05.5Z"]
NAMES = ["a", "b", "id", "_ts"]
KEYS = ["", "k", "k'", "é", "z"]
INTS = [-1, 0, 1, 2, 2**31 - 1]
LARGE = [-1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
DOUBLES = ["NaN", "Infinity", "-Infinity", 0.0, -0.0, 1.0, 1.5, 2.0**53, 9007199254740994.0]
TEXTS = ["", "a", "b'", "é", "\U0001f600", "\uffff", "x" * 300, "x" * 299 + "y"]
BLOBS = [b"", b"\x00", b"\x01\xff", b"a" * 300]

# A property is (type, JSON value): as it goes out, and as the naive reading sees it.
VALUES = (
    st.tuples(st.just("Edm.Int32"), st.sampled_from(INTS))
    | st.tuples(st.just("Edm.Int64"), st.sampled_from(LARGE).map(str))
    | st.tuples(st.just("Edm.Double"), st.sampled_from(DOUBLES))
    | st.tuples(st.just("Edm.String"), st.sampled_from(TEXTS))
    | st.tuples(st.just("Edm.Boolean"), st.booleans())
    | st.tuples(st.just("Edm.Guid"), st.sampled_from(GUIDS))
    | st.tuples(st.just("Edm.DateTime"), st.sampled_from(TIMES))
    | st.tuples(
        st.just("Edm.Binary"), st.sampled_from(BLOBS).map(base64.b64encode).map(bytes.decode)
    )
)
ENTITIES = st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4), max_size=8)
OPERATORS = st.sampled_from(["eq", "ne", "gt", "ge", "lt", "le"])


def literal(value: tuple[str, Any]) -> str | None:
    """None: OData has no word for it."""
    kind, data = value
    match kind:
        case "Edm.Int64":
            return f"{data}L"
        case "Edm.Double":
            return None if isinstance(data, str) else repr(float(data))
        case "Edm.String":
            return "'{}'".format(data.replace("'", "''"))
        case "Edm.Guid":
            return f"guid'{data}'"
        case "Edm.DateTime":
            return f"datetime'{data}'"
        case "Edm.Binary":
            return f"X'{base64.b64decode(data).hex()}'"
    return json.dumps(data)


LITERALS = VALUES.filter(lambda value: literal(value) is not None)
KEY_LITERALS = st.sampled_from(KEYS).map(lambda key: ("Edm.String", key))
PROPERTY = st.sampled_from(NAMES).map(lambda name: ("property", name))
KEY = st.sampled_from(["PartitionKey", "RowKey"]).map(lambda name: ("property", name))
COMPARISONS = (
    st.tuples(OPERATORS, PROPERTY, LITERALS)
    | st.tuples(OPERATORS, LITERALS, PROPERTY)
    | st.tuples(OPERATORS, PROPERTY, PROPERTY)
    | st.tuples(OPERATORS, KEY, KEY_LITERALS)
    | st.tuples(st.just("truth"), PROPERTY)
)
FILTERS = st.recursive(
    COMPARISONS,
    lambda inner: (
        st.tuples(st.sampled_from(["and", "or"]), inner, inner) | st.tuples(st.just("not"), inner)
    ),
    max_leaves=6,
)


def text_of(node: Any) -> str:
    kind, *parts = node
    if kind == "property":
        return str(parts[0])
    if kind in ("and", "or"):
        return f"({text_of(parts[0])}){kind}({text_of(parts[1])})"
    if kind == "not":
        return f"not ({text_of(parts[0])})"
    if kind == "truth":
        return text_of(parts[0])
    if kind in ("eq", "ne", "gt", "ge", "lt", "le"):
        return f"{text_of(parts[0])} {kind} {text_of(parts[1])}"
    found = literal((kind, parts[0]))
    assert found is not None
    return found


# --- the naive reading --------------------------------------------------------------------------


def meaning(value: tuple[str, Any] | None) -> tuple[str, Any] | None:
    if value is None:
        return None
    kind, data = value
    if kind in ("Edm.Int32", "Edm.Int64", "Edm.Double"):
        number = Decimal(data) if isinstance(data, str | int) else Decimal(repr(data))
        return ("number", number)
    if kind == "Edm.String":
        return kind, [int.from_bytes(data.encode("utf-16-be")[at : at + 2], "big")
                      for at in range(0, len(data.encode("utf-16-be")), 2)]  # fmt: skip
    if kind == "Edm.DateTime":
        return kind, data.rstrip("Z").ljust(27, "0") if "." in data else data
    if kind == "Edm.Binary":
        return kind, base64.b64decode(data)
    return kind, data


def holds(node: Any, entity: dict[str, Any], *, storage: bool) -> bool:
    kind, *parts = node
    if kind == "and":
        return holds(parts[0], entity, storage=storage) and holds(parts[1], entity, storage=storage)
    if kind == "or":
        return holds(parts[0], entity, storage=storage) or holds(parts[1], entity, storage=storage)
    if kind == "not":
        return not holds(parts[0], entity, storage=storage)
    if kind == "truth":
        return bool(entity.get(parts[0][1]) == ("Edm.Boolean", True))
    sides = []
    for one in parts:
        sides.append(meaning(entity.get(one[1]) if one[0] == "property" else one))
    left, right = sides
    if left is None or right is None or left[0] != right[0]:
        return kind == "ne" and not storage
    one, other = left[1], right[1]
    if isinstance(one, Decimal) and (one.is_nan() or other.is_nan()):
        return bool(kind == "ne")
    return {  # type: ignore[no-any-return]
        "eq": one == other,
        "ne": one != other,
        "gt": one > other,
        "ge": one >= other,
        "lt": one < other,
        "le": one <= other,
    }[kind]


# --- the comparison -----------------------------------------------------------------------------


@pytest.fixture(params=["cosmos", "storage"], scope="module")
def api(request: pytest.FixtureRequest) -> Iterator[TableApi]:
    flavour = COSMOS if request.param == "cosmos" else STORAGE
    with table_api(flavour, table=None) as made:
        yield made


@settings(max_examples=60)
@given(entities=ENTITIES, filters=st.lists(FILTERS, min_size=1, max_size=6), data=st.data())
def test_plans_find_what_the_filter_says(
    api: TableApi, entities: list[dict[str, Any]], filters: list[Any], data: st.DataObject
) -> None:
    storage = api.service.flavour is STORAGE
    response = api.ask("POST", "/Tables", {"TableName": "ttt"}, {"x-ms-offer-throughput": "30000"})
    assert response.status == 201
    try:
        kept: dict[tuple[str, str], dict[str, Any]] = {}
        for number, entity in enumerate(entities):
            keys = data.draw(st.sampled_from(KEYS[1:])), f"{KEYS[number % 4 + 1]}{number}"
            body: dict[str, Any] = {"PartitionKey": keys[0], "RowKey": keys[1]}
            for name, (kind, value) in entity.items():
                body |= {name: value, f"{name}@odata.type": kind}
            assert api.ask("POST", "/ttt", body).status == 201
            texts = {name: ("Edm.String", body[name]) for name in ("PartitionKey", "RowKey")}
            kept[keys] = entity | texts
        for node in filters:
            text = text_of(node)
            rows = api.query(
                "ttt", text, **{"$top": data.draw(st.sampled_from(["1", "3", "1000"]))}
            )
            found = [(row["PartitionKey"], row["RowKey"]) for row in rows]
            wanted = {keys for keys, one in kept.items() if holds(node, one, storage=storage)}
            assert len(found) == len(set(found)), text
            assert set(found) == wanted, text
            if storage:
                order = [[key.encode("utf-16-be") for key in keys] for keys in found]
                assert order == sorted(order), text
    finally:
        assert api.ask("DELETE", "/Tables('ttt')").status == 204
