"""Without these, a kill in the middle of a split, a merge, a drop or a change of key could leave a
container between two states, or lose what was acknowledged.

A child does one of them to a store with known contents and kills itself at a named step, while a
thread of it goes on writing. Afterwards the store is opened as it is: reads may wait for the
take-over and are right then; the layout is the one before or the one after.
"""

from pathlib import Path
from random import Random

import pytest
from tests.support.crash import MOVING, REKEYING
from tests.support.move_kills import (
    COUNT,
    DATABASE,
    ITEMS,
    TARGET,
    assert_contents,
    assert_spaces,
    judge,
    kill,
    set_up,
)

from armillary.account import open_account
from armillary.engine.base import CATALOG_SPACE
from armillary.errors import NotFound
from armillary.store.items import routing
from armillary.store.migration import records as rekey_records


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


@pytest.mark.parametrize("passes", [1, 5])
def test_a_kill_while_a_large_parent_goes(tmp_path: Path, passes: int) -> None:
    """It was orphaned already; half of it must not stay for ever."""
    set_up(tmp_path)
    acknowledged = kill(tmp_path, "split", "drop.piece", passes)
    judge(tmp_path, acknowledged, {3})


@pytest.mark.parametrize(
    ("step", "passes"),
    [("group.committed", 1), ("group.committed", 2), ("drop.piece", 1), ("drop.piece", 5)],
)
def test_a_kill_while_a_container_is_dropped(tmp_path: Path, step: str, passes: int) -> None:
    """After any of its commits: it is there with everything, or gone with everything."""
    set_up(tmp_path)
    kill(tmp_path, "drop", step, passes)
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


def test_a_frozen_range_is_opened_again_by_the_next_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runner is dead; a reader waits until the housekeeper of its process has taken over."""
    for module in ("containers", "routing"):  # a slow machine
        monkeypatch.setattr(f"armillary.store.items.{module}.ROUNDS_MAX", 10 * routing.ROUNDS_MAX)
    set_up(tmp_path)
    kill(tmp_path, "split", "move.freeze")
    with open_account(tmp_path) as account:
        container = account.database(DATABASE).container(ITEMS)
        assert len(list(container.read_all_items())) == COUNT
