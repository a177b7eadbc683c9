"""Thousands of requests that are nearly right, and bytes that are not HTTP at all. Without them a
stranger, or a mistake in a client, would find the request that makes the server answer 500, hang or
end. A hundred thousand are in `make soak` (tests/storm/test_fuzz_soak.py).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.fuzz_frames import converse, good, pieces, stream
from tests.support.fuzz_requests import Fuzzer, World
from tests.support.fuzz_templates import HEADERS, VARIANTS
from tests.support.nosql import pk
from tests.support.server_process import ServerProcess
from tests.support.signed_http import SignedClient

from armillary.api.control import routes as control
from armillary.api.http.messages import Request
from armillary.api.nosql import routes as nosql
from armillary.server.bounds import Bounds
from armillary.server.http.wire import Continue, Incoming, Refusal, RequestReader

REQUESTS = 3_000
STREAMS = 800
CONNECTIONS = 400
EXAMPLES = 200  # of each of four properties


# --- requests -------------------------------------------------------------------------------------


def test_no_request_finds_a_mistake() -> None:
    fuzzer = Fuzzer(seed=6)
    try:
        for _ in range(REQUESTS):
            fuzzer.step()
        tally = fuzzer.tally
    finally:
        fuzzer.close()
    asked = {f"{one.method} {one.pattern} {one.name}" for one in nosql.ROUTES}
    asked |= {f"{one.method} {one.pattern} {one.name}" for one in control.ROUTES}
    assert set(tally.routes) == asked
    # The damage reaches the handlers and does not end at the door.
    assert tally.statuses[401] < REQUESTS / 5
    assert tally.statuses[200] > REQUESTS / 10
    assert {201, 202, 204, 207, 304, 400, 404, 405, 409} <= set(tally.statuses)


@pytest.fixture(scope="module")
def fuzzer() -> Iterator[Fuzzer]:
    made = Fuzzer(seed=0)
    made.world = World()
    yield made
    made.close()


def ask(fuzzer: Fuzzer, method: str, target: str, body: bytes, headers: dict[str, str]) -> Any:
    assert fuzzer.world is not None
    signed = fuzzer.world.api.signed(method, target)
    return fuzzer.send(fuzzer.world, Request(method, target, signed | headers, body), "property")


texts = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
header_texts = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=60)
shared = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@shared
@given(item=st.dictionaries(texts, values, max_size=6))
def test_any_object_is_stored_or_refused_and_read_as_it_was_stored(
    fuzzer: Fuzzer, item: dict[str, Any]
) -> None:
    whole = item | {"id": "h", "pk": "a"}
    headers = pk("a") | {"x-ms-documentdb-is-upsert": "True"}
    stored = ask(fuzzer, "POST", "/dbs/d/colls/c/docs", json.dumps(whole).encode(), headers)
    if stored.status in (200, 201):
        read = ask(fuzzer, "GET", "/dbs/d/colls/c/docs/h", b"", pk("a"))
        assert json.loads(read.body) == json.loads(stored.body)


@shared
@given(value=values)
def test_any_json_may_stand_where_a_parameter_or_a_patch_has_a_value(
    fuzzer: Fuzzer, value: Any
) -> None:
    asked = {
        "query": "SELECT VALUE [@p, c.n = @p] FROM c WHERE c.n < @p OR c.pk = @p",
        "parameters": [{"name": "@p", "value": value}],
    }
    query = {"x-ms-documentdb-isquery": "True", **pk("a")}
    ask(fuzzer, "POST", "/dbs/d/colls/c/docs", json.dumps(asked).encode(), query)
    patch = {"operations": [{"op": "set", "path": "/x", "value": value}]}
    ask(fuzzer, "PATCH", "/dbs/d/colls/c/docs/0", json.dumps(patch).encode(), pk("a"))


@shared
@given(name=st.sampled_from(sorted(HEADERS)), text=header_texts, query=st.booleans())
def test_any_text_may_stand_in_a_header(fuzzer: Fuzzer, name: str, text: str, query: bool) -> None:
    body = b'{"query":"SELECT * FROM c"}' if query else b'{"id":"x","pk":"a"}'
    variant = {"x-ms-documentdb-isquery": "True"} if query else {}
    ask(fuzzer, "POST", "/dbs/d/colls/c/docs", body, {**variant, name: text})
    ask(fuzzer, "GET", "/dbs/d/colls/c/docs", b"", {name: text})
    ask(fuzzer, "GET", "/dbs/d/colls/c/docs/0", b"", {**pk("a"), name: text})


@shared
@given(method=st.sampled_from(["POST", "PUT", "PATCH"]), body=st.binary(max_size=80))
def test_any_bytes_may_be_a_body(fuzzer: Fuzzer, method: str, body: bytes) -> None:
    target = "/dbs/d/colls/c/docs" if method == "POST" else "/dbs/d/colls/c/docs/0"
    for variant in (VARIANTS[""], VARIANTS["query"], VARIANTS["batch"]):
        ask(fuzzer, method, target, body, {**pk("a"), **variant})


# --- framing --------------------------------------------------------------------------------------


def test_the_reader_of_requests_takes_any_bytes() -> None:
    random = Random(7)
    seen: Counter[type] = Counter()
    for _ in range(STREAMS):
        reader = RequestReader(Bounds())
        for piece in pieces(random, stream(random)):
            for event in reader.receive(piece):
                assert isinstance(event, (Incoming, Continue, Refusal))
                seen[type(event)] += 1
        reader.close()
    assert set(seen) == {Incoming, Continue, Refusal}


def test_no_bytes_on_a_socket_stop_the_server(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", real=True)
    try:
        server.wait_until_ready(120)
        client = SignedClient(server.port, timeout_s=120)
        assert client.ask("POST", "/dbs", {"id": "d"}).status == 201
        key = {"paths": ["/pk"], "kind": "Hash"}
        made = client.ask("POST", "/dbs/d/colls", {"id": "c", "partitionKey": key})
        assert made.status == 201
        client.close()
        random = Random(8)
        heard: Counter[int] = Counter()
        for _ in range(CONNECTIONS):
            heard += converse(server.port, random, stream(random))
        assert heard[500] == 0
        assert heard[200] > 0
        assert heard[400] > 0
        # One with nothing wrong is served as before.
        assert sum(converse(server.port, Random(0), good(Random(0))).values()) == 1
        assert server.process.poll() is None
        server.terminate()
        code, _, errors = server.end()
        assert (code, errors) == (0, "")
    finally:
        server.close()
