"""A small service for tests of the server: it echoes, and it can be made to wait."""

import json
import threading

from armillary.api.nosql.messages import Request, Response


class EchoService:
    """`/quick…` is answered on the loop, all else in a thread. `/wait/NAME` waits for `let(NAME)`,
    `/large/BYTES` answers with that many bytes, `/bug` and `/split` are bugs of the service."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.threads: set[str] = set()
        self._gates: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def gate(self, name: str) -> threading.Event:
        with self._lock:
            return self._gates.setdefault(name, threading.Event())

    def is_quick(self, request: Request) -> bool:
        return request.target.startswith(("/quick", "/large"))

    def handle(self, request: Request) -> Response:
        self.requests.append(request)
        self.threads.add(threading.current_thread().name)
        match request.target.split("/")[1:]:
            case ["wait", name]:
                assert self.gate(name).wait(20)
            case ["large", size]:
                return Response(200, {}, b"x" * int(size))
            case ["bug"]:
                raise RuntimeError("planted")
            case ["split"]:
                return Response(200, {"X": "a\r\nY: b"})
            case ["status", status]:
                return Response(int(status), {}, b"body")
        return Response(200, {"Content-Type": "application/json"}, echo(request))


def echo(request: Request) -> bytes:
    return json.dumps(
        [request.method, request.target, request.body.decode("latin-1"), request.secure]
    ).encode()
