"""A server by its address or connection string, for commands: ours, or a Cosmos DB account.

    AccountEndpoint=https://….documents.azure.com:443/;AccountKey=…;
    http://localhost:8081                     with the key in ARMILLARY_KEY, or the emulator's

Requests are signed as any SDK signs them. A certificate is checked, except on this machine, where
a server has made its own. What is refused is raised as the `DbError` that means it.
"""

from __future__ import annotations

import http.client
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

import orjson

from armillary.api.core.client_signing import signed_headers
from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.core.signing import Signer
from armillary.errors import (
    BadInput,
    Conflict,
    DbError,
    Forbidden,
    Locked,
    NotFound,
    Throttled,
    TooLarge,
    Unauthorized,
    Unavailable,
)

KEY_VARIABLE: Final = "ARMILLARY_KEY"
KEY_ADVICE: Final = (
    "401: the server does not take this key. Give its own: set ARMILLARY_KEY, or say "
    "'AccountEndpoint=…;AccountKey=…;' in place of the address."
)
TIMEOUT_SECONDS: Final = 65.0
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
#: Statuses that mean one of our errors; the rest are a server that can't.
MEANING: Final[dict[int, type[DbError]]] = {
    400: BadInput,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    423: Locked,
    429: Throttled,
}


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Any


def is_remote(text: str) -> bool:
    return text.lower().startswith(("http://", "https://", "accountendpoint=", "accountkey="))


def connection_of(text: str) -> tuple[str, str]:
    """(endpoint, key) of a connection string or a plain address."""
    if text.lower().startswith(("http://", "https://")):
        return text.rstrip("/"), os.environ.get(KEY_VARIABLE, "").strip() or EMULATOR_KEY
    parts = dict(part.partition("=")[::2] for part in text.split(";") if part.strip())
    named = {name.strip().lower(): value.strip() for name, value in parts.items()}
    endpoint, key = named.get("accountendpoint"), named.get("accountkey")
    if not endpoint or not key:
        raise BadInput("A connection string has AccountEndpoint=…;AccountKey=…;.")
    return endpoint.rstrip("/"), key


def _is_from_environment(text: str) -> bool:
    """The key, where an address has none."""
    return bool(os.environ.get(KEY_VARIABLE)) and text.lower().startswith(("http://", "https://"))


def path_of(*names: str) -> str:
    return "/".join(quote(name, safe="") for name in names)


class Remote:
    """One connection. Close it, or use it in a `with` block."""

    def __init__(self, text: str) -> None:
        self.endpoint, self._key = connection_of(text)
        self._address = urlsplit(self.endpoint)
        if self._address.scheme not in ("http", "https") or not self._address.hostname:
            raise BadInput(f"{self.endpoint} is not the address of a server.")
        try:
            self._signer = Signer(self._key)
        except ValueError as error:
            whose = f"{KEY_VARIABLE} has a key that" if _is_from_environment(text) else "The key"
            raise BadInput(f"{whose} is not valid base64.") from error
        self._http: http.client.HTTPConnection | None = None

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """Something under `/_armillary/` of a server of ours."""
        headers = {"Authorization": f"Bearer {self._key}"}
        return self._send(method, f"/_armillary/{path}", headers, body).body

    def rest(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """A request of the NoSQL API."""
        own = signed_headers(self._signer, method, path)
        return self._send(method, f"/{path}", own | dict(headers or {}), body)

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _send(self, method: str, target: str, headers: dict[str, str], body: Any) -> Reply:
        content = b"" if body is None else orjson.dumps(body)
        try:
            response, data = self._once(method, target, headers, content)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            # An idle connection that the server has given up; nothing of this one was answered.
            self.close()
            response, data = self._tried(method, target, headers, content)
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        return read_reply(response.status, dict(response.getheaders()), data)

    def _tried(
        self, method: str, target: str, headers: dict[str, str], content: bytes
    ) -> tuple[http.client.HTTPResponse, bytes]:
        try:
            return self._once(method, target, headers, content)
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error

    def _once(
        self, method: str, target: str, headers: dict[str, str], content: bytes
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = self._connection()
        try:
            connection.request(method, target, content, headers)
            response = connection.getresponse()
            return response, response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def _connection(self) -> http.client.HTTPConnection:
        if self._http is None:
            host, port = self._address.hostname or "", self._address.port
            if self._address.scheme == "http":
                self._http = http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
            else:
                self._http = http.client.HTTPSConnection(
                    host, port, timeout=TIMEOUT_SECONDS, context=_trust(host)
                )
        return self._http

    def _unreachable(self, error: Exception) -> Unavailable:
        if isinstance(error, ConnectionRefusedError):
            why = "nothing listens there. Start a server with: armillary serve"
        else:
            why = str(getattr(error, "strerror", None) or error)
        return Unavailable(f"{self.endpoint} does not answer: {why}.")


def read_reply(status: int, headers: Mapping[str, str | None], data: bytes) -> Reply:
    """The answer, or the error that it means."""
    names = {name.lower(): value for name, value in headers.items() if value is not None}
    found = _json_of(data)
    if status >= 400:
        raise _refusal(status, found, names)
    return Reply(status, names, found)


def _trust(host: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if host in LOOPBACK:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _json_of(data: bytes) -> Any:
    try:
        return orjson.loads(data) if data else None
    except orjson.JSONDecodeError:
        return data.decode("utf-8", "replace")


def plain(text: str) -> str:
    """A message of the service without what is only for its operators."""
    first = re.split(r"\s*(?:\r\n|\n|, )?ActivityId: ", str(text))[0].strip()
    first = re.sub(r" Please contact https://azure\S+ [^.]*\.", "", first)
    found = re.fullmatch(r'Message: \{"Errors":\[(".*")\]\}\s*(.*)', first, re.DOTALL)
    if not found:
        return first
    return ". ".join(filter(None, (*orjson.loads(f"[{found[1]}]"), found[2])))


def _refusal(status: int, body: Any, headers: Mapping[str, str]) -> DbError:
    text = body.get("message") if isinstance(body, dict) else body
    kind = MEANING.get(status, Unavailable)
    text = f"{status}: {plain(text)}" if text else f"The server answered {status}."
    if status == 401:
        text = KEY_ADVICE
    wait = headers.get("x-ms-retry-after-ms", "")
    facts: dict[str, float] = {}
    if wait.replace(".", "", 1).isdigit():
        facts["retry_after_ms"] = float(wait)
    if (sub_status := headers.get("x-ms-substatus", "")).isdigit():
        facts["sub_status"] = int(sub_status)
    return kind(text, **facts)
