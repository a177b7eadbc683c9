"""The fast path of a create answers exactly like the general path and leaves the same behind
(items, charges, counts), or leaves the request to it. Without this, what a client gets and
pays would depend on whether its connection had sent a create before."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.nosql import READ_ONLY_KEY, SECONDARY_KEY, WRONG_KEY, Api
from tests.support.nosql import api as made
from tests.support.raw_http import parse_answer

from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.http.encoding import encode
from armillary.api.http.messages import Request, Waiting
from armillary.engine.address import parse_address
from armillary.partition.budgets.opening import open_ledger
from armillary.server.bounds import Bounds
from armillary.server.http.templates import Templates
from armillary.server.http.wire import Incoming, RequestReader
from armillary.store.items.containers import ContainerStore
from armillary.store.throughput.meter import Meter

DATE_LINE = "Date: today\r\n"
DOCS = "/dbs/d/colls/c/docs"
OF_K = {"x-ms-documentdb-partitionkey": '["k"]'}
POLICY = {"compositeIndexes": [[{"path": "/text"}, {"path": "/n"}]]}


def raw(target: str, headers: dict[str, str], body: bytes, method: str = "POST") -> bytes:
    headers = headers | {"content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body


def parsed(data: bytes) -> Request:
    (event,) = RequestReader(Bounds()).receive(data)
    assert isinstance(event, Incoming)
    return event.request


def short(api: Api, data: bytes, like: bytes) -> Waiting | None:
    """What a worker begins that has seen a request like it."""
    shape = Templates(api.service.fast_paths).find(like, parsed(like))
    found = None if shape is None else shape.match(data)
    if shape is None or found is None:
        return None
    answer = shape.answer(DATE_LINE.encode(), *found)
    assert answer is None or isinstance(answer, Waiting)
    return answer


def answered(api: Api, data: bytes, like: bytes) -> tuple[bytes, bool]:
    """As a connection does it; and whether the fast path was taken to its end."""
    waiting = short(api, data, like)
    if waiting is not None:
        waiting.future.exception(10)
        whole = waiting.finish(DATE_LINE.encode())
        if whole is not None:
            return whole, True
        response = waiting.otherwise(parsed(data))
        if response is not None:
            return encode(response, DATE_LINE, old=False), False
    return long(api, data), False


def long(api: Api, data: bytes) -> bytes:
    return encode(api.service.handle(parsed(data)), DATE_LINE, old=False)


@contextmanager
def metered(**container: Any) -> Iterator[Api]:
    """An account whose requests are counted, on a stopped clock."""
    with made(partitions=2) as api:
        api.engine.never_waits = True  # type: ignore[misc]
        meter = Meter(api.engine, open_ledger(parse_address(":memory:"), "on"), enforce="on")
        api.account.meter = meter
        body = {"id": "m", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        assert api.ask("POST", "/dbs/d/colls", body | container).status == 201
        try:
            yield api
        finally:
            api.account.meter = None
            meter.close()


bodies = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["a", "b", "c", "d", "e", "", 5, "a/b", "ä", "i" * 200]),
        "pk": st.sampled_from(["k", "k", "k", "l", 1, None, ["k"]]),
        "text": st.sampled_from(["x", "y" * 2_000, "z" * 40_000, "\x00", "\ud83d"]),
        "n": st.sampled_from([0, 1.0, -2.5, 2**60, True, None, [1, 1, {"a": []}], {"b": "c"}]),
        "ttl": st.sampled_from([-1, 5, 0, "x"]),
        "_etag": st.just("mine"),
    },
)
extras = st.fixed_dictionaries(
    {},
    optional={
        "x-ms-documentdb-partitionkey": st.sampled_from(
            ['["k"]', '["k"]', '[ "k" ]', '["l"]', "[1]", "[]", '["k","l"]', "[{}]"]
        ),
        "x-ms-documentdb-is-upsert": st.sampled_from(["True", "true", "False", "x"]),
        "x-ms-documentdb-isquery": st.sampled_from(["True", "False"]),
        "x-ms-cosmos-is-batch-request": st.sampled_from(["True", "False"]),
        "if-match": st.sampled_from(["*", '"x"']),
        "if-none-match": st.just("*"),
        "prefer": st.just("return=minimal"),
        "x-ms-documentdb-pre-trigger-include": st.just("t"),
        "x-ms-session-token": st.sampled_from(["0:-1#999", "x"]),
        "x-ms-consistency-level": st.sampled_from(["Eventual", "x"]),
        "x-ms-cosmos-intended-collection-rid": st.sampled_from(["AAAA", "RID"]),
    },
)
operations = st.tuples(
    st.sampled_from(["m", "m", "m", "m", "c", "none"]),
    bodies,
    extras,
    st.sampled_from([EMULATOR_KEY] * 8 + [SECONDARY_KEY, READ_ONLY_KEY, WRONG_KEY]),
    st.sampled_from([0, 0, 0, 0, 400, 3000]),
)
kinds = st.sampled_from(
    [
        {},
        {"indexingPolicy": POLICY},
        {"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/n"]}]}},
        {"defaultTtl": 60},
        {"indexingPolicy": {"indexingMode": "none", "automatic": False}},
    ]
)


@settings(max_examples=60, deadline=None)
@given(kinds, st.lists(operations, min_size=1, max_size=12))
def test_both_paths_answer_and_count_alike(kind: dict[str, Any], asked: list[Any]) -> None:
    with metered(**kind) as one, metered(**kind) as other:
        for number, (name, body, extra, key, advance_ms) in enumerate(asked):
            target = f"/dbs/d/colls/{name}/docs"
            told: list[Any] = []
            text = json.dumps(body).encode()
            for api in (one, other):
                api.clock.advance(advance_ms)
                headers = api.signed("POST", target, key=key)
                headers |= OF_K | extra | {"x-ms-activity-id": f"a{number}"}
                if extra.get("x-ms-cosmos-intended-collection-rid") == "RID":
                    rid = store_of(api).state.record.rid
                    headers |= {"x-ms-cosmos-intended-collection-rid": rid}
                data = raw(target, headers, text)
                if api is one:
                    told.append(parse_answer(long(api, data)))
                else:
                    # Learned from a request with the same headers that was well.
                    like = raw(target, headers, b'{"id":"x"}')
                    told.append(parse_answer(answered(api, data, like)[0]))
            assert told[0] == told[1]
        assert counted(one) == counted(other)


def store_of(api: Api) -> ContainerStore:
    return api.service.gateway.container("d", "m")


def counted(api: Api) -> Any:
    meter, state = api.account.meter, store_of(api).state
    assert meter is not None
    return meter.heat(state)


def ordinary(api: Api, body: bytes, **extra: str) -> bytes:
    return raw(
        "/dbs/d/colls/m/docs", api.signed("POST", "/dbs/d/colls/m/docs") | OF_K | extra, body
    )


@pytest.mark.parametrize(
    "extra", [{}, {"x-ms-documentdb-is-upsert": "True"}, {"x-ms-session-token": "0:-1#5"}], ids=str
)
def test_an_ordinary_create_takes_the_fast_path(extra: dict[str, str]) -> None:
    with metered() as api:
        store_of(api)  # its container is known then
        for number, status in ((1, b"201"), (2, b"201")):
            data = ordinary(api, b'{"id":"i%d","pk":"k"}' % number, **extra)
            answer, was_short = answered(api, data, data)
            assert was_short
            assert answer.startswith(b"HTTP/1.1 " + status)


def test_an_upsert_that_replaces_takes_the_fast_path() -> None:
    with metered() as api:
        store_of(api)
        data = ordinary(api, b'{"id":"i","pk":"k"}', **{"x-ms-documentdb-is-upsert": "True"})
        assert answered(api, data, data)[0].startswith(b"HTTP/1.1 201")
        answer, was_short = answered(api, data, data)
        assert was_short
        assert answer.startswith(b"HTTP/1.1 200")


def test_what_the_writer_refuses_ends_on_the_general_path() -> None:
    with metered() as api:
        store_of(api)
        data = ordinary(api, b'{"id":"i","pk":"k"}')
        assert answered(api, data, data)[1]
        answer, was_short = answered(api, data, data)
        assert answer.startswith(b"HTTP/1.1 409")
        assert not was_short


def test_a_create_whose_range_has_moved_begins_again() -> None:
    """The fence refused it, so nothing has happened: the general path finds out why."""
    with metered() as api:
        store = store_of(api)
        stale = store.state
        document = {"id": "m", "partitionKey": stale.definition.partition_key.to_json()}
        assert api.ask("PUT", "/dbs/d/colls/m", document | {"defaultTtl": 60}).status == 200
        store.known_state = stale
        data = ordinary(api, b'{"id":"i","pk":"k"}')
        waiting = short(api, data, data)
        assert waiting is not None
        waiting.future.exception(10)
        assert waiting.finish(DATE_LINE.encode()) is None
        assert waiting.otherwise(parsed(data)) is None
        assert long(api, data).startswith(b"HTTP/1.1 201")


def test_what_is_written_while_the_range_moves_is_answered_from_where_it_is() -> None:
    """The state changed between the commit and the answer."""
    with metered() as api:
        store = store_of(api)
        data = ordinary(api, b'{"id":"i","pk":"k"}')
        waiting = short(api, data, data)
        assert waiting is not None
        waiting.future.exception(10)
        store.known_state = None
        assert waiting.finish(DATE_LINE.encode()) is None
        response = waiting.otherwise(parsed(data))
        assert response is not None
        assert response.status == 201


def test_faults_signatures_and_writers_that_wait_are_for_the_general_path() -> None:
    with metered() as api:
        store_of(api)
        data = ordinary(api, b'{"id":"i","pk":"k"}')
        api.gateway.shared.cells[0] = 1
        assert short(api, data, data) is None
        api.gateway.shared.cells[0] = 0
        api.engine.never_waits = False  # type: ignore[misc]
        assert short(api, data, data) is None
        api.engine.never_waits = True  # type: ignore[misc]
        forged = data.replace(b"/colls/m/", b"/colls/c/")
        assert short(api, forged, data) is None
        assert short(api, data, data) is not None


def test_a_container_that_was_made_again_is_another() -> None:
    """Templates and places go with the state they were made of."""
    with metered() as api:
        definition = {
            "id": "m",
            "partitionKey": store_of(api).state.definition.document["partitionKey"],
        }
        data = ordinary(api, b'{"id":"i","pk":"k"}')
        assert answered(api, data, data)[1]
        assert api.ask("DELETE", "/dbs/d/colls/m").status == 204
        assert answered(api, data, data)[0].startswith(b"HTTP/1.1 404")
        assert api.ask("POST", "/dbs/d/colls", definition).status == 201
        assert answered(api, data, data)[0].startswith(b"HTTP/1.1 201")
