"""A server that is asked to stop ends, whatever its writer does. Without these a writer that is
stopped, or that hangs in its disk, would keep it for ever.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.server_process import ServerProcess, children_of
from tests.support.signed_http import SignedClient
from tests.support.waiting import until

from armillary.server.process.ending import EXIT_FAILED, Ending

OTHERS = ("--mongo-port", "off", "--table-port", "off", "--gremlin-port", "off")
KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}


def ask_and_leave(port: int) -> None:
    """Creates whose clients reset their connections: the commands are on their way all the same.
    The server commits one that is alone without its writer, so several come at once."""

    def waits(name: str) -> bool:
        client = SignedClient(port, timeout_s=1)
        try:
            client.create("dbs/d/colls/c", {"id": name, "pk": "a"})
        except TimeoutError:
            sock = client._connection.sock
            assert sock is not None
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return True
        finally:
            client.close()
        return False

    with ThreadPoolExecutor(8) as pool:
        until(lambda: any(pool.map(waits, "abcdefgh")))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc, needs SIGSTOP")
def test_a_writer_that_is_stopped_does_not_keep_the_server(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", real=True, options=OTHERS)
    try:
        server.wait_until_ready()
        client = SignedClient(server.port)
        assert client.ask("POST", "/dbs", {"id": "d"}).status == 201
        made = {"id": "c", "partitionKey": KEY}
        assert client.ask("POST", "/dbs/d/colls", made).status == 201
        client.close()
        (writer,) = (
            p for p, what in children_of(server.process.pid).items() if "armillary-writer" in what
        )
        os.kill(writer, signal.SIGSTOP)
        ask_and_leave(server.port)
        server.terminate()
        code, _, errors = server.end()
        assert code == EXIT_FAILED
        assert "the writer process does not answer; killing it" in errors
        assert "Traceback" not in errors
    finally:
        server.close()


def test_what_ends_in_time_is_left_alone() -> None:
    left: list[int] = []
    killed = threading.Event()
    ending = Ending(killed.set, seconds=60, leave=left.append)
    ending.begin()
    ending.done()
    assert not killed.is_set()
    assert not left


def test_a_process_that_hangs_is_left_after_its_writer_was_killed() -> None:
    left: list[int] = []
    gone, killed = threading.Event(), threading.Event()

    def leave(code: int) -> None:
        left.append(code)
        gone.set()

    Ending(killed.set, seconds=0.01, leave=leave).begin()
    assert gone.wait(60)
    assert killed.is_set()
    assert left == [EXIT_FAILED]
