"""The controls of a real server, with one worker and with two. Without these tests what one worker
hears could stay with it, and the description could say what no server does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.controls import ControlClient, EventReader, until
from tests.support.schemas import problems
from tests.support.server_process import ServerProcess
from tests.support.signed_http import SignedClient

from armillary.api.control.routes import ELSEWHERE, ROUTES

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


def test_a_snapshot_is_restored_for_every_worker(controls: ControlClient) -> None:
    assert controls.ask("PUT", "snapshots/base").status == 200
    clients = [SignedClient(controls.port) for _ in range(8)]  # of both workers, most likely
    for number, client in enumerate(clients):
        assert client.create(COLL, {"id": f"later{number}", "pk": "k1"}).status == 201
    assert clients[0].ask("POST", "/dbs", {"id": "later"}).status == 201
    assert controls.ask("POST", "snapshots/base/restore").status == 200
    for number, client in enumerate(clients):
        assert client.read(COLL, "1", "k1").status == 200
        assert client.read(COLL, f"later{number}", "k1").status == 404
        assert client.ask("GET", "/dbs").json()["_count"] == 1
        assert client.create(COLL, {"id": f"later{number}", "pk": "k1"}).status == 201
        client.close()
    lines = controls.ask("GET", f"{COLL}/partitions").json()["partitions"]
    assert sum(one["items"] for one in lines) == 28


def test_events_tell_of_splits_and_refusals_of_any_worker(controls: ControlClient) -> None:
    with EventReader(controls.port) as events:
        accepted = controls.ask("POST", f"{COLL}/split", {"id": "0"})
        operation = accepted.json()["operation"]
        assert controls.ended(operation)["status"] == "succeeded"
        name, started = events.next()
        assert (name, started["status"], started["parents"]) == ("split", "started", ["0"])
        name, done = events.next()
        assert (name, done["status"], done["children"]) == ("split", "succeeded", ["1", "2"])
        assert (done["database"], done["container"]) == ("d", "c")
        signed = SignedClient(controls.port)
        large = {"id": "large", "pk": "k1", "text": "x" * 1_000_000}  # a debt of many seconds
        assert signed.create(COLL, large).status == 201
        until(lambda: signed.create(COLL, {"id": "one more", "pk": "k1"}).status == 429)
        name, refused = events.next()
        assert (name, refused["container"]) == ("throttled", "c")
        assert refused["count"] >= 1
        signed.close()


def test_an_open_stream_does_not_keep_a_server_from_its_end(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", real=True)
    try:
        server.wait_until_ready()
        with EventReader(server.port):
            server.terminate()
            assert server.end()[0] == 0
    finally:
        server.close()


def test_the_description_names_every_route(controls: ControlClient) -> None:
    found = controls.ask("GET", "openapi.json").json()
    described = {(m.upper(), path) for path, one in found["paths"].items() for m in one}
    served = (*ROUTES, *ELSEWHERE)
    assert described == {(one.method, f"/_armillary/{one.pattern}") for one in served}


#: What to send, by operation: the path after /_armillary/ and a body.
SAMPLES: dict[str, tuple[str, Any]] = {
    "readAccount": ("account", None),
    "readPartitions": (f"{COLL}/partitions", None),
    "readUsage": (f"{COLL}/usage", None),
    "readHeat": (f"{COLL}/heat?since=1&keys=on", None),
    "drawRing": (f"{COLL}/ring.svg?theme=dark", None),
    "query": (f"{COLL}/query", {"query": "SELECT * FROM c ORDER BY c.id", "max_items": 2}),
    "traverse": (f"{COLL}/gremlin", {"gremlin": "g.V().limit(2)"}),
    "split": (f"{COLL}/split", {"id": "0"}),
    "merge": (f"{COLL}/merge", {"ids": ["1", "2"]}),
    "redistribute": (f"{COLL}/shares", {"shares": {}}),
    "rekey": (
        "dbs/d/colls/empty/rekey",
        {"target": "other", "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2}},
    ),
    "readOperation": ("operations/{operation}", None),
    "readFaults": ("faults", None),
    "replaceFaults": (
        "faults",
        [{"match": {"operation": "batch", "container": "d/c"}, "effect": "delay", "value": 1}],
    ),
    "readTopology": ("topology", None),
    "readClock": ("clock", None),
    "advanceClock": ("clock", {"advance_ms": 1000}),
    "readKeySpec": (f"{COLL}/key-spec", None),
    "writeKeySpec": ("dbs/d/colls/empty/key-spec", {"version": 1, "path": "/pk", "parts": ["/a"]}),
    "readMetrics": ("metrics", None),
    "readDescription": ("openapi.json", None),
    "takeSnapshot": ("snapshots/base", None),
    "listSnapshots": ("snapshots", None),
    "restoreSnapshot": ("snapshots/base/restore", None),
    "deleteSnapshot": ("snapshots/base", None),
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
    # One has no end, the other needs several regions: tests of their own.
    assert set(described) == {*SAMPLES, "readEvents", "failOver"}
    operation = ""
    for name, (path, body) in SAMPLES.items():
        method, told = described[name]
        answer = controls.ask(method, path.format(operation=operation), body)
        if name in ("split", "merge"):
            operation = answer.json()["operation"]
            controls.ended(operation)
        if body is not None:
            schema = told["requestBody"]["content"]["application/json"]["schema"]
            assert problems(body, schema) == []
        assert str(answer.status) == next(iter(told["responses"])), (name, answer.body)
        ((media, content),) = told["responses"][str(answer.status)]["content"].items()
        assert answer.headers["content-type"] == media
        if media == "application/json":
            assert problems(answer.json(), content["schema"]) == [], name


def test_every_route_refuses_as_described(controls: ControlClient) -> None:
    error = controls.ask("GET", "openapi.json").json()["components"]["schemas"]["Error"]
    cases: list[tuple[str, str, Any, int]] = [
        ("GET", "dbs/d/colls/none/partitions", None, 404),
        ("GET", "dbs/d/colls/none/heat", None, 404),
        ("GET", f"{COLL}/heat?since=yesterday", None, 400),
        ("GET", f"{COLL}/heat?keys=on&keys=off", None, 400),
        ("GET", "dbs/d/colls/none/ring.svg", None, 404),
        ("GET", f"{COLL}/ring.svg?theme=pink", None, 400),
        ("GET", f"{COLL}/ring.svg?size=9", None, 400),
        ("POST", f"{COLL}/split", {"id": "99"}, 404),
        ("POST", f"{COLL}/merge", {}, 400),
        ("GET", "operations/none", None, 404),
        ("PUT", "faults", {}, 400),
        ("POST", "clock", {}, 400),
        ("PUT", f"{COLL}/key-spec", [], 400),
        ("POST", "snapshots/none/restore", None, 404),
        ("PUT", "snapshots/..%2Fx", None, 400),
    ]
    for method, path, body, status in cases:
        answer = controls.ask(method, path, body)
        assert answer.status == status
        assert problems(answer.json(), error) == []
