"""Bytes for a socket: streams of good requests, with some damage done to them, and plain noise."""

from __future__ import annotations

import re
import socket
from collections import Counter
from contextlib import suppress
from email.utils import formatdate
from random import Random

from tests.support import fuzz_mutations as damage
from tests.support.nosql import signature

from armillary.api.core.settings import EMULATOR_KEY

STATUS = re.compile(rb"^HTTP/1\.1 (\d{3}) ", re.MULTILINE)
ANSWER_SECONDS = 60.0  # a machine may be busy; a server that hangs takes for ever
LINES = (
    b"Content-Length: 5",
    b"Content-Length: -1",
    b"Content-Length: 99999999999999999999",
    b"Content-Length: 0x10",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: identity",
    b"Expect: 100-continue",
    b"Connection: close",
    b"Connection: Upgrade, HTTP2-Settings",
    b"Upgrade: h2c",
    b"Host: elsewhere",
    b"Host: localhost",
    b" folded: x",
    b"No colon",
    b": no name",
    b"X: " + b"y" * 70_000,
    b"X-\x00: z",
    b"Accept-Encoding: gzip",
)
STARTS = (
    b"GET / HTTP/1.1",
    b"GET http://localhost/dbs HTTP/1.1",
    b"OPTIONS * HTTP/1.1",
    b"CONNECT localhost:1 HTTP/1.1",
    b"PRI * HTTP/2.0",
    b"GET / HTTP/0.9",
    b"GET /",
    b"get / HTTP/1.1",
    b"BREW /pot HTTP/1.1",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1",
    b"HEAD /_armillary/health HTTP/1.0",
    b"HTTP/1.1 200 OK",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS begins so
    b"\x16",
)


def signed(method: str, path: str, body: bytes = b"", *extra: str) -> bytes:
    segments = path.strip("/").split("/")
    is_feed = len(segments) % 2 == 1
    kind = segments[-1] if is_feed else segments[-2]
    link = "/".join(segments[:-1] if is_feed else segments)
    date = formatdate(usegmt=True)
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        f"x-ms-date: {date}",
        "x-ms-version: 2020-07-15",
        f"authorization: {signature(EMULATOR_KEY, method, kind, link, date)}",
        f"Content-Length: {len(body)}",
        *extra,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


KEY = 'x-ms-documentdb-partitionkey: ["a"]'


def good(random: Random) -> bytes:
    match random.randrange(6):
        case 0:
            return b"GET /_armillary/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        case 1:
            return signed("GET", "/dbs/d/colls/c/docs/1", b"", KEY)
        case 4:
            return signed("POST", "/dbs", b'{"id":"e"}', "Expect: 100-continue")
        case 2:
            item = b'{"id":"%d","pk":"a"}' % random.randrange(100)
            upsert = "x-ms-documentdb-is-upsert: True"
            return signed("POST", "/dbs/d/colls/c/docs", item, KEY, upsert)
        case 3:
            pieces = b'4\r\n{"id\r\n6;a=b\r\n":"1"}\r\n0\r\nTrailer: x\r\n\r\n'
            head = signed("POST", "/dbs").replace(
                b"Content-Length: 0", b"Transfer-Encoding: chunked"
            )
            return head + pieces
        case _:
            return signed("GET", "/dbs/d/colls/c/docs", b"", KEY)


def stream(random: Random) -> bytes:
    """What one connection sends."""
    chance = random.random()
    if chance < 0.1:
        return random.randbytes(random.choice((1, 5, 300, 5000)))
    if chance < 0.35:
        lines = [random.choice(STARTS)]
        lines += [random.choice(LINES) for _ in range(random.randrange(5))]
        return b"\r\n".join(lines) + random.choice((b"", b"\r\n\r\n", b"\n\n", b"\r\n\r\nhello"))
    whole = b"".join(good(random) for _ in range(random.randint(1, 4)))
    if chance < 0.4:
        return whole * 40
    if chance < 0.6:  # a line put in somewhere
        lines = whole.split(b"\r\n")
        lines.insert(random.randrange(1, len(lines)), random.choice(LINES))
        return b"\r\n".join(lines)
    return damage.cut(random, whole) if chance < 0.95 else whole


def pieces(random: Random, data: bytes) -> list[bytes]:
    cuts = sorted(random.randint(0, len(data)) for _ in range(random.choice((0, 0, 1, 3, 9))))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def converse(port: int, random: Random, data: bytes) -> Counter[int]:
    """Send it all, hear it all. The statuses of the answers; TimeoutError: the server hangs."""
    heard = b""
    with socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for piece in pieces(random, data):
                client.sendall(piece)
            if random.random() < 0.05:
                return Counter()  # gone without a word
            with suppress(OSError):  # the server may have closed it whole already
                client.shutdown(socket.SHUT_WR)
            while more := client.recv(65_536):
                heard += more
        except ConnectionError:
            pass  # refused and closed while we still sent
    return Counter(int(status) for status in STATUS.findall(heard))
