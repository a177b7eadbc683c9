"""Controls of several servers on one PostgreSQL. Without this test a fault set on one of them would
be for that one only, and clocks would go apart."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NoReturn

import pytest
from tests.support.postgres import fresh_url

from armillary.api.control.service import Controls
from armillary.api.core.opening import open_gateway
from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.http.messages import Request
from armillary.api.http.mounts import Mounts
from armillary.api.nosql.service import NosqlService
from armillary.config import EngineSettings, Settings
from armillary.engine.opening import open_engine
from armillary.errors import Unavailable
from armillary.store.commands import HANDLERS

BEARER = {"authorization": f"Bearer {EMULATOR_KEY}"}


def ask(service: Controls, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    service.shared._looked_at = -1e9  # as after half a second
    answer = service.handle(Request(method, f"/_armillary/{path}", BEARER, body))
    return answer.status, answer.body


@pytest.mark.postgres
def test_servers_on_one_database_share_faults_and_clock() -> None:
    url = fresh_url()
    settings = replace(Settings(), engine=EngineSettings(url))
    engines = [open_engine(url, HANDLERS) for _ in range(2)]
    one, other = (Controls(open_gateway(engine, settings)) for engine in engines)
    try:
        assert ask(one, "PUT", "faults", b'[{"effect": "503", "times": 2}]')[0] == 200
        assert b'"times":2' in ask(other, "GET", "faults")[1]
        assert other.shared.cells[0] > 0
        before_ms = other.gateway.engine.now_ms()
        assert ask(one, "POST", "clock", b'{"advance_ms": 3600000}')[0] == 200
        ask(other, "GET", "clock")
        assert other.gateway.engine.now_ms() >= before_ms + 3_600_000
        assert ask(other, "POST", "reset")[0] == 200
        ask(one, "GET", "clock")
        assert list(one.shared.cells[:2]) == [0, 0]
        status, body = ask(one, "PUT", "snapshots/x")
        assert status == 400
        assert b"pg_dump" in body
    finally:
        for service, engine in zip((one, other), engines, strict=True):
            service.close()
            service.gateway.close()
            engine.close()


@pytest.mark.postgres
def test_an_outage_of_the_catalog_is_no_bug_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look at shared controls comes before everything else; what it throws was answered 500."""
    url = fresh_url()
    engine = open_engine(url, HANDLERS)
    controls = Controls(open_gateway(engine, replace(Settings(), engine=EngineSettings(url))))
    service = Mounts(NosqlService(controls.gateway), (controls,))

    def away(space: int) -> NoReturn:
        raise Unavailable("away")

    try:
        with monkeypatch.context() as patch:
            patch.setattr(engine, "read", away)
            controls.shared._looked_at = -1e9
            assert service.handle(Request("GET", "/", BEARER, b"")).status in (200, 401)
            controls.shared._looked_at = -1e9
            assert service.handle(Request("GET", "/dbs/d", BEARER, b"")).status in (401, 503)
            # The last known ones hold, and are asked for again after half a second, not at once.
            assert time.monotonic() - controls.shared._looked_at < 60
        assert ask(controls, "GET", "faults")[0] == 200
    finally:
        service.close()
        controls.gateway.close()
        engine.close()


@pytest.mark.postgres
def test_metrics_tell_of_the_database_and_its_connections() -> None:
    url = fresh_url()
    engine = open_engine(url, HANDLERS)
    service = Controls(open_gateway(engine, replace(Settings(), engine=EngineSettings(url))))
    try:
        status, body = ask(service, "GET", "metrics")
        lines = body.decode().splitlines()
        assert status == 200
        assert "EngineReady 1" in lines
        assert 'EngineConnectionsMax{Pool="reads"} 16' in lines
        assert any(line.startswith('EngineConnections{Pool="ledger"') for line in lines)
    finally:
        service.close()
        service.gateway.close()
        engine.close()
