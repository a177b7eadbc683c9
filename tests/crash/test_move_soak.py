"""Kills in the middle of splits, merges, drops and changes of key, in `make soak`. Without them,
what goes wrong once in a hundred such crashes would be found by somebody else.

One store after another: at every named step several times, at a random pass of any commit, and at
random moments. The summary goes to bench/results/move-kills-<date>.txt; `ARMILLARY_CRASH_SEED`
repeats a run, but for the moments.
"""

import os
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

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

from armillary.account import Account, open_account
from armillary.store.migration import records as rekey_records

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
PER_STORE = 20
KILLS = 300
VERSIONS = 1_000_000  # of one child, so that the next one's are all higher
NO_STEP = "nothing"


class Kill(NamedTuple):
    work: str
    step: str
    passes: int = 1
    after_s: float | None = None


def planned(random: Random) -> Iterator[Kill]:
    """The plan, and then more of what can hardly miss, for the children that ended too early."""
    yield from _plan(random)
    while True:
        yield Kill("move", "group.committed", random.randrange(1, 10))


def _plan(random: Random) -> list[Kill]:
    """360: splits and merges, changes of key, drops; at steps, after commits, at moments."""
    kills = [Kill("move", step) for step in MOVING for _ in range(6)]
    between = ("move.copy", "move.load") * 7
    kills += [Kill("move", step, random.randrange(2, 8)) for step in between]
    kills += [Kill("move", "group.committed", random.randrange(1, 40)) for _ in range(60)]
    kills += [Kill("move", NO_STEP, 1, random.uniform(0.0, 0.25)) for _ in range(60)]
    kills += [Kill("rekey", step) for step in REKEYING if step != "rekey.close" for _ in range(5)]
    kills += [Kill("rekey", "group.committed", random.randrange(1, 60)) for _ in range(30)]
    kills += [Kill("rekey", NO_STEP, 1, random.uniform(0.0, 0.3)) for _ in range(30)]
    kills += [Kill("move", "drop.piece", random.randrange(1, 12)) for _ in range(12)]
    kills += [Kill("drop", "drop.piece", random.randrange(1, 12)) for _ in range(12)]
    kills += [Kill("drop", "group.committed", 1 + n % 2) for n in range(20)]
    kills += [Kill("drop", NO_STEP, 1, random.uniform(0.0, 0.02)) for _ in range(20)]
    random.shuffle(kills)
    return kills


class Soak:
    """One store, until it is dropped or used up."""

    def __init__(self, folder: Path, ended: list[str]) -> None:
        self.folder = folder
        self.ended = ended
        self.first = 1
        set_up(folder)

    def run(self, one: Kill) -> bool:
        """False: the store is gone."""
        self.first += VERSIONS
        if one.work == "move":
            self._move(one)
        elif one.work == "rekey":
            self._rekey(one)
        else:
            return self._drop(one)
        return True

    def _kill(self, one: Kill, work: str) -> dict[str, int]:
        return kill(
            self.folder,
            work,
            one.step,
            one.passes,
            may_end=True,
            first=self.first,
            after_s=one.after_s,
            ended=self.ended,
        )

    def _move(self, one: Kill) -> None:
        with open_account(self.folder, housekeeping=False) as account:
            ranges = len(account.database(DATABASE).container(ITEMS).feed_ranges())
        work = "merge" if ranges > 3 else "split"
        after = ranges + (1 if work == "split" else -1)
        acknowledged = self._kill(one, work)
        judge(self.folder, acknowledged, {ranges, after}, last=self.first + VERSIONS)
        self.first += VERSIONS

    def _rekey(self, one: Kill) -> None:
        acknowledged = self._kill(one, "rekey")
        with open_account(self.folder, housekeeping=False) as account:
            database = account.database(DATABASE)
            pending = rekey_records.load(account._engine, DATABASE, TARGET)
            source = database.container(ITEMS)
            assert_contents(source, acknowledged)
            if pending is not None:
                assert database.rekey(ITEMS, TARGET, "/city").verified
                there = {(item["id"], item["v"]) for item in source.read_all_items()}
                target = database.container(TARGET)
                assert {(item["id"], item["v"]) for item in target.read_all_items()} == there
            assert_contents(source, acknowledged)
            if TARGET in database.containers():
                database.delete_container(TARGET)
            clean_up(account)
            assert_spaces(account)

    def _drop(self, one: Kill) -> bool:
        self._kill(one, "drop")
        with open_account(self.folder, housekeeping=False) as account:
            database = account.database(DATABASE)
            if ITEMS in database.containers():
                assert len(list(database.container(ITEMS).read_all_items())) == COUNT
                assert_spaces(account)
                return True
            clean_up(account)
            assert_spaces(account)
            return False


def clean_up(account: Account) -> None:
    """Spaces of a container that was never made go after a minute. Nobody else is about, so it may
    be now."""
    account.settle()
    account._store._drop_orphans(before_s=2**32)


def _commit() -> str:
    asked = ["git", "-C", str(RESULTS), "describe", "--always", "--dirty"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_kills_while_partitions_move(tmp_path: Path) -> None:
    seed = int(os.environ.get("ARMILLARY_CRASH_SEED") or time.time_ns() % 2**31)
    print(f"\nARMILLARY_CRASH_SEED={seed}")
    began = time.monotonic()
    tally: Counter[str] = Counter()
    ended: list[str] = []
    soak, used, stores, least = None, 0, 0, len(_plan(Random(seed)))
    for number, one in enumerate(planned(Random(seed))):
        if number >= least and tally.total() >= KILLS:
            break
        if soak is None or used >= PER_STORE:
            soak, used, stores = Soak(tmp_path / f"store{stores}", ended), 0, stores + 1
        before = len(ended)
        try:
            alive = soak.run(one)
        except BaseException:
            print(f"kill {number} of seed {seed}: {one}")
            raise
        used += 1
        if len(ended) == before:
            at = "a random moment" if one.after_s is not None else one.step
            tally[f"{one.work} at {at}"] += 1
        soak = soak if alive else None
    lines = [
        f"ARMILLARY_CRASH_SEED={seed} make soak, at commit {_commit()}, "
        f"load {os.getloadavg()[0]:.0f} at its end   (tests/crash/test_move_soak.py)",
        f"{time.strftime('%Y-%m-%d')}, {platform.system()} {platform.release()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}",
        f"{tally.total()} kills of {stores} stores in {time.monotonic() - began:.0f} s: each was "
        "before or after, never between; nothing acknowledged was lost; every recount agreed; "
        f"{len(ended)} more children ended before they were to be killed",
        *(f"  {count:4} {what}" for what, count in sorted(tally.items())),
    ]
    print(*lines, sep="\n")
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"move-kills-{time.strftime('%Y-%m-%d')}.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
