"""A process that writes to one space with tiny runs until it is killed; or opens an old folder.

    run_child.py write FOLDER STEP PASSES SEED FIRST    "a <number>" after each acknowledged commit
    run_child.py open FOLDER STEP PASSES                opens an account, waits until it is migrated

Dies at the PASSES-th time STEP is reached (steps.py).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from random import Random

from tests.support.commands import HANDLERS, command, first_rows
from tests.support.crash_child import Suicide
from tests.support.run_model import KEYS, KINDS, tiny
from tests.support.waiting import until

from armillary import steps
from armillary.engine.lmdb import engine as lmdb
from armillary.engine.lmdb import write as lmdb_write
from armillary.engine.lmdb.engine import LmdbEngine
from armillary.engine.opening import open_engine
from armillary.store.commands import HANDLERS as STORE_HANDLERS
from armillary.store.rows.layout import PACKED, SEALED

COMMITS = 60


def changes_of(seed: int, number: int) -> dict[bytes, bytes | None]:
    random = Random(f"{seed} {number}")
    return {
        key: b"%d" % number if random.random() < 0.7 else None
        for key in random.choices(KEYS, k=random.randrange(1, 9))
    }


def write(folder: Path, seed: int, first: int) -> None:
    engine = LmdbEngine(folder, HANDLERS, packed=KINDS)
    if 1 not in engine.spaces():
        engine.create_space(1, first_rows())
    os.write(1, b"ready\n")
    for number in range(first, first + COMMITS):
        changes = changes_of(seed, number)
        puts = [(key, value) for key, value in changes.items() if value is not None]
        gone = [key for key, value in changes.items() if value is None]
        os.write(1, b"i %d\n" % number)
        engine.run(1, command(("put_many", puts), ("delete_many", gone)))
        os.write(1, b"a %d\n" % number)
        if number % 2 == 0:
            engine._commit.flush()  # runs are made and merged with what goes to LMDB
        if number % 7 == 0:
            engine._commit.flush()
            until(lambda: not engine._commit.due)  # let it merge by itself
    engine.close()


def open_old(folder: Path) -> None:
    engine = open_engine(folder, STORE_HANDLERS, packed=PACKED, sealed=SEALED)
    assert isinstance(engine, LmdbEngine)
    os.write(1, b"ready\n")
    until(lambda: not engine._commit.due)
    engine.close()


def main() -> None:
    work, folder, step, passes, *rest = sys.argv[1:]
    steps.listen(Suicide(step, int(passes)))
    lmdb.IDLE_MERGE_ENTRIES, lmdb_write.MIGRATION_ROWS = 5, 40
    with tiny():
        if work == "write":
            write(Path(folder), *map(int, rest))
        else:
            open_old(Path(folder))


if __name__ == "__main__":
    main()
