"""Items of a container behind a server, for import and export: ours, or a Cosmos DB account.

Writes go over several connections at once, many operations per request, as the bulk mode of the
official SDKs sends them: those of one physical partition together. A 429 is waited out, as SDKs do
it; what is refused for itself (no key, too large) is said of that item and the rest goes on. An
operation that did not go through in a request of many is sent again alone, so that its own answer
counts.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

import orjson

from armillary.commands.remote import Remote, path_of
from armillary.encoding.hashing import locate
from armillary.encoding.partition_key import (
    PartitionKeyDefinition,
    check_key,
    key_of,
    parse_definition,
)
from armillary.errors import BadInput, Conflict, RangeGone, Throttled, TooLarge, Unavailable
from armillary.operate.ports import Finish, ItemsPage, keyed_by_chance, with_key
from armillary.values import UNDEFINED

CONNECTIONS: Final = 8
WAITS_MAX: Final = 60
WAIT_MS: Final = 100.0
#: Of one item; everything else would befall the others too.
OF_THE_ITEM: Final = (BadInput, Conflict, TooLarge)


REQUEST_OPERATIONS: Final = 100  # the most that one request may have
REQUEST_BYTES: Final = 1_000_000
BULK_HEADERS: Final = {
    "x-ms-cosmos-is-batch-request": "True",
    "x-ms-cosmos-batch-atomic": "False",
    "x-ms-cosmos-batch-continue-on-error": "True",
}


class _Sent(NamedTuple):
    at: int
    """Its position among the items."""
    key: str
    item: dict[str, Any]


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
            self._definition: dict[str, Any] = self._asked(
                lambda remote: remote.rest("GET", self._path)
            ).body
        except BaseException:
            self.close()
            raise
        given = self._definition.get("partitionKey")
        self._key = None if given is None else parse_definition(given)
        self._by_chance = keyed_by_chance(self._definition)

    def __enter__(self) -> RemoteItems:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        for one in self._all:
            one.close()

    @property
    def definition(self) -> dict[str, Any]:
        return self._definition

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

    def start_upserts(self, items: Sequence[dict[str, Any]]) -> Finish:
        answers = self._upsert_all(items)
        return lambda: answers

    def _upsert_all(self, items: Sequence[dict[str, Any]]) -> list[str | None]:
        answers: list[str | None] = [None] * len(items)
        requests, alone = self._requests(items)
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            for again in pool.map(self._upsert_many, requests):
                alone += again
            single = pool.map(self._upsert, [items[at] for at in alone])
            for at, answer in zip(alone, single, strict=True):
                answers[at] = answer
        return answers

    def _requests(
        self, items: Sequence[dict[str, Any]]
    ) -> tuple[list[tuple[str, list[_Sent]]], list[int]]:
        """Operations by physical partition, as many as go into one request; and the positions of
        items whose place is not known here."""
        ranges = self._ranges()
        starts = [start for start, _ in ranges]
        gathered: dict[str, list[_Sent]] = {}
        requests: list[tuple[str, list[_Sent]]] = []
        alone: list[int] = []
        sizes: dict[str, int] = {}
        for at, item in enumerate(items):
            try:
                values = () if self._key is None else key_of(item, self._key)
                if self._key is None or UNDEFINED in values or not ranges:
                    raise BadInput("The server finds its key.")
                epk, _ = locate(check_key(values, self._key), self._key)
                text = orjson.dumps(item)
            except (BadInput, TypeError, ValueError):
                alone.append(at)
                continue
            name = ranges[bisect_right(starts, epk.hex().upper()) - 1][1]
            held = gathered.setdefault(name, [])
            held.append(_Sent(at, orjson.dumps(values).decode(), item))
            sizes[name] = sizes.get(name, 0) + len(text)
            if len(held) >= REQUEST_OPERATIONS or sizes[name] >= REQUEST_BYTES:
                requests.append((name, gathered.pop(name)))
                sizes[name] = 0
        requests += gathered.items()
        return requests, alone

    def _ranges(self) -> list[tuple[str, str]]:
        """(first hash, id) of the physical partitions, in order."""
        reply = self._asked(lambda remote: remote.rest("GET", f"{self._path}/pkranges"))
        found = reply.body.get("PartitionKeyRanges", [])
        return sorted((one["minInclusive"], one["id"]) for one in found)

    def _upsert_many(self, request: tuple[str, list[_Sent]]) -> list[int]:
        """The positions of those that have to be sent again."""
        name, sent = request
        operations = [
            {
                "operationType": "Upsert",
                "partitionKey": one.key,
                "resourceBody": one.item,
                "minimalReturnPreference": True,
            }
            for one in sent
        ]
        headers = BULK_HEADERS | {"x-ms-documentdb-partitionkeyrangeid": name}
        path = f"{self._path}/docs"
        try:
            reply = self._asked(lambda remote: remote.rest("POST", path, operations, headers))
        except (*OF_THE_ITEM, RangeGone):
            return [one.at for one in sent]  # split since we asked, or one of them is to blame
        results = reply.body
        if not isinstance(results, list) or len(results) != len(sent):
            return [one.at for one in sent]
        return [
            one.at
            for one, result in zip(sent, results, strict=True)
            if not 200 <= int(result.get("statusCode", 0)) < 300
        ]

    def _upsert(self, item: dict[str, Any]) -> str | None:
        path = f"{self._path}/docs"
        keyed = with_key(self._by_chance, item)
        if isinstance(keyed, BadInput):
            return str(keyed)
        item = keyed
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
