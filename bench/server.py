"""What the server itself costs: a service that answers fixed bytes, beside the bare server.

bounds, deadlines, order of answers, host check, header dictionary, one join ── and nothing else
"""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.bare_server import HEADERS
from bench.http_load import load, repeat

from armillary.api.http.messages import Request, Response, Service
from armillary.server.process.banner import TextBanner, say_at_once
from armillary.server.process.plan import make_plan
from armillary.server.process.run import run
from armillary.server.registry import ProtocolSpec

BODY_BYTES = 600
ANSWER = Response(200, {k: v for k, v in HEADERS.items() if k != "Date"}, b"x" * BODY_BYTES)
#: As a point read of an SDK looks.
REQUEST = (
    b"GET /dbs/shop/colls/orders/docs/0001 HTTP/1.1\r\nHost: localhost:8081\r\n"
    b"x-ms-date: Sun, 15 Nov 2026 00:00:00 GMT\r\nx-ms-version: 2020-07-15\r\n"
    b"authorization: type%3Dmaster%26ver%3D1.0%26sig%3DAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n"
    b'x-ms-documentdb-partitionkey: ["ada"]\r\nAccept: application/json\r\n'
    b"x-ms-consistency-level: Session\r\nUser-Agent: bench\r\nAccept-Encoding: identity\r\n\r\n"
)


class Fixed(Service):
    def is_quick(self, request: Request) -> bool:
        return True

    def handle(self, request: Request) -> Response:
        return ANSWER


class NoAccount:
    """What the service needs of an account: nothing."""

    def serve_loop(self, loop: Any) -> None: ...

    def close(self) -> None: ...


def open_nothing(engine: Any, settings: Any, **options: Any) -> NoAccount:
    return NoAccount()


def make_service(gateway: Any, settings: Any) -> Fixed:
    return Fixed()


def serve_fixed() -> None:
    with tempfile.TemporaryDirectory() as folder:
        plan = make_plan(
            environ={},
            data=Path(folder),
            engine=":memory:",
            port=0,
            opener="bench.server:open_nothing",
            protocols=(ProtocolSpec("fixed", "http", "bench.server:make_service"),),
        )
        run(plan, TextBanner(say_at_once), print)


def measure(command: list[str]) -> float:
    with subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        ready = next(line for line in child.stdout if line.startswith(b"ready"))
        seen = load(int(ready.rpartition(b":")[2]), repeat(REQUEST), connections=32, seconds=3.0)
        print(f"{command[0]:<20} {seen}", flush=True)
        child.terminate()
    return seen.answers_per_s


def main() -> None:
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    bare = measure(["bench.bare_server", "0", str(BODY_BYTES)])
    ours = measure(["bench.server", "serve"])
    print(f"ratio {ours / bare:.2f}")


if __name__ == "__main__":
    serve_fixed() if sys.argv[1:] == ["serve"] else main()
