"""The hashes that a filter leaves."""

from typing import Any

import pytest
from azure.cosmos._routing.collection_routing_map import CollectionRoutingMap
from azure.cosmos._routing.routing_range import Range

from armillary.encoding.hashing import epk_hex
from armillary.encoding.partition_key import PartitionKeyDefinition, parse_definition
from armillary.query.gateway.rewriting import query_plan
from armillary.query.run.sql import bound_query

V2 = parse_definition({"paths": ["/pk"], "kind": "Hash", "version": 2})
V1 = parse_definition({"paths": ["/pk"], "kind": "Hash"})
NESTED = parse_definition({"paths": ["/a/b"], "kind": "Hash", "version": 2})
MULTI = parse_definition({"paths": ["/t", "/u", "/s"], "kind": "MultiHash", "version": 2})
ALL = [("", "FF", False)]
#: Nothing can match: one partition answers for all.
ANY = [("", "", True)]


def ranges(where: str, definition: PartitionKeyDefinition = V2, **parameters: Any) -> list[Any]:
    named = {f"@{name}": value for name, value in parameters.items()}
    text = f"SELECT * FROM c WHERE {where}" if where else "SELECT * FROM c"
    found = query_plan(bound_query(text), named, definition, ())["queryRanges"]
    assert all(each["isMinInclusive"] for each in found)
    assert found == sorted(found, key=lambda each: str(each["min"]))
    return [(each["min"], each["max"], each["isMaxInclusive"]) for each in found]


def points(*values: Any, definition: PartitionKeyDefinition = V2) -> list[Any]:
    hashes = sorted(epk_hex((value,), definition) for value in values)
    return [(each, each, True) for each in hashes]


@pytest.mark.parametrize(
    ("where", "values"),
    [
        ("c.pk = 'a'", ["a"]),
        ("'a' = c.pk", ["a"]),
        ("c.pk = @p", ["p"]),
        ("c['pk'] = 1", [1]),
        ("c.pk = 1.0", [1]),
        ("c.pk = null", [None]),
        ("c.pk", [True]),
        ("NOT c.pk", [False]),
        ("c.pk IN ('a', 'b', 'a')", ["a", "b"]),
        ("c.pk = 'a' OR c.pk = 'b'", ["a", "b"]),
        ("c.pk = 'a' AND c.x > 3", ["a"]),
        ("c.x > 3 AND (c.y = 1 OR c.z = 2) AND c.pk = 'a'", ["a"]),
        ("(c.id = '1' AND c.pk = 'a') OR (c.id = '2' AND c.pk = 'b')", ["a", "b"]),
        ("c.pk IN ('a', 'b') AND c.pk IN ('b', 'c')", ["b"]),
        ("c.pk = 'a' AND c.pk = 'a'", ["a"]),
        ("c.pk LIKE 'a!%' ESCAPE '!'", ["a%"]),
        ("c.pk LIKE 'abc'", ["abc"]),
        ("c.pk = LOWER('A')", ["a"]),
        ("c.pk = 'a' AND 1 = 1", ["a"]),
        ("c.pk = 'a' OR false", ["a"]),
    ],
)
def test_points(where: str, values: list[Any]) -> None:
    """Too wide, and a query for one key visits every partition."""
    assert ranges(where, p="p") == points(*values)
    assert ranges(where, V1, p="p") == points(*values, definition=V1)


@pytest.mark.parametrize(
    "where",
    [
        "",
        "c.pk > 'a'",
        "c.pk BETWEEN 'a' AND 'b'",
        "c.pk != 'a'",
        "c.pk NOT IN ('a')",
        "NOT (c.pk = 'a')",
        "c.pk LIKE 'a%'",
        "c.pk LIKE 'a_'",
        "c.pk LIKE '[a]'",
        "c.pk NOT LIKE 'a'",
        "LOWER(c.pk) = 'a'",
        "c.pk = 'a' OR c.x = 1",
        "c.x = 'a'",
        "c.pk.x = 'a'",
        "c.pk[0] = 'a'",
        "c.pk = c.x",
        "c.pk = 9007199254740993",
        "c.pk IN ('a', c.x)",
        "EXISTS(SELECT VALUE t FROM t IN c.tags WHERE c.pk = 'a')",
        "true",
        "c.pk = 'a' ?? true",
        "c.pk = RAND()",
    ],
)
def test_everything(where: str) -> None:
    """Too narrow, and items are missing from the answer."""
    assert ranges(where) == ALL


@pytest.mark.parametrize(
    "where",
    [
        "false",
        "c.pk = 'a' AND c.pk = 'b'",
        "c.pk = 'a' AND 1 = 2",
        "c.pk = undefined",
        "c.pk = @none",
        "c.pk = [1]",
        "1",
        "c.pk AND NOT c.pk",
        "c.pk = 1 AND c.pk",
    ],
)
def test_contradictions(where: str) -> None:
    assert ranges(where) == ANY


def test_nothing_to_read() -> None:
    assert query_plan(bound_query("SELECT 1 AS a"), {}, V2, ())["queryRanges"][0]["max"] == ""


def test_a_nested_path() -> None:
    assert ranges("c.a.b = 'x'", NESTED) == points("x", definition=NESTED)
    assert ranges("c.a = 'x'", NESTED) == ALL


def test_a_query_in_from_narrows_too() -> None:
    text = "SELECT VALUE s.x FROM (SELECT VALUE c FROM c WHERE c.pk = 'a') s"
    (found,) = query_plan(bound_query(text), {}, V2, ())["queryRanges"]
    assert found["min"] == found["max"] == epk_hex(("a",), V2)


def test_a_joined_alias_is_not_the_item() -> None:
    text = "SELECT VALUE t FROM c JOIN t IN c.tags WHERE t.pk = 'a'"
    (found,) = query_plan(bound_query(text), {}, V2, ())["queryRanges"]
    assert (found["min"], found["max"]) == ("", "FF")


def hashed(*values: Any) -> str:
    return epk_hex(values, MULTI)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("c.t = 'a'", [(hashed("a"), hashed("a") + "FF", False)]),
        ("c.t = 'a' AND c.u = 1", [(hashed("a", 1), hashed("a", 1) + "FF", False)]),
        ("c.t = 'a' AND c.u = 1 AND c.s", [(hashed("a", 1, True),) * 2 + (True,)]),
        ("c.t = 'a' AND c.s = 1", [(hashed("a"), hashed("a") + "FF", False)]),
        ("c.u = 1 AND c.s = 1", ALL),
        ("c.t = 'a' OR (c.t = 'a' AND c.u = 1)", [(hashed("a"), hashed("a") + "FF", False)]),
        ("c.t = 'a' OR c.u = 1", ALL),
    ],
)
def test_hierarchical_keys(where: str, expected: list[Any]) -> None:
    assert ranges(where, MULTI) == expected


def test_pairs_stay_pairs() -> None:
    where = "(c.t = 'a' AND c.u = 1) OR (c.t = 'b' AND c.u = 2)"
    prefixes = sorted([hashed("a", 1), hashed("b", 2)])
    assert ranges(where, MULTI) == [(each, each + "FF", False) for each in prefixes]


def test_many_keys_are_everything() -> None:
    """Thousands of points would be a plan of their own size."""
    assert ranges(f"c.pk IN ({', '.join(map(str, range(2_000)))})") == ALL
    assert len(ranges(f"c.pk IN ({', '.join(map(str, range(900)))})")) == 900


def test_the_official_client_finds_one_partition_for_a_contradiction() -> None:
    """Without a range it would ask nobody, and COUNT would have no row."""
    owner = [
        ({"id": "0", "minInclusive": "", "maxExclusive": "1F"}, True),
        ({"id": "1", "minInclusive": "1F", "maxExclusive": "FF"}, True),
    ]
    complete: Any = CollectionRoutingMap.CompleteRoutingMap
    asked: Any = Range
    routing = complete(owner, "rid")
    ((low, high, is_closed),) = ranges("false")
    found = routing.get_overlapping_ranges([asked(low, high, True, is_closed)])
    assert [each["id"] for each in found] == ["0"]
