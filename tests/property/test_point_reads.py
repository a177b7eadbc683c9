"""The short way of a point read answers exactly like the long one, or leaves the request to it.
Without this, a header handled in one place only would make reads depend on luck."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.nosql import READ_ONLY_KEY, SECONDARY_KEY, WRONG_KEY, Api
from tests.support.nosql import api as made

from armillary.api.nosql.messages import Request
from armillary.api.nosql.settings import EMULATOR_KEY

ACTIVITY = {"x-ms-activity-id": "6c1e"}


@pytest.fixture(scope="module")
def filled() -> Iterator[Api]:
    with made(partitions=3) as api:
        for number in range(20):
            api.item({"id": f"i{number}", "pk": f"k{number % 7}", "text": "x" * 100 * number})
        api.item({"id": "50%", "pk": "k0"})
        yield api


targets = st.sampled_from(
    [
        *(f"/dbs/d/colls/c/docs/i{number}" for number in range(20)),
        "/dbs/d/colls/c/docs/i1/",
        "//dbs/d/colls/c/docs/i1",
        "/dbs/d/colls/c/docs/none",
        "/dbs/d/colls/c/docs/50%25",
        "/dbs/d/colls/c/docs/i1?x=1",
        "/dbs/d/colls/none/docs/i1",
        "/dbs/d/colls/c/docs/i1/attachments",
    ]
)
keys = st.sampled_from(
    [f'["k{number}"]' for number in range(8)] + ["[1]", "[]", "x", '["a","b"]', "[{}]"]
)
tokens = st.sampled_from(["", "0:-1#1", "1:-1#99", "2:5", "x", "0:-1#1,1:0#0"])
optional = st.fixed_dictionaries(
    {},
    optional={
        "x-ms-documentdb-partitionkey": keys,
        "x-ms-session-token": st.sampled_from(
            ["", "0:-1#1", "1:-1#99", "2:5", "x", "0:-1#1,1:0#0"]
        ),
        "x-ms-consistency-level": st.sampled_from(["Session", "Eventual", "Strong", "x"]),
        "if-none-match": st.sampled_from(["*", '"x"']),
        "x-ms-cosmos-intended-collection-rid": st.sampled_from(["", "AAAA"]),
        "x-ms-activity-id": st.sampled_from(["6c1e", "", "x" * 100, "ä"]),
        "a-im": st.just("Incremental Feed"),
    },
)
signing = st.sampled_from([EMULATOR_KEY] * 4 + [SECONDARY_KEY, READ_ONLY_KEY, WRONG_KEY])


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(target=targets, extra=optional, key=signing, shift_s=st.sampled_from([0, 0, 0, 899, 1000]))
@example("/dbs/d/colls/c/docs/i1", {"x-ms-documentdb-partitionkey": '["k1"]'}, EMULATOR_KEY, 0)
def test_both_ways_answer_alike(
    filled: Api, target: str, extra: dict[str, str], key: str, shift_s: int
) -> None:
    headers = filled.signed("GET", target, key=key, shift_s=shift_s) | ACTIVITY | extra
    request = Request("GET", target, headers)
    slow = filled.service.answer_slowly(request)
    quick = filled.service.answer_quickly(request)
    if quick is not None:
        assert quick == slow


def test_an_ordinary_read_goes_the_short_way(filled: Api) -> None:
    target = "/dbs/d/colls/c/docs/i1"
    key = {"x-ms-documentdb-partitionkey": '["k1"]'}
    request = Request("GET", target, filled.signed("GET", target) | ACTIVITY | key)
    filled.service.handle(request)
    quick = filled.service.answer_quickly(request)
    assert quick is not None
    assert quick.status == 200
