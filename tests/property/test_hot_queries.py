"""The fast path of a query answers exactly like the general path, or leaves the request to it.
Without this, rows, charges or headers would depend on whether a worker has seen a query like it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.nosql import READ_ONLY_KEY, WRONG_KEY, Api
from tests.support.nosql import api as made
from tests.support.raw_http import parse_answer

from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.http.encoding import encode
from armillary.api.http.messages import Waiting
from armillary.server.bounds import Bounds
from armillary.server.http.templates import Templates
from armillary.server.http.wire import Incoming, RequestReader

DATE_LINE = "Date: today\r\n"
DOCS = "/dbs/d/colls/c/docs"
CROSS = {"x-ms-documentdb-query-enablecrosspartition": "True"}
USUAL = {"x-ms-documentdb-isquery": "True", "x-ms-activity-id": "6c1e"}
VALUES: list[Any] = [0, 1, 2.5, -1, 10**15, "a", "b", "", "é😀", "x" * 600, True, False, None]
VALUES += [[1], {"a": 1}, []]


@pytest.fixture(scope="module", params=[1, 3])
def filled(request: pytest.FixtureRequest) -> Iterator[Api]:
    with made(partitions=request.param) as api:
        for number in range(60):
            value = VALUES[number % len(VALUES)]
            item = {"id": f"i{number}", "pk": f"k{number % 7}", "v": value, "n": {"m": number % 5}}
            if number % 9:
                item["maybe"] = number / 7
            api.item(item)
        for number in range(250):
            api.item({"id": f"many{number}", "pk": "k1", "many": 1})
        yield api


def raw(body: bytes, headers: dict[str, str], target: str = DOCS) -> bytes:
    headers = headers | {"content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body


def both(api: Api, data: bytes) -> tuple[bytes | None, bytes]:
    (event,) = RequestReader(Bounds()).receive(data)
    assert isinstance(event, Incoming)
    whole = encode(api.service.handle(event.request), DATE_LINE, old=False)
    shape = Templates(api.service.fast_paths).find(data, event.request)
    found = None if shape is None else shape.match(data)
    if shape is None or found is None:
        return None, whole
    answer = shape.answer(DATE_LINE.encode(), *found)
    assert not isinstance(answer, Waiting)
    return answer, whole


def signed(api: Api, extra: dict[str, str], key: str = EMULATOR_KEY) -> dict[str, str]:
    return api.signed("POST", DOCS, key=key) | USUAL | extra


sides = st.sampled_from(["c.v", "c['v']", "c.n.m", "c.maybe", "c.many", "c.pk", "c.id", "c._ts"])
operators = st.sampled_from(["=", "=", "=", "<", "<=", ">", ">=", "!="])
selects = st.sampled_from(["*", "*", "*", "VALUE c", "c.v", "TOP 2 *", "DISTINCT *"])
values = st.sampled_from(VALUES)
ends = st.sampled_from(["", "", "", "", " ORDER BY c.v", " AND c.v > 1", " OFFSET 1 LIMIT 2"])
headers_of = st.fixed_dictionaries(
    {},
    optional={
        "x-ms-documentdb-query-enablecrosspartition": st.sampled_from(["True", "true", "false"]),
        "x-ms-documentdb-partitionkeyrangeid": st.sampled_from(["0", "1", "7", "", "x"]),
        "x-ms-max-item-count": st.sampled_from(["-1", "1", "2", "100", "0", "-2", ""]),
        "x-ms-session-token": st.sampled_from(["0:-1#1", "0:-1#9999", "x", ""]),
        "x-ms-documentdb-partitionkey": st.just('["k1"]'),
        "x-ms-documentdb-populatequerymetrics": st.just("false"),
        "x-ms-consistency-level": st.sampled_from(["Session", "Eventual"]),
        "x-ms-continuation": st.just("x"),
        "x-ms-cosmos-is-query-plan-request": st.just("True"),
    },
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    select=selects, side=sides, operator=operators, value=values, end=ends,
    is_literal=st.booleans(), flip=st.booleans(), extra=headers_of,
    key=st.sampled_from([EMULATOR_KEY] * 5 + [READ_ONLY_KEY, WRONG_KEY]),
)  # fmt: skip
def test_both_paths_answer_alike(
    filled: Api,
    select: str,
    side: str,
    operator: str,
    value: Any,
    end: str,
    is_literal: bool,
    flip: bool,
    extra: dict[str, str],
    key: str,
) -> None:
    right = json.dumps(value) if is_literal else "@p"
    one, other = (right, side) if flip else (side, right)
    text = f"SELECT {select} FROM c WHERE {one} {operator} {other}{end}"
    body = {"query": text, "parameters": [{"name": "@p", "value": value}]}
    quick, whole = both(filled, raw(json.dumps(body).encode(), signed(filled, extra, key)))
    if quick is not None:
        assert parse_answer(quick) == parse_answer(whole)


@pytest.mark.parametrize("operator", ["=", ">="])
@pytest.mark.parametrize("where", [{}, {"x-ms-documentdb-partitionkeyrangeid": "0"}])
def test_an_ordinary_query_takes_the_fast_path(
    filled: Api, where: dict[str, str], operator: str
) -> None:
    ranges = len(filled.service.gateway.container("d", "c").state.table.ranges)
    body = {
        "query": f"SELECT * FROM c WHERE c['maybe'] {operator} @p",
        "parameters": [{"name": "@p", "value": 59 / 7}],
    }
    quick, _ = both(filled, raw(json.dumps(body).encode(), signed(filled, CROSS | where)))
    assert (quick is not None) is (ranges == 1 or bool(where))


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(body=st.binary(max_size=40) | st.recursive(st.none() | st.text() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["query", "parameters", "name", "value"]), inner), max_leaves=8
    ).map(lambda value: json.dumps(value).encode()))  # fmt: skip
@example(b'{"query":"SELECT * FROM c WHERE c.v = @p","parameters":null}')
@example(b'{"query":"SELECT * FROM c WHERE c.v = @p","parameters":[{"name":"@p"}]}')
@example(b'{"query":"SELECT * FROM c WHERE c.v = 1","parameters":{}}')
@example(b'{"query":"SELECT * FROM c WHERE c.v = 1","parameters":"x"}')
@example(b'{"query":"SELECT * FROM c WHERE c.v = 1","parameters":0}')
@example(b'{"query":"SELECT * FROM c WHERE c.v = @p","parameters":[{"name":1,"value":2}]}')
def test_strange_bodies_are_answered_alike(filled: Api, body: bytes) -> None:
    if not body:
        return
    quick, whole = both(filled, raw(body, signed(filled, CROSS)))
    if quick is not None:
        assert parse_answer(quick) == parse_answer(whole)


def test_a_body_that_is_cut_or_followed_is_left_to_the_parser(filled: Api) -> None:
    body = b'{"query":"SELECT * FROM c WHERE c.v = 1"}'
    data = raw(body, signed(filled, CROSS | {"x-ms-documentdb-partitionkeyrangeid": "0"}))
    (event,) = RequestReader(Bounds()).receive(data)
    assert isinstance(event, Incoming)
    shape = Templates(filled.service.fast_paths).find(data, event.request)
    assert shape is not None
    assert shape.match(data) is not None
    for other in (data[:-1], data + b"G", data + data):
        assert shape.match(other) is None


def test_a_large_query_takes_the_general_path_and_is_not_kept(filled: Api) -> None:
    """Thousands of bodies are kept for each container, and each may have tens of kilobytes."""
    place = CROSS | {"x-ms-documentdb-partitionkeyrangeid": "0"}
    for value, is_fast in ((59 / 7, True), ("x" * 20_000, False)):
        body = {
            "query": "SELECT * FROM c WHERE c['maybe'] = @p",
            "parameters": [{"name": "@p", "value": value}],
        }
        quick, _ = both(filled, raw(json.dumps(body).encode(), signed(filled, place)))
        assert (quick is not None) is is_fast
    kept = [
        key
        for path in filled.service.fast_paths
        for known in getattr(path, "_containers", {}).values()
        for key in known.kept
        if not isinstance(key, float)  # a charge
    ]
    assert kept
    assert max(map(len, kept)) < 10_000
