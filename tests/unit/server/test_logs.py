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
from tests.support.service import EchoService
from tests.support.signed_http import SignedClient

from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.http.messages import Request
from armillary.config import LogSettings
from armillary.errors import NotSupported
from armillary.server.http.observing import Facts, Observed
from armillary.server.process.backend import _observed
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
    service = EchoService()
    assert _observed(service, LogSettings())[0] is service
    assert _observed(service, LogSettings(requests=True))[0] is not service


def test_traces_without_their_packages_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.propagate", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter", None)
    with pytest.raises(NotSupported, match=r"armillary\[otel\]"):
        _observed(EchoService(), LogSettings(traces=True))


def test_a_span_ends_with_what_became_of_the_request() -> None:
    spans: list[tuple[str, Facts]] = []

    @contextmanager
    def tracer(request: Request) -> Iterator[Callable[[Facts], None]]:
        facts: list[Facts] = []
        yield facts.append
        spans.append((request.method, facts[0]))

    clock = iter([1.0, 1.5])
    with made() as api:
        watched = Observed(api.service, logged=False, tracer=tracer, stopwatch=lambda: next(clock))
        headers = api.signed("GET", "/dbs") | {"user-agent": "test"}
        assert watched.handle(Request("GET", "/dbs?x=1", headers)).status == 200
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
        signed.close()
        server.terminate()
        code, _, errors = server.end()
    finally:
        server.close()
    assert code == 0, errors
    lines = [json.loads(line) for line in errors.splitlines()]
    found = [(one["Method"], one["Path"], one["StatusCode"]) for one in lines]
    assert found == [("POST", "/dbs", 201), ("GET", "/dbs/none", 404)]
    assert all(one["ActivityId"] and one["DurationMs"] > 0 for one in lines)
    assert EMULATOR_KEY not in errors


def _record(message: str) -> logging.LogRecord:
    return logging.LogRecord("armillary.x", logging.WARNING, "", 0, message, (), None)
