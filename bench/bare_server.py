"""The least an HTTP server in Python can do: httptools on uvloop, the same bytes to every request.

What our servers are measured against, in one run on one machine (design.md, section 10). It parses
as ours do and knows nothing else: no bounds, no order of answers, no deadlines, no Date.

    python -m bench.bare_server 9000 600                 port, bytes of the body
    python -m bench.bare_server 9000 FILE [SERVER.PEM]   port, a whole answer; with TLS
"""

import asyncio
import ssl
import sys
from pathlib import Path
from typing import cast

import httptools

from armillary.server.loops import new_loop

#: As many headers as the answer to a point read has.
HEADERS = {
    "Content-Type": "application/json",
    "x-ms-activity-id": "00000000-0000-0000-0000-000000000000",
    "x-ms-request-charge": "1",
    "x-ms-session-token": "0:-1#12",
    "etag": '"00000000-0000-0000-0000-000000000000"',
    "x-ms-schemaversion": "1.18",
    "lsn": "12",
    "x-ms-gatewayversion": "2.0.0",
    "Date": "Sun, 15 Nov 2026 00:00:00 GMT",
}


def fixed_answer(body_bytes: int) -> bytes:
    lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in HEADERS.items())]
    lines += [f"Content-Length: {body_bytes}", "", ""]
    return "\r\n".join(lines).encode() + b"x" * body_bytes


class Bare(asyncio.Protocol):
    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        pass

    def on_header(self, name: bytes, value: bytes) -> None:
        pass

    def on_message_complete(self) -> None:
        assert self._transport is not None
        self._transport.write(self._answer)


def tls_context(server_pem: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server_pem)
    return context


async def serve(port: int, answer: bytes, context: ssl.SSLContext | None) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Bare(answer), "127.0.0.1", port, ssl=context)
    print(f"ready http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def run(port: str, answer: str, server_pem: str = "") -> None:
    told = fixed_answer(int(answer)) if answer.isdecimal() else Path(answer).read_bytes()
    context = tls_context(Path(server_pem)) if server_pem else None
    new_loop().run_until_complete(serve(int(port), told, context))


if __name__ == "__main__":
    run(*sys.argv[1:])
