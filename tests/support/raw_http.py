"""A client that shows the bytes: answers out of a socket, one after the other."""

import json
import socket
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Answers:
    """Reads answers from a socket; `None` when the server has hung up."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._buffer = b""

    def next(self, *, head: bool = False) -> Answer | None:
        while b"\r\n\r\n" not in self._buffer:
            if not self._more():
                assert not self._buffer, self._buffer
                return None
        text, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        first, *lines = text.decode("latin-1").split("\r\n")
        pairs = (line.split(": ", 1) for line in lines)
        headers = {name.lower(): value for name, value in pairs}
        status = int(first.split(" ")[1])
        length = 0 if head or status < 200 else int(headers.get("content-length", 0))
        while len(self._buffer) < length:
            assert self._more(), "the answer was cut short"
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return Answer(status, headers, body)

    def get(self) -> Answer:
        answer = self.next()
        assert answer is not None, "the server hung up"
        return answer

    def _more(self) -> bool:
        try:
            piece = self._client.recv(65_536)
        except ConnectionResetError:
            return False
        self._buffer += piece
        return bool(piece)


def parse_answer(data: bytes) -> Answer:
    """A whole answer, and nothing after it."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    assert len(headers) == len(lines)
    assert len(body) == int(headers.get("content-length", 0))
    return Answer(int(first.split(" ")[1]), headers, body)


def get(target: str, *headers: str, method: str = "GET") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", *headers, "", ""]
    return "\r\n".join(lines).encode()


def post(target: str, body: bytes, *headers: str) -> bytes:
    return get(target, f"Content-Length: {len(body)}", *headers, method="POST") + body
