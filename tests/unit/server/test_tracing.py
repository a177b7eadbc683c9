"""Spans as a collector receives them: the real exporter, sending over HTTP to a small collector of
our own. Without this test a renamed package or attribute would lose every trace silently.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.support.server_process import ServerProcess
from tests.support.signed_http import SignedClient

messages = pytest.importorskip(
    "opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="needs armillary[otel]"
)

PARENT = "4bf92f3577b34da6a3ce929d0e0e4736"


class Collector(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receive)
        self.bodies: list[bytes] = []

    def spans(self) -> list[Any]:
        found = []
        for body in self.bodies:
            request = messages.ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    found += scope.spans
        return found


class _Receive(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Collector)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.path == "/v1/traces"
        self.server.bodies.append(body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_collector_receives_a_span_for_each_request(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMILLARY_LOG_TRACES", "on")
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    server = ServerProcess(tmp_path / "data", real=True)
    try:
        server.wait_until_ready()
        client = SignedClient(server.port)
        traced = {"traceparent": f"00-{PARENT}-00f067aa0ba902b7-01"}
        assert client.ask("POST", "/dbs", {"id": "d"}, traced).status == 201
        assert client.ask("GET", "/dbs/none").status == 404
        client.close()
        server.terminate()  # what waits is sent before the end
        code, _, errors = server.end()
    finally:
        server.close()
    assert code == 0, errors
    spans = [one for one in collector.spans() if _attributes(one).get("url.path") != "/"]
    named = {(one.name, _attributes(one)["url.path"]): one for one in spans}
    made = named["POST", "/dbs"]
    assert made.trace_id.hex() == PARENT, "a child of the caller's span"
    assert _attributes(made)["http.response.status_code"] == 201
    assert _attributes(made)["db.system.name"] == "azure.cosmosdb"
    assert float(_attributes(made)["azure.cosmosdb.operation.request_charge"]) > 0
    assert _attributes(named["GET", "/dbs/none"])["http.response.status_code"] == 404


def _attributes(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}
