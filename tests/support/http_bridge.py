"""A service behind a real port, with nothing but the standard library in between: SDKs can be tried
on the API alone. The server proper has tests of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from armillary.api.http.messages import Request, Response, Service


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    service: Service
    seen: list[Request]

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body)
        self.seen.append(request)
        self._send(self.service.handle(request))

    def __getattr__(self, name: str) -> Any:
        """`do_GET` and its like: every method is answered in one way."""
        if name.startswith("do_"):
            return self._any
        raise AttributeError(name)

    def _send(self, response: Response) -> None:
        self.send_response_only(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if response.status not in (204, 304):
            self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if response.status not in (204, 304):
            self.wfile.write(response.body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def bridged(service: Service) -> Iterator[tuple[str, list[Request]]]:
    """The address of a port that `service` answers on, and the requests that came."""
    seen: list[Request] = []
    handler = type("Handler", (_Handler,), {"service": service, "seen": seen})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
