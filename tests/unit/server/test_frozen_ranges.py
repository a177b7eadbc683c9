"""A range that is frozen by a split holds up its own requests and no others. Without this the event
loop would wait for it, and with it every client of the worker.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.moving import step_to
from tests.support.nosql import pk
from tests.support.server_process import ServerProcess
from tests.support.signed_http import SignedClient

from armillary.account import open_account
from armillary.store.moves.runner import Move, begin_split

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="two processes on one folder")

OTHERS = ("--mongo-port", "off", "--table-port", "off", "--gremlin-port", "off")
KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}


@contextmanager
def beating(move: Move) -> Iterator[None]:
    """Its runner is alive, and takes its time."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(0.5):
            move.beat()

    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(beat)
        try:
            yield
        finally:
            ended.set()
            going.result()


def read_alone(port: int, container: str, item: str, key: str) -> int:
    """The status, over a connection of its own."""
    client = SignedClient(port)
    try:
        return client.read(container, item, key).status
    finally:
        client.close()


def delete_alone(port: int, container: str, item: str, key: str) -> int:
    client = SignedClient(port)
    try:
        return client.ask("DELETE", f"/{container}/docs/{item}", None, pk(key)).status
    finally:
        client.close()


def test_reads_of_others_go_on_while_a_range_is_frozen(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", real=True, options=OTHERS)
    try:
        server.wait_until_ready()
        client = SignedClient(server.port)
        assert client.ask("POST", "/dbs", {"id": "d"}).status == 201
        for name in ("moving", "still"):
            made = {"id": name, "partitionKey": KEY}
            assert client.ask("POST", "/dbs/d/colls", made).status == 201
            for number in range(20):
                item = {"id": "1", "pk": f"k{number}"}
                assert client.create(f"dbs/d/colls/{name}", item).status == 201
        with open_account(tmp_path / "data", housekeeping=False) as account:
            move = begin_split(account._store.container("d", "moving"), 0)
            step_to(move, "drain")
            with ThreadPoolExecutor(6) as pool:
                with beating(move):
                    frozen = [
                        pool.submit(read_alone, server.port, "dbs/d/colls/moving", "1", "k3")
                        for _ in range(4)
                    ]
                    refused = [
                        pool.submit(delete_alone, server.port, "dbs/d/colls/moving", "none", "k3")
                        for _ in range(2)
                    ]
                    for number in range(20):
                        assert client.read("dbs/d/colls/still", "1", f"k{number}").status == 200
                    assert not any(one.done() for one in frozen), "they wait for the range"
                move.run()
                assert [one.result() for one in frozen] == [200] * 4
                assert [one.result() for one in refused] == [404] * 2
        client.close()
    finally:
        server.close()
