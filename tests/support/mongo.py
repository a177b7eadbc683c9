"""MongoDB sessions for tests: without sockets (`Wire`), and on real ones for real drivers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any
from urllib.parse import quote

from pymongo import MongoClient

from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.core.streams import (
    Answer,
    Begun,
    ClientGone,
    Event,
    Hangup,
    Peer,
    Quick,
    Unintelligible,
    Work,
)
from armillary.api.mongo.service import Service
from armillary.api.mongo.settings import Settings
from armillary.api.mongo.wire.frames import OP_MSG, pack
from armillary.clock import VirtualClock
from armillary.encoding.bson.values import Document, decode, encode
from armillary.engine.base import Engine
from armillary.engine.memory import MemoryEngine
from armillary.store.catalog.accounts import AccountStore
from armillary.store.commands import HANDLERS
from armillary.testing.streams import run_to_end

PEER = Peer(False, None, "127.0.0.1:10255")


def make_service(engine: Engine | None = None, **settings: Any) -> Service:
    engine = engine or MemoryEngine(HANDLERS, clock=VirtualClock())
    gateway = Gateway(AccountStore(engine, random=Random(1)))
    return Service(gateway, Settings(require_login=False, **settings))


def message(document: Document, request_id: int = 1, flags: int = 0) -> bytes:
    body = flags.to_bytes(4, "little") + b"\x00" + encode(document)
    return pack(request_id, 0, OP_MSG, body)


def run_events(events: Any, send: Any) -> bool:
    """Whether the connection stays."""
    return all(run_event(event, send) for event in events)


def run_event(event: Event, send: Any) -> bool:
    if isinstance(event, Begun):
        event.future.exception()
        data = event.finish()
        event = event.otherwise if data is None else Answer(data)
    if isinstance(event, Quick):
        data = event.run()
        event = event.otherwise if data is None else Answer(data)
    if isinstance(event, Answer):
        send(event.data)
    elif isinstance(event, Work):
        try:
            with suppress(ClientGone):
                run_to_end(event, send)
        except Unintelligible:
            return False
    elif isinstance(event, Hangup):
        send(event.data)
        return False
    return True


class Wire:
    """One client, without a socket."""

    def __init__(self, service: Service | None = None) -> None:
        self.service = service or make_service()
        self.session = self.service.open(PEER)
        self.sent = b""

    def send(self, data: bytes) -> bytes:
        """What comes back; b"" and `closed` after a hang-up."""
        at_once = self.session.at_once(data)
        if at_once is not None:
            return at_once
        found: list[bytes] = []
        self.open = run_events(self.session.receive(data), found.append)
        return b"".join(found)

    def run(self, document: Document, database: str = "db") -> Document:
        data = self.send(message({**document, "$db": database}))
        assert data, "no reply"
        return decode(data[21:])


@contextmanager
def serving(service: Service) -> Iterator[int]:
    """The port of a small server with the sessions of a service."""
    loop = asyncio.new_event_loop()
    ready, ended = threading.Event(), asyncio.Event()
    ports: list[int] = []

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = "{}:{}".format(*writer.get_extra_info("sockname"))
        session = service.open(Peer(False, None, address))
        try:
            while data := await reader.read(65_536):
                reply = session.at_once(data)
                if reply is not None:
                    writer.write(reply)
                    continue
                for event in session.receive(data):
                    found: list[bytes] = []
                    stays = await asyncio.to_thread(run_event, event, found.append)
                    writer.write(b"".join(found))
                    if not stays:
                        return
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            session.close()
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(client, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        await ended.wait()
        server.close()
        tasks = [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()), daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield ports[0]
    finally:
        service.close()
        loop.call_soon_threadsafe(ended.set)
        thread.join(60)
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def uri(port: int, *, login: bool = True, key: str = EMULATOR_KEY, options: str = "") -> str:
    who = f"localhost:{quote(key, safe='')}@" if login else ""
    return f"mongodb://{who}127.0.0.1:{port}/?replicaSet=globaldb{options}"


@contextmanager
def connected(service: Service | None = None, **options: Any) -> Iterator[MongoClient[Document]]:
    """A real driver on a service."""
    service = service or make_service()
    login = service.settings.require_login
    with serving(service) as port:
        client: MongoClient[Document] = MongoClient(
            uri(port, login=login), serverSelectionTimeoutMS=60_000, **options
        )
        try:
            yield client
        finally:
            client.close()
