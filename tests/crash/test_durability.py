"""Without these, "acknowledged" could mean "in memory", and a failing disk be believed.

A preloaded library watches every write and sync of the data file and of its redo log, or makes the
n-th one fail, under the whole account. Power loss itself is not tested; docs/durability.md says so.
"""

from pathlib import Path

import pytest
from tests.support.crash_check import check
from tests.support.crash_faults import (
    Ended,
    before_each_ack,
    run_on_faulty_disk,
    why_not_durable,
)
from tests.support.crash_ledger import Ledger
from tests.support.fault_shim import build_fault_shim
from tests.support.postgres import fresh_url
from tests.support.workload import KEEPER

from armillary.account import open_account
from armillary.engine.base import Durability
from armillary.engine.lmdb.errors import EXIT_PANIC
from armillary.engine.postgres.engine import PostgresEngine


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fault_shim(tmp_path_factory.mktemp("shim"))


def assert_kept(folder: Path, ledger: Ledger) -> int:
    """How many actions have happened although they failed."""
    assert ledger.acknowledged > 0
    found, happened = check(folder / "data", ledger)
    assert found == []
    return happened


def test_under_full_each_acknowledgement_follows_its_syncs(shim: Path, tmp_path: Path) -> None:
    # One writer: with several, the pages of the next group lie between a commit and its ack.
    ledger = Ledger.new(writers=1, keeper=False)
    ended = run_on_faulty_disk(shim, tmp_path / "it", ledger, 40)
    assert (ended.code, ended.failed, ended.done) == (0, {}, True), ended.errors
    acks = before_each_ack(ended.log)
    assert len(acks) > 30
    assert [why for why in map(why_not_durable, acks) if why] == []
    assert_kept(tmp_path / "it", ledger)


def test_under_full_containers_are_durable_too(shim: Path, tmp_path: Path) -> None:
    ledger = Ledger.new(writers=0)
    ended = run_on_faulty_disk(shim, tmp_path / "it", ledger, 20)
    assert (ended.code, ended.failed) == (0, {}), ended.errors
    acks = before_each_ack(ended.log)
    assert len(acks) > 10
    assert [why for why in map(why_not_durable, acks) if why] == []


def test_under_relaxed_no_such_thing_is_promised(shim: Path, tmp_path: Path) -> None:
    """Which also shows that the trace can tell."""
    ledger = Ledger.new(writers=1, keeper=False)
    ended = run_on_faulty_disk(shim, tmp_path / "it", ledger, 20, "relaxed")
    assert (ended.code, ended.failed) == (0, {}), ended.errors
    assert all(why_not_durable(events) for events in before_each_ack(ended.log))


def fail(shim: Path, folder: Path, keeper: bool = True, **faults: str) -> tuple[Ended, Ledger]:
    ledger = Ledger.new(writers=3, keeper=keeper)
    return run_on_faulty_disk(shim, folder, ledger, 15, "full", **faults), ledger


def assert_met(ended: Ended, error: str) -> None:
    """Nobody waits for what goes from the redo log to LMDB, nor for its mark: then only the log of
    the program says so, and it is tried again, or the group is a commit of LMDB."""
    assert set(ended.failed.values()) <= {error}
    said = "could not be applied" in ended.errors or "can't be used" in ended.errors
    assert ended.failed or said, "the fault met nothing"


@pytest.mark.parametrize("turn", ["6", "12", "20"])
def test_a_failed_sync_of_the_log_ends_the_process_and_costs_nothing_acknowledged(
    shim: Path, tmp_path: Path, turn: str
) -> None:
    ended, ledger = fail(shim, tmp_path / "it", FAULT_REDO_SYNC=turn)
    assert (ended.code, ended.done) == (EXIT_PANIC, False), ended.errors
    assert "this process ends" in ended.errors
    assert set(ended.failed.values()) <= {"WriteUncertain"}
    assert_kept(tmp_path / "it", ledger)


@pytest.mark.parametrize("turn", ["1", "4", "15"])
def test_a_record_without_room_goes_to_the_data_and_costs_nobody_anything(
    shim: Path, tmp_path: Path, turn: str
) -> None:
    ended, ledger = fail(shim, tmp_path / "it", FAULT_REDO_WRITE=turn)
    assert (ended.code, ended.failed, ended.done) == (0, {}, True), ended.errors
    assert "redo half" in ended.log
    assert_kept(tmp_path / "it", ledger)


@pytest.mark.parametrize("turn", ["4", "7", "11"])
def test_a_failed_sync_is_told_and_costs_nothing_acknowledged(
    shim: Path, tmp_path: Path, turn: str
) -> None:
    ended, ledger = fail(shim, tmp_path / "it", FAULT_SYNC=turn)
    # What was not in that commit goes on, and the account closes as usual.
    assert (ended.code, ended.done) == (0, True), ended.errors
    assert_met(ended, "WriteUncertain")
    assert_kept(tmp_path / "it", ledger)


@pytest.mark.parametrize("turn", ["4", "7", "11"])
def test_a_failed_meta_page_ends_the_process_and_costs_nothing_acknowledged(
    shim: Path, tmp_path: Path, turn: str
) -> None:
    ended, ledger = fail(shim, tmp_path / "it", FAULT_META=turn)
    assert (ended.code, ended.done) == (EXIT_PANIC, False), ended.errors
    assert "this process ends" in ended.errors
    # Not every caller is answered before the end; those that are get the truth.
    assert set(ended.failed.values()) <= {"WriteUncertain"}
    assert_kept(tmp_path / "it", ledger)


@pytest.mark.parametrize("turn", ["1", "3"])
def test_a_full_disk_is_told_and_nothing_of_the_group_is_there(
    shim: Path, tmp_path: Path, turn: str
) -> None:
    # Without the keeper, whose actions take several commits.
    ended, ledger = fail(shim, tmp_path / "it", keeper=False, FAULT_DATA=turn)
    assert (ended.code, ended.done) == (0, True), ended.errors
    assert_met(ended, "StorageFull")
    assert assert_kept(tmp_path / "it", ledger) == 0


@pytest.mark.postgres
@pytest.mark.parametrize(("durability", "commit"), [("full", "on"), ("relaxed", "off")])
def test_postgresql_waits_for_its_log_as_asked(durability: Durability, commit: str) -> None:
    """Also when the database's own default is another one: that would lose acknowledged writes."""
    other = {"on": "off", "off": "on"}[commit]
    address = f"{fresh_url()}&options=-csynchronous_commit%3D{other}"
    with open_account(address, durability=durability, housekeeping=False) as account:
        engine = account._engine
        assert isinstance(engine, PostgresEngine)
        with engine._writes.connection() as connection:
            assert connection.execute("SHOW synchronous_commit").fetchall() == [(commit,)]


@pytest.mark.parametrize("turn", [str(number) for number in range(1, 6)])
def test_a_failed_disk_under_a_new_container_is_told_as_uncertain(
    shim: Path, tmp_path: Path, turn: str
) -> None:
    """Its spaces are made outside the groups of commands, and their commits fail as well: or the
    one before, of what the redo log has, of which its callers hear nothing."""
    ledger = Ledger.new(writers=0)
    ended = run_on_faulty_disk(shim, tmp_path / "it", ledger, 6, "full", FAULT_SYNC=turn)
    assert (ended.code, ended.done) == (0, True), ended.errors
    assert_met(ended, "WriteUncertain")
    assert set(ended.failed) <= {KEEPER}
    found, _ = check(tmp_path / "it" / "data", ledger)
    assert found == []
