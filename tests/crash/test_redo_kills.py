"""Without these, what was acknowledged by a record of the redo log could be gone after a kill, be
there twice or by half; or another process see it come and go.

SIGKILL leaves the page cache alone. What a loss of power leaves is in tests/property.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

import pytest
from tests.support.children import start_child
from tests.support.commands import HANDLERS, LAST, command, first_rows
from tests.support.crash import start_python
from tests.support.redo_child import PACKED, SPACES, last_of, rows_after, wrong_in

from armillary.engine.lmdb.engine import LmdbEngine
from armillary.engine.lmdb.redo_log import HEAD_PAGE, REDO_NAME

SEED = 4
STEPS = [
    "group.begin",
    "group.applied",
    "group.committed",
    "group.acknowledged",
    "redo.applied",
    "redo.committed",
    "redo.flushed",
]
CHILD = "tests.support.redo_child"
NAMES = tuple[int, str]


class Writer:
    """A child that writes until it dies, and what it said."""

    def __init__(self, folder: Path, owner: str, step: str = "-", passes: int = 1) -> None:
        seed = str(SEED + passes)
        self.child = start_python(CHILD, "write", str(folder), step, str(passes), owner, seed)
        self.ready = threading.Event()
        self.begun: dict[NAMES, int] = {}
        self.sure: dict[NAMES, int] = {}
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            said, *rest = line.decode().split()
            if said == "ready":
                self.ready.set()
            else:
                space, name, number = rest
                {"i": self.begun, "a": self.sure}[said][int(space), name] = int(number)

    def wait_for(self, count: int) -> None:
        """Until so many commands were acknowledged since it began."""
        while sum(self.sure.values()) < count and self.child.poll() is None:
            time.sleep(0.001)

    def kill(self) -> None:
        self.child.kill()
        self.end()

    def end(self) -> None:
        self.child.wait(60)
        self._thread.join()
        assert self.child.stderr is not None
        errors = self.child.stderr.read().decode()
        for pipe in (self.child.stdin, self.child.stdout, self.child.stderr):
            assert pipe is not None
            pipe.close()
        assert self.child.returncode == -signal.SIGKILL, errors[-2_000:]


class Eyes:
    """Another process that reads the folder meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.child = start_python(CHILD, "look", str(folder))
        assert self.child.stdout is not None
        assert self.child.stdout.readline() == b"ready\n"

    def close(self) -> int:
        """How often it looked."""
        said, errors = self.child.communicate(timeout=60)
        assert self.child.returncode == 0, errors.decode()[-2_000:]
        last = said.decode().splitlines()[-1]
        assert last.startswith("looked "), said.decode()
        return int(last.split()[1])


def assert_sound(folder: Path, *writers: Writer) -> dict[NAMES, int]:
    """Each thread's commands are there up to one that was acknowledged, or the one after. The last
    numbers."""
    engine = LmdbEngine(folder, HANDLERS, packed=PACKED)
    found: dict[NAMES, int] = {}
    try:
        for space in SPACES:
            if space not in engine.spaces():
                assert not any(one.sure for one in writers)
                continue
            assert engine.check(space) == []
            with engine.read(space) as reader:
                assert wrong_in(reader) == ""
                for writer in writers:
                    for (where, name), begun in writer.begun.items():
                        if where == space:
                            last = last_of(reader, name.encode())
                            assert writer.sure.get((space, name), begun - 1) <= last <= begun
                            found[space, name] = last
    finally:
        engine.close()
    return found


def test_kills_at_every_step(tmp_path: Path) -> None:
    """Each goes on with what the one before has left, while another process looks."""
    folder, eyes = tmp_path / "data", None
    kills = [(step, passes) for step in STEPS for passes in (1, 3)]
    kills += [("group.applied", 60), ("group.committed", 60)]  # with a log that is longer
    Random(SEED).shuffle(kills)
    for step, passes in kills:
        writer = Writer(folder, "x", step, passes)
        writer.end()
        assert_sound(folder, writer)
        if eyes is None:
            eyes = Eyes(folder)
    assert eyes is not None
    assert eyes.close() > 0


def test_kills_at_random_moments(tmp_path: Path) -> None:
    folder, random = tmp_path / "data", Random(SEED)
    for number in range(8):
        writer = Writer(folder, "x")
        assert writer.ready.wait(60)
        before = sum(writer.sure.values())
        writer.wait_for(before + random.randrange(1, 60))
        time.sleep(random.random() * 0.004)
        writer.kill()
        if number % 2:
            lose_head(folder)
        assert_sound(folder, writer)


def lose_head(folder: Path) -> None:
    """Of a loss of power only this is left to see: what was written and not synced is the same."""
    with (folder / REDO_NAME).open("rb+") as file:
        file.write(bytes(HEAD_PAGE))


def test_a_second_writer_takes_over_from_a_killed_one(tmp_path: Path) -> None:
    """Both write all the time, each is killed in turn, and a third process looks."""
    folder = tmp_path / "data"
    writers = {"x": Writer(folder, "x")}
    assert writers["x"].ready.wait(60)
    writers["y"] = Writer(folder, "y")
    assert writers["y"].ready.wait(60)
    eyes = Eyes(folder)
    random = Random(SEED)
    for number in range(6):
        owner, survivor = "xy" if number % 2 else "yx"
        before = sum(writers[survivor].sure.values())
        writers[owner].wait_for(5)
        time.sleep(random.random() * 0.02)
        dead = writers[owner]
        dead.kill()
        # The other one goes on, above what was acknowledged to the dead one.
        writers[survivor].wait_for(before + 5)
        assert writers[survivor].child.poll() is None
        writers[owner] = Writer(folder, owner)
        assert writers[owner].ready.wait(60)
        writers[owner].wait_for(1)
        for key, begun in writers[owner].begun.items():
            assert begun > dead.sure.get(key, 0), "it began below what it had been told"
    for one in writers.values():
        one.kill()
    assert_sound(folder, *writers.values())
    assert eyes.close() > 0


def test_a_folder_that_is_copied_after_a_kill_is_the_same(tmp_path: Path) -> None:
    """With the files that count, and nothing that processes share."""
    folder, copy = tmp_path / "data", tmp_path / "copy"
    writer = Writer(folder, "x", "group.acknowledged", 30)
    writer.end()
    copy.mkdir()
    for name in ("FORMAT", "data.mdb", REDO_NAME):
        shutil.copy(folder / name, copy / name)
    lose_head(copy)
    assert assert_sound(copy, writer) == assert_sound(folder, writer)


def test_the_model_knows_half_a_command() -> None:
    """The test of the test."""

    class Half:
        def __init__(self, rows: dict[bytes, bytes]) -> None:
            self._rows = rows
            self.get = rows.get

        def scan(self, start: bytes, end: bytes, *, reverse: bool = False) -> object:
            return sorted(self._rows.items(), reverse=reverse)

    rows = rows_after(b"x0", 40) | rows_after(b"y1", 7)
    assert wrong_in(Half(rows)) == ""  # type: ignore[arg-type]
    for key in rows:
        less = {one: value for one, value in rows.items() if one != key}
        assert wrong_in(Half(less)) != ""  # type: ignore[arg-type]


# --- a death in the middle of a commit of LMDB ----------------------------------------------------

KILL_SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* Dies right after the page that makes a commit of LMDB count, once the file KILL_WHEN exists. */
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    ssize_t done = real(fd, bytes, size, at);
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (at < 8192 && length > 8 && !strncmp(path + length - 8, "data.mdb", 8)
        && getenv("KILL_WHEN") && !access(getenv("KILL_WHEN"), F_OK)) kill(getpid(), SIGKILL);
    return done;
}
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    return pwrite64(fd, bytes, size, at);
}
"""

COMMIT = """
engine = LmdbEngine(folder, HANDLERS)
print("ready", flush=True)
sys.stdin.readline()
engine._commit._logs = False
engine.run(1, command(("count", b"n"), ("put", b"of the dead", b"1")))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="LD_PRELOAD of Linux")
def test_a_commit_that_a_process_died_in_is_below_the_log_of_the_next(tmp_path: Path) -> None:
    """LMDB has it on the disk, and has not told other processes. A log that began on top of the
    snapshot that they see went to LMDB above a commit that it did not know, and half of both was
    there: a count of one for two that had counted."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, shim = tmp_path / "kill.c", tmp_path / "kill.so"
    source.write_text(KILL_SHIM)
    command_line = [compiler, "-shared", "-fPIC", "-o", str(shim), str(source), "-ldl"]
    subprocess.run(command_line, check=True)
    folder, when = tmp_path / "data", tmp_path / "now"
    engine = LmdbEngine(folder, HANDLERS)
    try:
        engine.create_space(1, first_rows())
        engine.run(1, command(("put", b"a", b"1")))
        engine.flush()
        child = start_child(COMMIT, folder, preload=shim, KILL_WHEN=str(when))
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        when.touch()
        child.communicate("go\n", timeout=60)
        assert child.returncode == -signal.SIGKILL
        engine.run(1, command(("count", b"n"), ("put", b"of the living", b"1")))
        engine.flush()
        with engine.read(1) as reader:
            rows = dict(reader.scan(b"\x01", LAST))
    finally:
        engine.close()
    writers = [key for key in rows if key.startswith(b"of the")]
    assert b"of the living" in writers
    assert int(rows[b"n"]) == len(writers)
