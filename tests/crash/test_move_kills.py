"""Without these, a kill in the middle of a split, a merge, a drop or a change of key could leave a
container between two states, or lose what was acknowledged.

A child does one of them to a store with known contents and kills itself at a named step, while a
thread of it goes on writing. Afterwards the store is opened as it is: reads may wait for the
take-over and are right then; the layout is the one before or the one after.
"""

import json
import signal
import time
from pathlib import Path
from random import Random

import pytest
from tests.support.crash import MOVING, REKEYING, start_python
from tests.support.crash_check import recounted

from armillary.account import Account, open_account
from armillary.container import Container
from armillary.engine.base import CATALOG_SPACE
from armillary.errors import NotFound
from armillary.store import catalog, rekey_records
from armillary.store.housekeeping import keep_house
from armillary.store.moves import resume

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
    folder: Path, work: str, step: str, passes: int = 1, *, may_end: bool = False
) -> dict[str, int]:
    """The last version of each item that was acknowledged before the child died."""
    child = start_python("tests.support.move_child", str(folder), work, step, str(passes))
    out, errors = child.communicate(timeout=60)
    expected = {-signal.SIGKILL, 0} if may_end else {-signal.SIGKILL}
    assert child.returncode in expected, (work, step, child.returncode, errors.decode())
    acknowledged: dict[str, int] = {}
    for line in out.decode().splitlines():
        id, value = json.loads(line)
        acknowledged[id] = value
    return acknowledged


def finish(account: Account, container: str = ITEMS) -> None:
    store = account._store.container(DATABASE, container)
    for move in resume(store, silent_ms=-86_400_000):
        move.run()


def judge(folder: Path, acknowledged: dict[str, int], layouts: set[int]) -> None:
    with open_account(folder, housekeeping=False) as account:
        container = account.database(DATABASE).container(ITEMS)
        assert len(container.feed_ranges()) in layouts, "between two layouts"
        finish(account)
        assert_contents(container, acknowledged)
        keep_house(account._store)
        assert list(recounted(account, container, DATABASE)) == []
        assert_spaces(account)
        container.upsert_item({"id": "0", "pk": "k0", "city": "c0", "v": 10**6})


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


@pytest.mark.parametrize("step", MOVING)
@pytest.mark.parametrize("work", ["split", "merge"])
def test_a_kill_at_each_step(tmp_path: Path, work: str, step: str) -> None:
    set_up(tmp_path)
    after = {"split": 3, "merge": 1}[work]
    acknowledged = kill(tmp_path, work, step)
    switched = step in ("move.switch", "move.drop")
    judge(tmp_path, acknowledged, {after if switched else 2})
    with open_account(tmp_path, housekeeping=False) as account:
        container = account.database(DATABASE).container(ITEMS)
        assert len(container.feed_ranges()) == after, "what was begun is finished"


def test_kills_at_random_moments(tmp_path: Path) -> None:
    """One store, 8 kills: at a random pass of any commit that a split, merge or drop makes."""
    set_up(tmp_path)
    random = Random(40)
    for _ in range(8):
        with open_account(tmp_path, housekeeping=False) as account:
            ranges = len(account.database(DATABASE).container(ITEMS).feed_ranges())
        work = "merge" if ranges > 3 else "split"
        after = ranges + (1 if work == "split" else -1)
        passes = random.randrange(1, 30)
        acknowledged = kill(tmp_path, work, "group.committed", passes, may_end=True)
        judge(tmp_path, acknowledged, {ranges, after})


@pytest.mark.parametrize("passes", [1, 2])
def test_a_kill_while_a_container_is_dropped(tmp_path: Path, passes: int) -> None:
    """After any of its commits: it is there with everything, or gone with everything."""
    set_up(tmp_path)
    kill(tmp_path, "drop", "group.committed", passes)
    with open_account(tmp_path, housekeeping=False) as account:
        try:
            container = account.database(DATABASE).container(ITEMS)
        except NotFound:
            account.settle()
            assert account._engine.spaces() == [CATALOG_SPACE]
            return
        assert len(list(container.read_all_items())) == COUNT


@pytest.mark.parametrize("step", REKEYING)
def test_a_kill_while_the_key_changes(tmp_path: Path, step: str) -> None:
    """The same call goes on, and the target is the source as it is then."""
    set_up(tmp_path)
    acknowledged = kill(tmp_path, "rekey", step)
    with open_account(tmp_path, housekeeping=False) as account:
        database = account.database(DATABASE)
        pending = rekey_records.load(account._engine, DATABASE, TARGET)
        assert (pending is None) == (step == "rekey.finish")
        if pending is not None:
            assert database.rekey(ITEMS, TARGET, "/city").verified
        source, target = database.container(ITEMS), database.container(TARGET)
        assert_contents(source, acknowledged)
        found = {(one["id"], one["v"]) for one in target.read_all_items()}
        there = {(one["id"], one["v"]) for one in source.read_all_items()}
        if step == "rekey.finish":
            assert {id for id, _ in found} == {id for id, _ in there}
        else:
            assert found == there
        assert_spaces(account)


def test_a_frozen_range_is_opened_again_by_whoever_comes(tmp_path: Path) -> None:
    """Its runner is dead; a reader waits until the housekeeper of its process has taken over."""
    set_up(tmp_path)
    kill(tmp_path, "split", "move.freeze")
    with open_account(tmp_path) as account:
        container = account.database(DATABASE).container(ITEMS)
        began = time.monotonic()
        assert len(list(container.read_all_items())) == COUNT
        assert time.monotonic() - began < 9
