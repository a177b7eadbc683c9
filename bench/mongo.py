"""MongoDB: inserts, point finds and indexed finds through PyMongo, at 1 and 32 connections.

    python bench/mongo.py [--ferretdb] [--peer mongodb://…] [--seconds 3]
    python bench/mongo.py --find                      only the last line

A peer is measured in the same run with the same clients, in turns; the table has both and their
ratio, and the processor time per operation of each server, all its processes together. `--ferretdb`
builds and starts FerretDB 1.24 on SQLite (bench/ferretdb; needs Go; `ARMILLARY_FERRETDB` names a
program that was built before). Our server is started on a
folder of its own, durable, without throttling. Where strace is, a line says how often each server
syncs the disk for a hundred inserts, one after the other: whether like is compared with like. For
inserts there is a third column beside a peer, `relaxed`: ours without waiting for the disk.

The last lines compare a point find with a bare server, which takes frames apart and answers each
with the same bytes: processor time of the server process per find, sent by one client of ours that
neither encodes nor decodes, over 1 connection and over 32 that ask together. At 1 connection both
servers sleep between two requests, and find cold caches when they wake: a busier machine, which
wakes them sooner, shows a better ratio. At 32 they have something to do, as they have under load.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pymongo import MongoClient
from tests.support.ferretdb import ferretdb_process

from armillary.api.mongo.wire.frames import OP_MSG, FrameReader, pack
from armillary.encoding.bson.values import decode, encode
from armillary.server.loops import new_loop

Collection = Any
DOCUMENTS = 10_000


def insert_one(items: Collection, number: int) -> None:
    items.insert_one({"name": "ada", "n": number, "tags": ["a", "b"], "at": {"x": number}})


def insert_many(items: Collection, number: int) -> None:
    items.insert_many([{"name": "ada", "n": number, "k": k} for k in range(100)])


def find_by_id(items: Collection, number: int) -> None:
    number %= DOCUMENTS
    assert items.find_one({"_id": number, "shard": number % 100}) is not None


def find_ten(items: Collection, number: int) -> None:
    assert len(list(items.find({"group": number % (DOCUMENTS // 10)}))) == 10


WORK: dict[str, tuple[str, Callable[[Collection, int], None]]] = {
    "insert_one": ("written", insert_one),
    "insert_many(100)": ("bulk", insert_many),
    "find by _id and shard key": ("read", find_by_id),
    "indexed find of 10": ("read", find_ten),
}


def rate(
    client: Any, pid: int | None, name: str, connections: int, seconds: float
) -> tuple[float, float]:
    """Operations in a second; microseconds of processor time that the server took for each."""
    where, run = WORK[name]
    before = 0.0 if pid is None else sum(map(cpu_seconds, processes(pid)))
    items = client.bench[where]
    done = [0] * connections
    end = time.monotonic() + seconds

    def load(place: int) -> None:
        number = place
        while time.monotonic() < end:
            run(items, number)
            done[place] += 1
            number += connections

    threads = [threading.Thread(target=load, args=(place,)) for place in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = 0.0 if pid is None else sum(map(cpu_seconds, processes(pid))) - before
    return sum(done) / seconds, spent / max(1, sum(done)) * 1e6


def processes(pid: int) -> list[int]:
    """A process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(found for one in children for found in processes(int(one)))]


def syncs(client: Any, pid: int, inserts: int = 100) -> str:
    """How often a server syncs the disk for inserts that follow each other."""
    if shutil.which("strace") is None:
        return "not counted (no strace)"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "calls"
        calls = "trace=fsync,fdatasync,msync,sync_file_range"
        attached = [part for one in processes(pid) for part in ("-p", str(one))]
        tracer = subprocess.Popen(
            ["strace", "-f", "-e", calls, "-o", str(file), *attached],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert tracer.stderr is not None
        for _ in attached[::2]:
            tracer.stderr.readline()  # it says when it has attached
        for number in range(inserts):
            insert_one(client.bench.written, number)
        tracer.send_signal(signal.SIGINT)
        tracer.wait(30)
        names = re.findall(r"\b(fsync|fdatasync|msync|sync_file_range)\(", file.read_text())
        return ", ".join(f"{names.count(one)} {one}" for one in sorted(set(names))) or "none"


def fill(client: Any, *, sharded: bool) -> None:
    client.drop_database("bench")
    if sharded:
        client.admin.command({"shardCollection": "bench.read", "key": {"shard": "hashed"}})
    read = client.bench.read
    read.create_index("group")
    for start in range(0, DOCUMENTS, 1000):
        read.insert_many(
            [
                {"_id": n, "shard": n % 100, "group": n // 10, "text": "x" * 200}
                for n in range(start, start + 1000)
            ],
            ordered=False,
        )
    client.bench.written.insert_one({"_id": "first"})
    client.bench.bulk.insert_one({"_id": "first"})


@contextmanager
def armillary(durability: str = "full") -> Iterator[tuple[int, str]]:
    """Process id and URI."""
    with tempfile.TemporaryDirectory() as folder:
        environ = os.environ | {
            "ARMILLARY_THROUGHPUT_ENFORCE": "off",
            "ARMILLARY_ENGINE_DURABILITY": durability,
        }
        ports = ["--port", "0", "--mongo-port", "0", "--table-port", "off", "--gremlin-port", "off"]
        server = subprocess.Popen(
            [sys.executable, "-m", "armillary", "serve", "--data", folder + "/data", *ports],
            stdout=subprocess.PIPE,
            text=True,
            env=environ,
        )
        try:
            assert server.stdout is not None
            uri = ""
            for line in server.stdout:
                found = re.search(r"(mongodb://\S+?)ssl=true&(\S+?)&tlsCAFile", line)
                if found:
                    uri = found[1] + found[2]
                if line.startswith("ready"):
                    break
            yield server.pid, uri
        finally:
            server.terminate()
            server.wait(30)


# --- beside a bare server -------------------------------------------------------------------------


class Bare(asyncio.Protocol):
    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._frames = FrameReader()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        for frame in self._frames.receive(data):
            self._transport.write(self._answer[:8] + struct.pack("<i", frame.request_id)
                                  + self._answer[12:])  # fmt: skip


def bare_main(answer: Path) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        data = answer.read_bytes()
        server = await loop.create_server(lambda: Bare(data), "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    new_loop().run_until_complete(serve())


class Sender:
    """One connection that sends bytes and takes whole frames."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def take(self) -> bytes:
        found = self._socket.recv(65_536)
        while len(found) < int.from_bytes(found[:4], "little"):
            found += self._socket.recv(65_536)
        return found

    def ask(self, data: bytes) -> bytes:
        self.send(data)
        return self.take()


def ask_all(senders: Sequence[Sender], asked: Sequence[bytes]) -> None:
    """One request of each connection under way, all of them together."""
    for at in range(0, len(asked), len(senders)):
        pairs = [*zip(senders, asked[at : at + len(senders)], strict=False)]
        for sender, data in pairs:
            sender.send(data)
        for sender, _ in pairs:
            sender.take()


def message(command: dict[str, Any]) -> bytes:
    return pack(7, 0, OP_MSG, b"\x00" * 5 + encode(command))


def finds() -> list[bytes]:
    """What PyMongo sends."""
    session = {"id": b"0123456789abcdef"}
    return [
        message({"find": "read", "filter": {"_id": n, "shard": n % 100}, "limit": 1,
                 "singleBatch": True, "lsid": session, "$db": "bench"})
        for n in range(0, DOCUMENTS, 3)
    ]  # fmt: skip


def cpu_seconds(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def logged_in(uri: str) -> Sender:
    from urllib.parse import unquote

    found = re.match(r"mongodb://([^:]+):([^@]+)@[^:]+:(\d+)/", uri)
    assert found is not None
    sender = Sender(int(found[3]))
    payload = f"\0{found[1]}\0{unquote(found[2])}".encode()
    login = {"saslStart": 1, "mechanism": "PLAIN", "payload": payload, "$db": "admin"}
    assert decode(sender.ask(message(login))[21:])["ok"] == 1
    return sender


def beside_bare(pid: int, uri: str, rounds: int, connections: int) -> tuple[float, float]:
    """Microseconds of processor time per find: ours, the bare server's."""
    asked = finds()
    ours = [logged_in(uri) for _ in range(connections)]
    answer = ours[0].ask(asked[0])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer"
        file.write_bytes(answer)
        bare = subprocess.Popen(
            [sys.executable, __file__, "--bare", str(file)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert bare.stdout is not None
            port = int(bare.stdout.readline())
            servers = [(pid, ours), (bare.pid, [Sender(port) for _ in range(connections)])]
            spent = [0.0, 0.0]
            for _, senders in servers:
                ask_all(senders, asked)  # each connection has asked for some before
            for _ in range(rounds):
                for at, (process, senders) in enumerate(servers):
                    before = cpu_seconds(process)
                    ask_all(senders, asked)
                    spent[at] += cpu_seconds(process) - before
        finally:
            bare.terminate()
            bare.wait(30)
    ours_us, bare_us = (one / rounds / len(asked) * 1e6 for one in spent)
    return ours_us, bare_us


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ferretdb", action="store_true")
    parser.add_argument("--peer")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--find", action="store_true", help="only the point find and a bare server")
    parser.add_argument("--bare", help="be the bare server; answer with this file")
    asked = parser.parse_args()
    if asked.bare:
        bare_main(Path(asked.bare))
        return
    if asked.find:
        with armillary() as (pid, uri):
            filler: MongoClient[Any] = MongoClient(uri)
            fill(filler, sharded=True)
            filler.close()
            print_find(pid, uri, asked.rounds)
        return
    with ExitStack() as stack:
        pid, uri = stack.enter_context(armillary())
        servers: dict[str, tuple[int | None, str]] = {"armillary": (pid, uri)}
        if asked.ferretdb:
            servers["ferretdb"] = stack.enter_context(ferretdb_process())
        elif asked.peer:
            servers["peer"] = (None, asked.peer)
        if len(servers) > 1:
            servers["relaxed"] = stack.enter_context(armillary("relaxed"))
        load = os.getloadavg()[0]
        print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, load {load:.2f} before")
        clients: dict[str, MongoClient[Any]] = {
            name: MongoClient(one, maxPoolSize=64) for name, (_, one) in servers.items()
        }
        for name, client in clients.items():
            fill(client, sharded=name in ("armillary", "relaxed"))
        for name, (number, _) in servers.items():
            if number is not None:
                print(f"100 inserts by {name}: {syncs(clients[name], number)}", flush=True)
        print("| work | connections | server | rate/s | CPU µs | rate beside the peer | CPU |")
        for connections in (1, 32):
            for work in WORK:
                found: dict[str, tuple[float, float]] = {}
                for name, client in clients.items():
                    if name == "relaxed" and "insert" not in work:
                        continue
                    number = servers[name][0]
                    found[name] = rate(client, number, work, connections, asked.seconds)
                peer = next((found[one] for one in ("ferretdb", "peer") if one in found), None)
                for name, (per_s, us) in found.items():
                    beside = ""
                    if peer is not None and found[name] is not peer:
                        beside = f"{per_s / max(peer[0], 0.01):.2f} | {us / max(peer[1], 0.01):.2f}"
                    shown = (work, connections, name, f"{per_s:,.1f}", f"{us:,.0f}", beside)
                    print(f"| {' | '.join(map(str, shown))} |", flush=True)
        for client in clients.values():
            client.close()
        print_find(pid, uri, asked.rounds)


def print_find(pid: int, uri: str, rounds: int) -> None:
    for connections in (1, 32):
        ours_us, bare_us = beside_bare(pid, uri, rounds, connections)
        print(f"point find, {connections} connections, server CPU: {ours_us:.1f} µs; "
              f"bare server: {bare_us:.1f} µs; bare / ours: {bare_us / ours_us:.2f}; "
              f"load {os.getloadavg()[0]:.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
