"""A real server on a disk that is full or read-only, and on a folder where files are damaged or in
use by another. Without these the first bad disk would show what nobody has tried: a start that
fails without a word, reads that fail because statistics can't be written, an empty store in the
place of lost data."""

from __future__ import annotations

import os
import shutil
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.fault_shim import build_fault_shim
from tests.support.server_process import ServerProcess
from tests.support.signed_http import Reply, SignedClient
from tests.support.waiting import until

import armillary
from armillary.engine.lmdb.engine import LmdbEngine

SECONDS = 120.0  # for anything at all: the machine may be busy
ITEMS = 20
CONTAINER = "dbs/d/colls/c"
GARBAGE = b"\x00garbage" * 2000

Serve = Callable[..., ServerProcess]
Damage = Callable[[Path], object]


class Client:
    """One request per connection, so that it fits any server."""

    def __init__(self, server: ServerProcess) -> None:
        self._port = server.port

    def _once(self, work: Callable[[SignedClient], Reply]) -> Reply:
        client = SignedClient(self._port, timeout_s=SECONDS)
        try:
            return work(client)
        finally:
            client.close()

    def create(self, id: str, **more: Any) -> Reply:
        return self._once(lambda one: one.create(CONTAINER, {"id": id, "pk": "a", **more}))

    def read(self, id: str) -> Reply:
        return self._once(lambda one: one.read(CONTAINER, id, "a"))

    def ask(self, method: str, target: str, body: Any) -> Reply:
        return self._once(lambda one: one.ask(method, target, body))

    def count(self) -> int:
        query = {"x-ms-documentdb-isquery": "True", "x-ms-documentdb-partitionkey": '["a"]'}
        body = {"query": "SELECT VALUE COUNT(1) FROM c"}
        answer = self._once(lambda one: one.ask("POST", f"/{CONTAINER}/docs", body, query))
        assert answer.status == 200, answer.body
        return int(answer.json()["Documents"][0])


def ended(server: ServerProcess) -> tuple[int, str]:
    server.terminate()
    code, _, errors = server.end()
    return code, errors


def refused(server: ServerProcess) -> str:
    """The one line that says why."""
    code, _, errors = server.end()
    assert code == 2, errors
    assert len(errors.splitlines()) == 1, errors
    return errors


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with some items in it, left cleanly."""
    data = tmp_path_factory.mktemp("whole") / "data"
    server = ServerProcess(data, real=True)
    try:
        server.wait_until_ready(SECONDS)
        client = Client(server)
        assert client.ask("POST", "/dbs", {"id": "d"}).status == 201
        key = {"paths": ["/pk"], "kind": "Hash"}
        made = client.ask("POST", "/dbs/d/colls", {"id": "c", "partitionKey": key})
        assert made.status == 201
        for number in range(ITEMS):
            assert client.create(str(number), text="x" * 2000).status == 201
        end = time.monotonic() + SECONDS
        while not (data / "tls" / "about.json").exists():  # made beside, on the first start
            assert time.monotonic() < end
            time.sleep(0.02)
        assert ended(server) == (0, "")
    finally:
        server.close()
    # What is left to merge would be merged while a server starts that is about to refuse.
    with armillary.open(data) as account:
        engine = account._engine
        assert isinstance(engine, LmdbEngine)
        until(lambda: not engine._commit.due)
    return data


@pytest.fixture
def data(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "data"))


@pytest.fixture
def serve(data: Path) -> Iterator[Serve]:
    servers: list[ServerProcess] = []

    def begin(ready: bool = True, **options: Any) -> ServerProcess:
        server = ServerProcess(data, real=True, **options)
        servers.append(server)
        if ready:
            server.wait_until_ready(SECONDS)
        return server

    yield begin
    for server in servers:
        server.close()


# --- damaged files --------------------------------------------------------------------------------


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def no_folder_for_counters(data: Path) -> None:
    shutil.rmtree(data / "counters")
    (data / "counters").write_text("")


REFUSED: dict[str, tuple[Damage, str]] = {
    "foreign stamp": (lambda data: (data / "FORMAT").write_bytes(GARBAGE), "FORMAT"),
    "empty stamp": (lambda data: (data / "FORMAT").write_bytes(b""), "FORMAT"),
    "newer stamp": (
        lambda data: (data / "FORMAT").write_text(
            '{"format": 99, "engine": "lmdb", "created_by": "9.9"}'
        ),
        "9.9 or newer",
    ),
    "foreign data": (lambda data: (data / "data.mdb").write_bytes(GARBAGE), "damaged"),
    "cut data": (lambda data: cut_in_half(data / "data.mdb"), "cut short. Restore a backup"),
    "empty data": (lambda data: (data / "data.mdb").write_bytes(b""), "Restore a backup"),
    "no data": (lambda data: (data / "data.mdb").unlink(), "Restore a backup"),
    "a file for counters": (no_folder_for_counters, "counters"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_damage_is_said_at_the_start_in_one_line_and_nothing_is_touched(
    name: str, data: Path, serve: Serve
) -> None:
    damage, says = REFUSED[name]
    damage(data)
    files = [data / "FORMAT", data / "data.mdb"]
    kept = {one: one.read_bytes() for one in files if one.exists()}
    assert says in refused(serve(ready=False))
    assert {one: one.read_bytes() for one in files if one.exists()} == kept


def test_two_workers_say_it_in_one_line_too(data: Path, serve: Serve) -> None:
    no_folder_for_counters(data)
    assert "counters" in refused(serve(ready=False, options=["--workers", "2"]))


@pytest.mark.parametrize(("damage", "workers"), [("garbage", "2"), ("half", "1"), ("empty", "1")])
def test_what_is_only_derived_is_made_again(
    damage: str, workers: str, data: Path, serve: Serve
) -> None:
    derived = ["ledger.bin", "controls.bin", "lock.mdb", "turnstile", "run.json"]
    (data / "run.json").write_text('{"pid": 1}')
    for path in [data / one for one in derived] + list((data / "counters").iterdir()):
        if damage == "half":
            cut_in_half(path)
        else:
            path.write_bytes(GARBAGE if damage == "garbage" else b"")
    server = serve(options=["--workers", workers])
    client = Client(server)
    assert client.count() == ITEMS
    assert client.create("more").status == 201
    code, errors = ended(server)
    assert code == 0
    said = {"garbage": 1, "half": 1, "empty": 0}[damage]
    assert errors.count("ledger.bin is damaged and is made anew") == said, errors


def test_a_damaged_key_of_the_certificate_makes_a_new_one(data: Path, serve: Serve) -> None:
    pem = data / "tls" / "server.pem"
    text = pem.read_bytes()
    pem.write_bytes(text[:60] + b"AAAA" + text[64:])  # the certificate below it is as it was
    server = serve()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with server.connect() as plain, context.wrap_socket(plain) as client:
        client.settimeout(SECONDS)
        client.sendall(b"GET /_armillary/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200")
    code, errors = ended(server)
    assert code == 0
    assert "is damaged" in errors


# --- the disk -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fault_shim(tmp_path_factory.mktemp("shim"))


def faults(shim: Path, **settings: object) -> dict[str, str]:
    return {"LD_PRELOAD": str(shim), **{name: str(one) for name, one in settings.items()}}


@pytest.mark.parametrize("sudden", [False, True], ids=["seen coming", "sudden"])
def test_a_full_disk_refuses_writes_serves_reads_and_passes(
    sudden: bool, data: Path, serve: Serve, shim: Path
) -> None:
    marker = data / "full"
    environ = faults(shim, FAULT_FULL=marker, **({"FAULT_SUDDEN": 1} if sudden else {}))
    server = serve(environ=environ)
    client = Client(server)
    assert client.create("before").status == 201
    marker.write_text("")
    taken = 0
    if sudden:
        # The redo log has its blocks. It takes some until LMDB has had to take one of them.
        for taken in range(1_000):
            if client.create(f"taken-{taken}", text="y" * 3000).status == 403:
                break
            time.sleep(0.02)
    for attempt in range(3):
        answer = client.create(f"refused-{attempt}", text="y" * 3000)
        assert answer.status == 403
        assert b"disk" in answer.body
    key = {"paths": ["/pk"], "kind": "Hash"}
    assert client.ask("POST", "/dbs/d/colls", {"id": "c2", "partitionKey": key}).status == 403
    # Longer than the time after which a request also writes statistics down.
    end = time.monotonic() + 6.0
    while time.monotonic() < end:
        assert client.read("3").status == 200
        time.sleep(0.1)
    assert client.count() == ITEMS + 1 + taken
    marker.unlink()
    assert client.create("after").status == 201
    assert client.count() == ITEMS + 2 + taken
    code, errors = ended(server)
    assert code == 0
    assert all("could not be applied: The disk is full" in line for line in errors.splitlines())
    again = serve()
    assert Client(again).count() == ITEMS + 2 + taken


def test_a_start_on_a_full_disk_says_so(data: Path, serve: Serve, shim: Path) -> None:
    marker = data / "full"
    marker.write_text("")
    line = refused(serve(ready=False, environ=faults(shim, FAULT_FULL=marker)))
    assert "No space left on device" in line
    assert str(data) in line
    marker.unlink()
    assert Client(serve()).count() == ITEMS


def test_a_read_only_folder_is_refused(data: Path, serve: Serve, shim: Path) -> None:
    line = refused(serve(ready=False, environ=faults(shim, FAULT_READONLY=data)))
    assert "Read-only file system" in line
    assert str(data) in line


# --- another server -------------------------------------------------------------------------------


def test_two_servers_with_other_settings_share_a_folder(data: Path, serve: Serve) -> None:
    """By design: what settings decide is decided per request or lies in the catalog."""
    first = serve()
    relaxed = {"ARMILLARY_ENGINE_DURABILITY": "relaxed"}
    small = ["--partition-bytes", "2MB", "--partition-ru", "1000", "--logical-bytes", "1MB"]
    second = serve(options=small, environ=relaxed)
    for number, server in enumerate((first, second)):
        assert Client(server).create(f"of-{number}").status == 201
    for server in (first, second):
        assert Client(server).count() == ITEMS + 2
    assert ended(second) == (0, "")
    assert Client(first).create("alone").status == 201
    assert ended(first) == (0, "")
