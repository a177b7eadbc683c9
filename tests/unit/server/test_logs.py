"""What goes to standard error. Without these tests a key could stand in a log, or a line could be
no JSON just when something went wrong."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.nosql import api as made
from tests.support.nosql import signature
from tests.support.server_process import ServerProcess
from tests.support.signed_http import SignedClient

from armillary.api.core.request_log import Facts
from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.http.messages import Request
from armillary.config import LogSettings
from armillary.errors import NotSupported
from armillary.server.http.observing import Observer
from armillary.server.process.backend import _observer
from armillary.server.process.logs import HIDDEN, JsonFormatter, Redactor, TextFormatter

DATE = "Thu, 27 Apr 2017 00:51:12 GMT"


@pytest.mark.parametrize(
    "secret",
    [
        EMULATOR_KEY,
        signature(EMULATOR_KEY, "GET", "dbs", "dbs/d", DATE),
        "type=resource&ver=1.0&sig=c2lnbmF0dXJl",
        "Bearer c2VjcmV0c2VjcmV0",
        "authorization: 'c2VjcmV0c2VjcmV0'",
        "AccountEndpoint=https://x/;AccountKey=c2VjcmV0c2VjcmV0;",
        "postgresql://ada:c2VjcmV0c2VjcmV0@db/armillary",
    ],
)
def test_no_secret_is_left_in_a_line(secret: str) -> None:
    for kind in (TextFormatter, JsonFormatter):
        formatter = kind(Redactor([EMULATOR_KEY]), "")
        text = formatter.format(_record(f"it said {secret} and went on"))
        assert HIDDEN in text
        assert "went on" in text
        for part in (EMULATOR_KEY, "c2VjcmV0", "c2lnbmF0", secret[-30:]):
            assert part not in text or part == ";"


def test_a_traceback_is_one_line_of_json_and_clean() -> None:
    try:
        raise ValueError(f"a key: {EMULATOR_KEY}")
    except ValueError:
        record = _record("a bug")
        record.exc_info = sys.exc_info()
    text = JsonFormatter(Redactor([EMULATOR_KEY]), "worker 1: ").format(record)
    assert "\n" not in text
    line = json.loads(text)
    assert "ValueError: a key: " + HIDDEN in line["exception"]
    assert (line["level"], line["who"]) == ("warning", "worker 1")
    assert line["time"].endswith("Z")


def test_facts_are_members_of_the_line() -> None:
    record = _record("done")
    record.facts = {"StatusCode": 200}
    assert json.loads(JsonFormatter(Redactor(), "").format(record))["StatusCode"] == 200


def test_only_who_asks_for_it_is_watched() -> None:
    assert _observer(LogSettings())[0] is None
    watching = _observer(LogSettings(requests=True))[0]
    assert watching is not None
    assert watching.keeps_fast_paths


def test_traces_without_their_packages_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.propagate", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter", None)
    with pytest.raises(NotSupported, match=r"armillary\[otel\]"):
        _observer(LogSettings(traces=True))


def test_a_span_ends_with_what_became_of_the_request() -> None:
    spans: list[tuple[str, Facts]] = []

    @contextmanager
    def tracer(request: Request) -> Iterator[Callable[[Facts], None]]:
        facts: list[Facts] = []
        yield facts.append
        spans.append((request.method, facts[0]))

    clock = iter([1.0, 1.5])
    with made() as api:
        watched = Observer(logged=False, tracer=tracer, stopwatch=lambda: next(clock))
        headers = api.signed("GET", "/dbs") | {"user-agent": "test"}
        assert watched.handle(api.service, Request("GET", "/dbs?x=1", headers)).status == 200
        assert watched.begin(api.service, Request("POST", "/dbs", headers)) is None
    ((method, facts),) = spans
    assert method == "GET"
    assert (facts["Path"], facts["StatusCode"], facts["DurationMs"]) == ("/dbs", 200, 500.0)
    assert facts["UserAgent"] == "test"
    assert float(facts["RequestCharge"]) > 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_writes_a_line_of_json_for_every_request(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMILLARY_LOG_FORMAT", "json")
    monkeypatch.setenv("ARMILLARY_LOG_REQUESTS", "on")
    server = ServerProcess(tmp_path / "data", real=True, options=["--workers", str(workers)])
    try:
        server.wait_until_ready()
        signed = SignedClient(server.port)
        assert signed.ask("POST", "/dbs", {"id": "d"}).status == 201
        assert signed.ask("GET", "/dbs/none").status == 404
        body = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        assert signed.ask("POST", "/dbs/d/colls", body).status == 201
        key = {"x-ms-documentdb-partitionkey": '["a"]'}
        for number in range(3):  # the later ones go from bytes to bytes
            item = {"id": str(number), "pk": "a"}
            assert signed.ask("POST", "/dbs/d/colls/c/docs", item, key).status == 201
            path = f"/dbs/d/colls/c/docs/{number}"
            assert signed.ask("GET", path, None, key).status == 200
        signed.close()
        server.terminate()
        code, _, errors = server.end()
    finally:
        server.close()
    assert code == 0, errors
    lines = [json.loads(line) for line in errors.splitlines()]
    found = [(one["Method"], one["Path"], one["StatusCode"]) for one in lines]
    items = [
        one
        for n in range(3)
        for one in (
            ("POST", "/dbs/d/colls/c/docs", 201),
            ("GET", f"/dbs/d/colls/c/docs/{n}", 200),
        )
    ]
    first = [("POST", "/dbs", 201), ("GET", "/dbs/none", 404), ("POST", "/dbs/d/colls", 201)]
    assert sorted(found) == sorted(first + items)
    assert all(one["OperationName"] in ("Create", "Read") for one in lines if "docs" in one["Path"])
    assert all(one["RequestCharge"] > 0 for one in lines if "docs" in one["Path"])
    assert all(one["ActivityId"] and one["DurationMs"] > 0 for one in lines)
    assert EMULATOR_KEY not in errors


def _record(message: str) -> logging.LogRecord:
    return logging.LogRecord("armillary.x", logging.WARNING, "", 0, message, (), None)
