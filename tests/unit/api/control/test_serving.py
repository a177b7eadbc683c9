"""The controls of a real server, with one worker and with two. Without these tests what one worker
is told could stay with it, and the description could say what no server does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.controls import ControlClient
from tests.support.schemas import complaints
from tests.support.server_process import ServerProcess
from tests.support.signed_http import SignedClient

from armillary.api.control.routes import ROUTES

COLL = "dbs/d/colls/c"


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def server(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[ServerProcess]:
    data: Path = tmp_path_factory.mktemp("served") / "data"
    one = ServerProcess(data, real=True, options=["--workers", str(request.param)])
    try:
        one.wait_until_ready()
        yield one
    finally:
        one.close()


@pytest.fixture
def controls(server: ServerProcess) -> ControlClient:
    """An account with some items in it."""
    client = ControlClient(server.port)
    assert client.ask("POST", "reset").status == 200
    signed = SignedClient(server.port)
    assert signed.ask("POST", "/dbs", {"id": "d"}).status == 201
    definition = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    assert signed.ask("POST", "/dbs/d/colls", definition).status == 201
    for number in range(20):
        assert signed.create(COLL, {"id": str(number), "pk": f"k{number}"}).status == 201
    signed.close()
    return client


def list_databases(controls: ControlClient) -> int:
    """The status, by a connection of its own."""
    signed = SignedClient(controls.port)
    try:
        return signed.ask("GET", "/dbs").status
    finally:
        signed.close()


def test_a_split_and_a_merge_are_seen_by_every_worker(controls: ControlClient) -> None:
    accepted = controls.ask("POST", f"{COLL}/split", {"id": "0"})
    assert accepted.status == 202, accepted.body
    became = controls.ended(accepted.json()["operation"])
    assert (became["status"], became["children"]) == ("succeeded", ["1", "2"])
    for _ in range(8):
        lines = controls.ask("GET", f"{COLL}/partitions").json()["partitions"]
        assert [one["id"] for one in lines] == ["1", "2"]
        assert sum(one["items"] for one in lines) == 20
    accepted = controls.ask("POST", f"{COLL}/merge", {"ids": ["1", "2"]})
    assert controls.ended(accepted.json()["operation"])["children"] == ["3"]


def test_faults_are_counted_over_all_workers(controls: ControlClient) -> None:
    assert controls.ask("PUT", "faults", [{"effect": "503", "times": 5}]).status == 200
    statuses = [list_databases(controls) for _ in range(16)]
    assert statuses == [503] * 5 + [200] * 11
    assert controls.ask("GET", "faults").json() == []


def test_the_clock_is_ahead_in_every_worker(controls: ControlClient) -> None:
    before = controls.ask("GET", "clock").json()["now_ms"]
    assert controls.ask("POST", "clock", {"advance_ms": 3_600_000}).status == 200
    for _ in range(8):
        found = controls.ask("GET", "clock").json()
        assert found["ahead_ms"] == 3_600_000
        assert found["now_ms"] >= before + 3_600_000
        assert list_databases(controls) == 200  # signatures are judged by the real time


def test_the_description_names_every_route(controls: ControlClient) -> None:
    found = controls.ask("GET", "openapi.json").json()
    described = {(m.upper(), path) for path, one in found["paths"].items() for m in one}
    assert described == {(one.method, f"/_armillary/{one.pattern}") for one in ROUTES}


#: What to send, by operation: the path after /_armillary/ and a body.
SAMPLES: dict[str, tuple[str, Any]] = {
    "readAccount": ("account", None),
    "readPartitions": (f"{COLL}/partitions", None),
    "split": (f"{COLL}/split", {"id": "0"}),
    "merge": (f"{COLL}/merge", {"ids": ["1", "2"]}),
    "readOperation": ("operations/{operation}", None),
    "readFaults": ("faults", None),
    "replaceFaults": (
        "faults",
        [{"match": {"operation": "batch", "container": "d/c"}, "effect": "delay", "value": 1}],
    ),
    "readClock": ("clock", None),
    "advanceClock": ("clock", {"advance_ms": 1000}),
    "readKeySpec": (f"{COLL}/key-spec", None),
    "writeKeySpec": ("dbs/d/colls/empty/key-spec", {"version": 1, "path": "/pk", "parts": ["/a"]}),
    "readMetrics": ("metrics", None),
    "readDescription": ("openapi.json", None),
    "reset": ("reset", None),
}


def test_every_route_answers_as_described(controls: ControlClient) -> None:
    signed = SignedClient(controls.port)
    definition = {"id": "empty", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    assert signed.ask("POST", "/dbs/d/colls", definition).status == 201
    signed.close()
    described = {
        one["operationId"]: (method.upper(), one)
        for path in controls.ask("GET", "openapi.json").json()["paths"].values()
        for method, one in path.items()
    }
    assert set(described) == set(SAMPLES)
    operation = ""
    for name, (path, body) in SAMPLES.items():
        method, told = described[name]
        answer = controls.ask(method, path.format(operation=operation), body)
        if name in ("split", "merge"):
            operation = answer.json()["operation"]
            controls.ended(operation)
        if body is not None:
            schema = told["requestBody"]["content"]["application/json"]["schema"]
            assert complaints(body, schema) == []
        assert str(answer.status) == next(iter(told["responses"])), (name, answer.body)
        ((media, content),) = told["responses"][str(answer.status)]["content"].items()
        assert answer.headers["content-type"] == media
        if media == "application/json":
            assert complaints(answer.json(), content["schema"]) == [], name


def test_every_route_refuses_as_described(controls: ControlClient) -> None:
    error = controls.ask("GET", "openapi.json").json()["components"]["schemas"]["Error"]
    for method, path, body, status in [
        ("GET", "dbs/d/colls/none/partitions", None, 404),
        ("POST", f"{COLL}/split", {"id": "99"}, 404),
        ("POST", f"{COLL}/merge", {}, 400),
        ("GET", "operations/none", None, 404),
        ("PUT", "faults", {}, 400),
        ("POST", "clock", {}, 400),
        ("PUT", f"{COLL}/key-spec", [], 400),
    ]:
        answer = controls.ask(method, path, body)
        assert answer.status == status
        assert complaints(answer.json(), error) == []
