"""MongoDB: inserts, point finds and indexed finds through PyMongo, at 1 and 32 connections.

    python bench/mongo.py [--peer mongodb://…] [--seconds 3]

A peer (FerretDB 1.24, say) is measured in the same run with the same clients; the table has both
and their ratio. Our server is started on a folder of its own, durable, without throttling.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from pymongo import MongoClient

Collection = Any
DOCUMENTS = 10_000


def insert_one(items: Collection, number: int) -> None:
    items.insert_one({"name": "ada", "n": number, "tags": ["a", "b"], "at": {"x": number}})


def insert_many(items: Collection, number: int) -> None:
    items.insert_many([{"name": "ada", "n": number, "k": k} for k in range(100)])


def find_by_id(items: Collection, number: int) -> None:
    assert items.find_one({"_id": number % DOCUMENTS}) is not None


def find_ten(items: Collection, number: int) -> None:
    assert len(list(items.find({"group": number % (DOCUMENTS // 10)}))) == 10


WORK: dict[str, tuple[str, Callable[[Collection, int], None]]] = {
    "insert_one": ("written", insert_one),
    "insert_many(100)": ("bulk", insert_many),
    "find by _id": ("read", find_by_id),
    "indexed find of 10": ("read", find_ten),
}


def rate(client: Any, name: str, connections: int, seconds: float) -> float:
    where, run = WORK[name]
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
    return sum(done) / seconds


def fill(client: Any) -> None:
    client.drop_database("bench")
    read = client.bench.read
    read.create_index("group")
    for start in range(0, DOCUMENTS, 1000):
        read.insert_many(
            [{"_id": n, "group": n // 10, "text": "x" * 200} for n in range(start, start + 1000)]
        )
    client.bench.written.insert_one({"_id": "first"})
    client.bench.bulk.insert_one({"_id": "first"})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer")
    parser.add_argument("--seconds", type=float, default=3.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environ = os.environ | {"ARMILLARY_THROUGHPUT_ENFORCE": "off"}
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
            names = {"armillary": uri} | ({"peer": asked.peer} if asked.peer else {})
            clients: dict[str, MongoClient[Any]] = {
                name: MongoClient(one, maxPoolSize=64) for name, one in names.items()
            }
            for client in clients.values():
                fill(client)
            print("| work | connections | " + " | ".join(f"{name}/s" for name in clients) + " |")
            for connections in (1, 32):
                for name in WORK:
                    rates = [rate(c, name, connections, asked.seconds) for c in clients.values()]
                    shown = " | ".join(f"{one:,.0f}" for one in rates)
                    ratio = f" | {rates[0] / rates[1]:.2f}" if len(rates) > 1 else ""
                    print(f"| {name} | {connections} | {shown}{ratio} |", flush=True)
            for client in clients.values():
                client.close()
        finally:
            server.terminate()
            server.wait(30)


if __name__ == "__main__":
    main()
