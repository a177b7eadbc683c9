"""The process that dies in the middle of a split, merge, drop or change of key.

    python -m tests.support.move_child FOLDER WORK STEP PASSES [FIRST]

While it works a thread writes; each acknowledged write is a line `[id, version]` on stdout, one
write(2), so that what was said before the kill arrives.
"""

import json
import os
import sys
import threading
from itertools import count
from pathlib import Path

from tests.support.crash_child import Suicide

from armillary import steps
from armillary.account import Database, open_account
from armillary.engine.lmdb import spaces as lmdb_spaces
from armillary.errors import DbError
from armillary.store.moves import filling as move_filling

ITEMS, TARGET = "items", "target"


def write(database: Database, end: threading.Event, first: int) -> None:
    container = database.container(ITEMS)
    for value in count(first):
        if end.is_set():
            return
        n = value % 400
        try:
            container.upsert_item(
                {"id": str(n), "pk": f"k{n % 40}", "city": f"c{n % 9}", "v": value}
            )
        except DbError:
            return  # the container is being dropped
        os.write(1, json.dumps([str(n), value]).encode() + b"\n")


def work(database: Database, name: str, step: str) -> None:
    container = database.container(ITEMS)
    ids = [one.id for one in container.partitions()]
    if name == "split":
        container.split(ids[0])
    elif name == "merge":
        container.merge(ids[:2])
    elif name == "rekey":
        database.rekey(ITEMS, TARGET, "/city", cut_over=step == "rekey.close")
    else:
        assert name == "drop"
        database.delete_container(ITEMS)


def small_pieces() -> None:
    """To die between two of them there have to be several."""
    vars(move_filling).update(MOVE_PIECE_BYTES_MIN=1_024)
    vars(lmdb_spaces).update(DROP_PAGES=-1, PURGE_ROWS=100)


def main(folder: str, name: str, step: str, passes: str, first: str = "1") -> None:
    if int(passes) > 1 or step.startswith("drop."):
        small_pieces()
    with open_account(Path(folder), housekeeping=False) as account:
        database = account.database("d")
        end = threading.Event()
        writer = threading.Thread(target=write, args=(database, end, int(first)), daemon=True)
        if name != "drop":
            writer.start()
        else:
            os.write(1, b"begins\n")
        steps.listen(Suicide(step, int(passes)))
        work(database, name, step)
        end.set()
        if name != "drop":
            writer.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
