"""Items of a container behind a server, for import and export: ours, or a Cosmos DB account.

Writes go over several connections at once. A 429 is waited out, as SDKs do it; what is refused for
itself (no key, too large) is said of that item and the rest goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, Final

from armillary.commands.remote import Remote, path_of
from armillary.encoding.partition_key import PartitionKeyDefinition, key_of, parse_definition
from armillary.errors import BadInput, Conflict, Throttled, TooLarge, Unavailable
from armillary.operate.ports import ItemsPage
from armillary.values import UNDEFINED

CONNECTIONS: Final = 8
WAITS_MAX: Final = 60
WAIT_MS: Final = 100.0
#: Of one item; everything else would befall the others too.
OF_THE_ITEM: Final = (BadInput, Conflict, TooLarge)


class RemoteItems:
    """Use it in a `with` block."""

    def __init__(
        self,
        text: str,
        database: str,
        container: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path = path_of("dbs", database, "colls", container)
        self._sleep = sleep
        self._idle: SimpleQueue[Remote] = SimpleQueue()
        self._all = [Remote(text) for _ in range(CONNECTIONS)]
        for one in self._all:
            self._idle.put(one)
        try:
            self._definition = self._asked(lambda remote: remote.rest("GET", self._path)).body
        except BaseException:
            self.close()
            raise
        told = self._definition.get("partitionKey")
        self._key = None if told is None else parse_definition(told)

    def __enter__(self) -> RemoteItems:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        for one in self._all:
            one.close()

    @property
    def identity(self) -> str:
        return f"{self._all[0].endpoint} {self._definition['_rid']}"

    @property
    def partition_key(self) -> PartitionKeyDefinition:
        if self._key is None:
            raise BadInput("The container has no partition key.")
        return self._key

    def count(self) -> int | None:
        return None

    def read_page(self, max_items: int, continuation: str | None) -> ItemsPage:
        headers = {"x-ms-max-item-count": str(max_items)}
        if continuation is not None:
            headers["x-ms-continuation"] = continuation
        path = f"{self._path}/docs"
        reply = self._asked(lambda remote: remote.rest("GET", path, None, headers))
        return ItemsPage(reply.body["Documents"], reply.headers.get("x-ms-continuation"))

    def upsert_all(self, items: Sequence[dict[str, Any]]) -> list[str | None]:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            return list(pool.map(self._upsert, items))

    def _upsert(self, item: dict[str, Any]) -> str | None:
        path = f"{self._path}/docs"
        try:
            headers = {"x-ms-documentdb-is-upsert": "True"} | self._key_of(item)
            self._asked(lambda remote: remote.rest("POST", path, item, headers))
        except OF_THE_ITEM as refusal:
            return str(refusal)
        return None

    def _key_of(self, item: dict[str, Any]) -> dict[str, str]:
        """The header with the values of the key; a property that is not there is `{}`."""
        if self._key is None:
            return {}
        values: list[Any] = [{} if one is UNDEFINED else one for one in key_of(item, self._key)]
        return {"x-ms-documentdb-partitionkey": json.dumps(values)}

    def _asked(self, ask: Callable[[Remote], Any]) -> Any:
        with self._connection() as remote:
            for _ in range(WAITS_MAX):
                try:
                    return ask(remote)
                except Throttled as refusal:
                    wait_ms = float(refusal.facts.get("retry_after_ms", WAIT_MS))
                self._sleep(wait_ms / 1000)
        raise Unavailable(f"The server still refused after {WAITS_MAX} waits (429).")

    @contextmanager
    def _connection(self) -> Iterator[Remote]:
        remote = self._idle.get()
        try:
            yield remote
        finally:
            self._idle.put(remote)
