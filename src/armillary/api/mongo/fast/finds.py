"""Finds of one document by `_id` (and shard key), from bytes to bytes: decodes what
`commands/reading.py:find` decodes, asks the same of the store (`ContainerStore.read_at`) and puts
its reply together. HOT: once per point find; numbers in bench/mongo.py.

Every doubt (a miss, a moved range, a collection that is another one now, a fault that a test set, a
client that has not logged in) gives None, and the command takes the general path, which says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import orjson
from bson.int64 import Int64
from bson.objectid import ObjectId

from armillary.api.core.fast import keep
from armillary.api.mongo.call import Client
from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.fast.templates import BODY_AT, Template, template_of
from armillary.api.mongo.request_lines import log_command
from armillary.api.mongo.wire.frames import OP_MSG, Frame
from armillary.api.mongo.wire.messages import Request, parse
from armillary.encoding.bson.stored import from_item, item_id
from armillary.encoding.bson.values import encode, is_text
from armillary.encoding.documents import body_text, check_id
from armillary.engine.base import SpaceGone
from armillary.errors import DbError
from armillary.store.catalog.controls import FAULTS
from armillary.store.catalog.state import ContainerState, Spot

if TYPE_CHECKING:
    from armillary.api.mongo.service import Service

FIELDS: Final = frozenset(
    [
        "find",
        "filter",
        "limit",
        "singleBatch",
        "lsid",
        "$db",
        "$readPreference",
        "$clusterTime",
        "batchSize",
    ]
)
PLAIN: Final[dict[str, tuple[type, ...]]] = {
    "limit": (int, Int64),
    "batchSize": (int, Int64),
    "singleBatch": (bool,),
}
TEMPLATES_OF_CONNECTION_MAX: Final = 4
#: Of a worker: each has a compiled expression, and what it knows of keys.
TEMPLATES_MAX: Final = 64
SPOTS_OF_TEMPLATE_MAX: Final = 1_024

#: The reply up to its document, {cursor: {firstBatch: [, and from there to the time of the session.
_HEAD: Final = Struct("<iiii5si8si12si3s")
_CURSOR, _BATCH, _FIRST = b"\x03cursor\x00", b"\x04firstBatch\x00", b"\x030\x00"
_NO_FLAGS: Final = bytes(5)
_DONE: Final = b"\x01ok\x00" + Struct("<d").pack(1.0)
_INT32: Final = Struct("<i")
_INT64: Final = Struct("<q")


#: A value of a filter out of its bytes, and the id of an item out of those of an `_id`.
VALUES: Final[dict[type, Callable[[bytes], Any]]] = {
    int: lambda data: _INT32.unpack(data)[0],
    Int64: lambda data: Int64(_INT64.unpack(data)[0]),
    ObjectId: ObjectId,
    str: bytes.decode,
}
IDS: Final[dict[type, Callable[[bytes], bytes]]] = {
    int: lambda data: b"$n%d" % _INT32.unpack(data)[0],
    Int64: lambda data: b"$n%d" % _INT64.unpack(data)[0],
    ObjectId: lambda data: data.hex().encode(),
    str: lambda data: check_id(item_id(data.decode())).encode(),
}


class Find:
    """One kind of find in one collection, of all connections: what they share stays in the caches
    of the processor."""

    def __init__(self, service: Service, collection: Collection, request: Request, made: Template):
        query, path = request.command["filter"], ".".join(collection.shard or ())
        names = list(query)
        self._service = service
        self.collection = collection
        self._values = made.values
        self.pattern = made.pattern
        self._id_at = names.index("_id")
        self._id = IDS[type(query["_id"])]
        self._key_at = names.index(path) if path else None
        self._key = VALUES[type(query[path])] if path else None
        self._has_session = "lsid" in request.command
        self._state: ContainerState | None = None
        self._spots: dict[bytes, Spot] = {}
        namespace = collection.namespace.encode() + b"\x00"
        text = _INT32.pack(len(namespace)) + namespace
        self._tail = b"\x00\x12id\x00" + bytes(8) + b"\x02ns\x00" + text + b"\x00" + _DONE

    def answer(self, client: Client, data: bytes, replies: Iterator[int]) -> bytes | None:
        """The reply to a whole message. None: it is another one, or has to be asked for in the
        general path; nothing has happened."""
        values = self._values(data)
        if values is None:
            return None
        service, collection = self._service, self.collection
        store = collection.store
        if service.collections.known(collection.database, collection.name) is not collection:
            return None
        started = perf_counter()
        try:
            if store.known_state is not self._state:
                self._state = store.known_state
                self._spots.clear()
            key = b"" if self._key_at is None else values[self._key_at]
            spot = self._spots.get(key) or self._spot(key)
            value, _, _, charge_ru = store.read_at(spot, self._id(values[self._id_at]), final=False)
        except (DbError, MongoError, SpaceGone, ValueError):
            return None
        item = orjson.loads(body_text(value))
        client.statistics = ("find", charge_ru, (perf_counter() - started) * 1000)
        if service.gateway.settings.logs_requests:
            log_command(_request(data), 0, charge_ru, client.statistics[2])
        times = service.time_elements() if self._has_session else b""
        return self._reply(encode(from_item(item)), times, data, next(replies))

    def _spot(self, key: bytes) -> Spot:
        state = self._state
        assert state is not None
        given = () if self._key is None else self.collection.key_values(self._key(key))
        return keep(self._spots, key, state.spot(given), SPOTS_OF_TEMPLATE_MAX)

    def _reply(self, document: bytes, times: bytes, data: bytes, number: int) -> bytes:
        """What `cursor_reply` says, as bytes: tests compare it with `encode`."""
        inner = len(document) + len(self._tail) + 23
        head = _HEAD.pack(
            inner + len(times) + 34, number, _INT32.unpack_from(data, 4)[0], OP_MSG, _NO_FLAGS,
            inner + len(times) + 13, _CURSOR, inner - len(_DONE), _BATCH, len(document) + 8, _FIRST,
        )  # fmt: skip
        return b"".join((head, document, self._tail, times, b"\x00"))


class Finds:
    """The templates of one connection, the last used first."""

    def __init__(self, service: Service, client: Client, replies: Iterator[int]) -> None:
        self._service = service
        self._client = client
        self._replies = replies
        self._known: list[Find] = []
        self._faults = service.gateway.shared.cells
        self._is_on = service.gateway.settings.quick_reads
        self._needs_login = service.settings.require_login

    def answer(self, data: bytes) -> bytes | None:
        """The reply to a message that is like one before. None: nothing has happened."""
        if not self._known or self._faults[FAULTS]:
            return None
        if self._client.may_write is None and self._needs_login:
            return None
        for at, one in enumerate(self._known):
            reply = one.answer(self._client, data, self._replies)
            if reply is not None:
                if at:
                    self._known.insert(0, self._known.pop(at))
                return reply
        return None

    def learn(self, request: Request) -> bool:
        """From a find that `answer` did not know; whether it may know it now."""
        if not self._is_on or request.compressor is not None:
            return False
        try:
            made = self._made(request)
        except (DbError, MongoError):
            return False
        if made is None:
            return False
        others = [one for one in self._known if one.pattern != made.pattern]
        self._known = [made, *others[: TEMPLATES_OF_CONNECTION_MAX - 1]]
        return True

    def _made(self, request: Request) -> Find | None:
        command = request.command
        query, name = command.get("filter"), command["find"]
        if not isinstance(query, dict) or not is_text(name) or "_id" not in query:
            return None
        if not command.keys() <= FIELDS or not all(
            type(command[one]) in kinds for one, kinds in PLAIN.items() if one in command
        ):
            return None
        if command.get("batchSize", 1) < 1:
            return None
        collection = self._service.collections.known(request.database, name)
        if collection is None:
            return None
        path = {".".join(collection.shard)} if collection.shard else set()
        if query.keys() != {"_id"} | path:
            return None
        template = template_of(request)
        if template is None:
            return None
        shared = self._service.finds
        known = shared.get(template.pattern)  # which has the names of database and collection
        if known is not None and known.collection is collection:
            return known
        made = Find(self._service, collection, request, template)
        return keep(shared, template.pattern, made, TEMPLATES_MAX)


def _request(data: bytes) -> Request:
    _, number, _, opcode = (_INT32.unpack_from(data, at)[0] for at in range(0, BODY_AT, 4))
    return parse(Frame(number, opcode, data[BODY_AT:]))
