"""What a workload says, and where its operations go under each form of key."""

from typing import Any

import pytest

from armillary.advisor.keys.candidates import parse_candidate
from armillary.advisor.workload.filters import read_filters
from armillary.advisor.workload.model import (
    ALL,
    ONE,
    Route,
    covers_batch,
    parse_operation,
    parse_workload,
    route,
)
from armillary.errors import BadInput


def operation(kind: str, **members: Any) -> Any:
    return parse_operation({"kind": kind, "rate": 1, **members})[0]


DAY = "SELECT * FROM c WHERE c.date = @d"
CAR = "SELECT * FROM c WHERE c.date = @d AND c.vin = @v"
MONTHS = "SELECT * FROM c WHERE c.a = 1 AND (c.ts BETWEEN @from AND @to)"
SPAN = {"@from": "2026-01-15", "@to": "2026-03-02"}


@pytest.mark.parametrize(
    ("key", "given", "expected"),
    [
        ("/a", operation("query", text="SELECT * FROM c WHERE c.a = 1"), ONE),
        ("/a", operation("query", text="SELECT * FROM c WHERE c.a IN (1, 2)"), Route("keys", 2)),
        ("/a", operation("query", text="SELECT * FROM c WHERE c.a=1 OR c.a=2"), Route("keys", 2)),
        ("/a", operation("query", text="SELECT * FROM c WHERE c.a = 1 OR c.b = 2"), ALL),
        ("/a", operation("query", text="SELECT * FROM c WHERE c.a > 1"), ALL),
        ("/a", operation("query", text="SELECT * FROM c WHERE NOT (c.a = 1)"), ALL),
        ("/a", operation("query", text="SELECT * FROM c WHERE c.a = c.b"), ALL),
        ("/a/b", operation("query", text='SELECT * FROM c WHERE c.a["b"] = @x'), ONE),
        ("/a", operation("query", text="SELECT c.id FROM c JOIN t IN c.tags WHERE t.a = 1"), ALL),
        ("/a,/b", operation("query", text="SELECT * FROM c WHERE c.a = 1"), Route("prefix", 1, 1)),
        ("/a,/b", operation("query", text="SELECT * FROM c WHERE c.b = 1"), ALL),
        ("/a,/b", operation("query", text="SELECT * FROM c WHERE c.b = 1 AND c.a = 2"), ONE),
        ('/date+"."+hash(/vin,415)', operation("query", text=DAY), Route("keys", 415)),
        ('/date+"."+hash(/vin,415)', operation("query", text=CAR), ONE),
        ('/date+"."+random(7)', operation("query", text=CAR), Route("keys", 7)),
        ('/date+"."+random(7)', operation("create"), ONE),
        ('/date+"."+random(7)', operation("read", by=["/date", "/id"]), Route("keys", 7)),
        ('/a+"."+month(/ts)', operation("query", text=MONTHS, parameters=SPAN), Route("keys", 3)),
        ('/a+"."+month(/ts)', operation("query", text=MONTHS), ALL),
        ("/id", operation("read"), ONE),
        ("/a", operation("read"), ALL),
        ("/a", operation("read", by=["/a", "/id"]), ONE),
        ("/a", operation("upsert"), ONE),
    ],
)  # fmt: skip
def test_where_an_operation_goes(key: str, given: Any, expected: Route) -> None:
    assert route(parse_candidate(key), given) == expected


def test_a_batch_is_covered_when_its_items_share_all_of_the_key() -> None:
    batch = operation("batch", by=["/a"])
    covered = {key: covers_batch(parse_candidate(key), batch) for key in ("/a", "/a,/b", "/b")}
    assert covered == {"/a": True, "/a,/b": False, "/b": False}
    assert not covers_batch(parse_candidate('/a+"."+random(4)'), batch)


def test_a_filter_says_its_order_limit_and_aggregates() -> None:
    found = read_filters("SELECT TOP 5 c.id FROM c WHERE c.a = 1 AND c.b > 2 ORDER BY c.b DESC")
    assert (dict(found.equal), set(found.ranges)) == ({("a",): 1}, {("b",)})
    assert (found.order, found.limit, found.other) == ((("b",),), 5, False)
    assert read_filters("SELECT VALUE COUNT(1) FROM c").aggregates == ("COUNT",)
    assert read_filters('SELECT * FROM c WHERE CONTAINS(c.a, "x")').other


def test_what_makes_no_sense_is_skipped_and_said() -> None:
    workload = parse_workload(
        {
            "operations": [
                {"kind": "read", "rate": 5},
                {"kind": "query", "rate": 5, "text": "SELEC * FROM c"},
                {"kind": "fetch", "rate": 5},
                {"kind": "read", "rate": -1},
                {"kind": "read", "skew": "much"},
                {"kind": "create", "rates": 5},
                "create",
            ]
        }
    )
    assert [one.kind for one in workload.operations] == ["read"]
    assert len(workload.skipped) == 6
    assert "Operation 2" in workload.skipped[0]
    assert "fetch" in workload.skipped[1]


@pytest.mark.parametrize("given", [{}, [], {"operations": []}, {"operations": [{"kind": "x"}]}, 3])
def test_without_an_operation_there_is_no_workload(given: Any) -> None:
    with pytest.raises(BadInput):
        parse_workload(given)


def test_a_query_that_cannot_be_read_still_has_what_it_goes_by() -> None:
    workload = parse_workload([{"kind": "query", "rate": 1, "text": "SELEC", "by": ["/a"]}])
    assert route(parse_candidate("/a"), workload.operations[0]) == ONE
    assert "only its 'by' was used" in workload.skipped[0]
