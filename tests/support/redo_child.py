"""A process of a data folder with a redo log, to be killed; or one that only looks.

    redo_child.py write FOLDER STEP PASSES OWNER SEED   threads that write numbers of their own
    redo_child.py look FOLDER                           says what is wrong, until its input ends

A writer says, one line each, `i <thread> <number>` before a command and `a <thread> <number>` when
it was acknowledged. It dies at the PASSES-th time STEP is reached (steps.py), or when it is killed.
Number n of a thread counts one up, puts a row of a packed and one of a plain kind, changes a row,
deletes those of an earlier number, and is now and then too large for a record: so half a command, a
lost one and a repeated one show.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.support.commands import HANDLERS, LAST, command, first_rows
from tests.support.crash_child import Suicide

from armillary import steps
from armillary.engine.base import Reader
from armillary.engine.lmdb.engine import LmdbEngine, LmdbStore

PACKED, PLAIN = b"\x31", b"\x41"
THREADS = 3
SPACES = (1, 2)
BIG_EVERY = 37  # a group that is too large for a record


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def name_of(owner: str, thread: int) -> bytes:
    return f"{owner}{thread}".encode()


def operations(name: bytes, number: int) -> list[tuple[object, ...]]:
    """Of one command."""
    digits = b"%08d" % number
    rows = [(PACKED + name + digits, b""), (PLAIN + name + digits, digits)]
    if number > 2:
        rows.append((PLAIN + name + b"last", digits))
    made: list[tuple[object, ...]] = [("put_many", rows), ("count", b"\x42" + name)]
    if number % 3 == 0:
        made += [("delete", kind + name + b"%08d" % (number - 2)) for kind in (PACKED, PLAIN)]
    if number % BIG_EVERY == 0:
        made.append(("put", b"\x43" + name, digits * 40_000))
    return made


def rows_after(name: bytes, number: int) -> dict[bytes, bytes]:
    """Of one thread in one space, when its last number is this."""
    rows: dict[bytes, bytes] = {}
    for one in range(1, number + 1):
        digits = b"%08d" % one
        if (one + 2) % 3 != 0 or one + 2 > number:
            rows[PACKED + name + digits] = b""
            rows[PLAIN + name + digits] = digits
    if number:
        rows[b"\x42" + name] = b"%d" % number
    if number > 2:
        rows[PLAIN + name + b"last"] = b"%08d" % number
    if number >= BIG_EVERY:
        rows[b"\x43" + name] = b"%08d" % (number // BIG_EVERY * BIG_EVERY) * 40_000
    return rows


def last_of(reader: Reader, name: bytes) -> int:
    return int(reader.get(b"\x42" + name) or 0)


def names() -> Iterator[bytes]:
    for owner in "xy":
        for thread in range(THREADS):
            yield name_of(owner, thread)


def wrong_in(reader: Reader) -> str:
    """What a snapshot of one space can't be."""
    rows = dict(reader.scan(b"\x01", LAST))
    expected: dict[bytes, bytes] = {}
    for name in names():
        expected |= rows_after(name, last_of(reader, name))
    if rows != expected:
        more, less = sorted(rows.items() - expected.items()), expected.items() - rows.items()
        return f"there is {more[:3]} and not {sorted(less)[:3]}"
    if [key for key, _ in reader.scan(b"\x01", LAST, reverse=True)] != sorted(rows)[::-1]:
        return "backwards it is another one"
    return ""


def write(folder: Path, owner: str, seed: int) -> None:
    engine = LmdbEngine(folder, HANDLERS, packed=PACKED)
    for space in SPACES:
        if space not in engine.spaces():
            engine.create_space(space, first_rows())
    say("ready")

    def work(thread: int) -> None:
        name, random = name_of(owner, thread), Random(seed + thread)
        number = {}
        for space in SPACES:
            with engine.read(space) as reader:
                number[space] = last_of(reader, name)
        while True:
            space = random.choice(SPACES)
            number[space] += 1
            say(f"i {space} {name.decode()} {number[space]}")
            engine.submit_now(space, command(*operations(name, number[space]))).result()
            say(f"a {space} {name.decode()} {number[space]}")
            if random.random() < 0.02:
                threading.Event().wait(0.008)  # long enough for a pause

    threads = [threading.Thread(target=work, args=(one,)) for one in range(THREADS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def look(folder: Path) -> None:
    """Whole snapshots, and none older than what was seen before."""
    store = LmdbStore(folder, packed=PACKED)
    over = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=listen, daemon=True).start()
    say("ready")
    seen: dict[tuple[int, bytes], int] = {}
    looks = 0
    while not over.is_set():
        for space in SPACES:
            if space not in store.spaces():
                continue
            with store.read(space) as reader:
                if wrong := wrong_in(reader) if looks % 8 == 0 else "":
                    say(f"space {space}: {wrong}")
                    return
                found = {name: last_of(reader, name) for name in names()}
            for name in names():
                key = b"\x42" + name
                _, first, _ = store.read_via(space, key, PLAIN)
                quick, before = int(first or 0), seen.get((space, name), 0)
                if not before <= found[name] <= quick:
                    say(f"space {space}, {name!r}: {before}, then {found[name]}, then {quick}")
                    return
                seen[space, name] = quick
        looks += 1
    say(f"looked {looks}")
    store.close()


def main() -> None:
    work, folder, *rest = sys.argv[1:]
    if work == "look":
        look(Path(folder))
        return
    step, passes, owner, seed = rest
    if step != "-":
        steps.listen(Suicide(step, int(passes)))
    write(Path(folder), owner, int(seed))


if __name__ == "__main__":
    main()
