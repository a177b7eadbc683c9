"""Clients that record a history over two servers, while databases fail over and servers are killed.

    client ──▶ server 1 or 2, another one after each few operations ──▶ primary, or at the level
                                                             Session the standby of its region
Each client is one session: it sends the tokens it was given. Keys come through a moving window, so
that clients meet at each and the history of a key stays short enough to be judged.
"""

from __future__ import annotations

import http.client
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from random import Random

from tests.support.failovers import CLIENT_SECONDS, CONTAINER
from tests.support.histories.record import CREATE, DELETE, READ, WRITE, Call, Recorder
from tests.support.nosql import pk
from tests.support.signed_http import Reply, SignedClient

STRONG_KINDS = [READ] * 9 + [WRITE] * 6 + [CREATE] * 2 + [DELETE] * 3
SESSION_KINDS = [READ] * 6 + [WRITE] * 4
WINDOW, PER_KEY = 4, 60
LOST = (OSError, http.client.HTTPException)
ITEM_LSN = "x-ms-item-lsn"


class RegisterClient(threading.Thread):
    def __init__(
        self,
        number: int,
        ports: Sequence[int],
        note: Callable[[], None],
        *,
        level: str,
        recorder: Recorder,
        counter: itertools.count[int],
    ) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self.stop = threading.Event()
        self.session = f"client {number}"
        self._level = level
        self._ports = list(ports)
        self._note = note
        self._recorder = recorder
        self._counter = counter
        self._chance = Random(number)
        self._tokens: dict[str, tuple[tuple[int, int], str]] = {}
        self._client: SignedClient | None = None

    def run(self) -> None:
        kinds = STRONG_KINDS if self._level == "Strong" else SESSION_KINDS
        while not self.stop.is_set():
            number = next(self._counter)
            key = f"k{number // PER_KEY + self._chance.randrange(WINDOW)}"
            kind = self._chance.choice(kinds)
            if number % 7 == 0:
                self._leave()
            value = None if kind in (READ, DELETE) else f"v{number}"
            call = self._recorder.invoke(self.session, key, kind, value)
            try:
                reply = self._ask(kind, key, value)
            except LOST:
                call.unknown()
                self._leave()
                time.sleep(0.02)
                continue
            self._judge(call, kind, reply)
        self._leave()

    def _ask(self, kind: str, key: str, value: str | None) -> Reply:
        if self._client is None:
            port = self._ports[self._chance.randrange(len(self._ports))]
            self._client = SignedClient(port, timeout_s=CLIENT_SECONDS)
        headers = pk(key) | {"x-ms-consistency-level": self._level}
        if self._tokens:
            headers["x-ms-session-token"] = ",".join(text for _, text in self._tokens.values())
        if kind == READ:
            return self._client.ask("GET", f"/{CONTAINER}/docs/{key}", None, headers)
        if kind == DELETE:
            return self._client.ask("DELETE", f"/{CONTAINER}/docs/{key}", None, headers)
        if kind == WRITE:
            headers["x-ms-documentdb-is-upsert"] = "true"
        body = {"id": key, "pk": key, "v": value}
        return self._client.ask("POST", f"/{CONTAINER}/docs", body, headers)

    def _judge(self, call: Call, kind: str, reply: Reply) -> None:
        absent = reply.status == 404 and reply.headers.get("x-ms-substatus", "0") == "0"
        if reply.status in (200, 201, 204) or (kind == READ and absent):
            self._remember(reply)
            self._note()
            if kind == READ:
                call.returned(None if absent else reply.json()["v"])
            else:
                call.returned(version=int(reply.headers[ITEM_LSN]))
        elif (kind == CREATE and reply.status == 409) or (kind == DELETE and absent):
            call.refused()
        else:
            assert reply.status in (404, 408, 410, 429, 449, 503), (reply.status, reply.body)
            call.unknown()
            self._leave()
            time.sleep(0.02)

    def _remember(self, reply: Reply) -> None:
        text = reply.headers.get("x-ms-session-token")
        if text is None:
            return
        ordinal, _, rest = text.partition(":")
        version, _, lsn = rest.partition("#")
        seen = (int(version), int(lsn))
        if ordinal not in self._tokens or self._tokens[ordinal][0] < seen:
            self._tokens[ordinal] = (seen, text)

    def _leave(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
