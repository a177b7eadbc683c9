"""A store with known contents, a child that dies while it splits, merges, drops or changes the key,
and the judgement of what it left behind.
"""

import json
import signal
import time
from pathlib import Path

from tests.support.crash import start_python
from tests.support.crash_check import recounted

from armillary.account import Account, open_account
from armillary.container import Container
from armillary.engine.base import CATALOG_SPACE
from armillary.store.catalog import records as catalog
from armillary.store.moves.takeovers import resume
from armillary.store.upkeep.housekeeper import keep_house

DATABASE, ITEMS, TARGET = "d", "items", "target"
COUNT = 400


def set_up(folder: Path) -> None:
    with open_account(folder, housekeeping=False) as account:
        container = account.create_database(DATABASE).create_container(
            ITEMS, "/pk", physical_partitions=2, change_feed_retention_minutes=10
        )
        container.bulk(
            ("create", ({"id": str(n), "pk": f"k{n % 40}", "city": f"c{n % 9}", "v": 0},))
            for n in range(COUNT)
        )


def kill(
    folder: Path,
    work: str,
    step: str,
    passes: int = 1,
    *,
    may_end: bool = False,
    first: int = 1,
    after_s: float | None = None,
    ended: list[str] | None = None,
) -> dict[str, int]:
    """The last version of each item that was acknowledged before the child died: by its own hand at
    a step, or by ours some time after it began. Versions are counted from `first` on. If it came to
    its end before (`may_end`), `ended` gets a line."""
    arguments = (str(folder), work, step, str(passes), str(first))
    child = start_python("tests.support.move_child", *arguments)
    if after_s is not None:
        assert child.stdout is not None
        child.stdout.readline()  # an acknowledgement, or the word that it begins
        time.sleep(after_s)
        child.kill()
    out, errors = child.communicate(timeout=120)
    expected = {-signal.SIGKILL, 0} if may_end else {-signal.SIGKILL}
    assert child.returncode in expected, (work, step, child.returncode, errors.decode())
    if ended is not None and child.returncode == 0:
        ended.append(f"{work} before pass {passes} of {step}")
    acknowledged: dict[str, int] = {}
    for line in out.decode().splitlines():
        if line.endswith("]"):  # the last may be cut
            id, value = json.loads(line)
            acknowledged[id] = value
    return acknowledged


def finish(account: Account, container: str = ITEMS) -> None:
    store = account._store.container(DATABASE, container)
    for move in resume(store, silent_ms=-86_400_000):
        move.run()


def judge(folder: Path, acknowledged: dict[str, int], layouts: set[int], last: int = 10**6) -> None:
    """`last` is written at the end: it still can be."""
    with open_account(folder, housekeeping=False) as account:
        container = account.database(DATABASE).container(ITEMS)
        assert len(container.feed_ranges()) in layouts, "between two layouts"
        finish(account)
        assert_contents(container, acknowledged)
        keep_house(account._store)
        assert list(recounted(account, container, DATABASE)) == []
        assert_spaces(account)
        container.upsert_item({"id": "0", "pk": "k0", "city": "c0", "v": last})


def assert_contents(container: Container, acknowledged: dict[str, int]) -> None:
    found = {str(one["id"]): one["v"] for one in container.read_all_items()}
    assert len(found) == COUNT
    lost = [id for id, value in acknowledged.items() if not _is_kept(found[id], value)]
    assert lost == []


def _is_kept(found: object, value: int) -> bool:
    """The write after the last acknowledged one may have happened too."""
    return isinstance(found, int) and found >= value


def assert_spaces(account: Account) -> None:
    """Nothing is left that nobody owns, and nothing is missing."""
    owned = {CATALOG_SPACE}
    for record in account._store.list_containers(DATABASE):
        owned |= {one.space for one in record.ranges}
        assert record.moves == ()
    assert set(account._engine.spaces()) == owned
    with account._engine.read(CATALOG_SPACE) as reader:
        assert catalog.orphans(reader, 2**32) == []
