"""Histories of five clients over two servers on a primary with a synchronous standby, with
promotions and kills: linearizable per key at the level Strong, session guarantees at Session, where
reads come from the standby of the server's region. `make soak` makes more of both and adds what it
saw to bench/results/failover-histories-<date>.txt; `ARMILLARY_FAILOVER_MINUTES` ends each earlier.
"""

from __future__ import annotations

import itertools
import math
import os
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.failovers import KINDS, Drill
from tests.support.histories import linear, sessions
from tests.support.histories.failovers import RegisterClient
from tests.support.histories.record import Operation, Recorder
from tests.support.pg_cluster import PgServer, servers

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL and SIGSTOP"),
]

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"


def record(
    folder: Path, level: str, events: int, minutes: float = math.inf
) -> tuple[list[Operation], int]:
    """Each event is a promotion (fast, late, hung in turn) and the kill of a server. Gives the
    history, and how many events there were time for."""
    end = time.monotonic() + 60 * minutes
    recorder = Recorder()
    make_client = partial(
        RegisterClient, level=level, recorder=recorder, counter=itertools.count(1)
    )
    with servers() as make:
        databases = [make("a"), make("b", start=False)]
        drill = Drill(
            folder,
            databases,
            seed=1,
            make_client=make_client,
            environ=partial(_environ, level, databases),
        )
        try:
            for number in range(events):
                if time.monotonic() > end:
                    break
                drill.promote(KINDS[number % len(KINDS)])
                drill.kill_server()
            drill.flow(200)
            drill.halt()
            return recorder.history(), drill.tally.promotions
        finally:
            drill.close()


def _environ(level: str, databases: list[PgServer], at: int) -> dict[str, str]:
    """A server in the region of each database, which it reads from while that is the standby."""
    urls = ",".join(f"region {one.name}={one.url}" for one in databases)
    return {
        "ARMILLARY_API_CONSISTENCY": level,
        "ARMILLARY_REGIONS_HERE": f"region {databases[at].name}",
        "ARMILLARY_REPLICAS_URLS": urls,
    }


def test_strong_reads_and_writes_are_linearizable_through_failovers(tmp_path: Path) -> None:
    history, _ = record(tmp_path, "Strong", 2)
    verdict = linear.check(history)
    print(verdict)
    assert verdict.violations == []
    assert verdict.overlapping > 50  # else there was nothing to judge


def test_sessions_keep_their_guarantees_on_standbys_through_failovers(tmp_path: Path) -> None:
    history, _ = record(tmp_path, "Session", 2)
    verdict = sessions.check(history)
    print(verdict)
    assert verdict.violations == []
    assert verdict.reads > 100


CHECKS: dict[str, Callable[[list[Operation]], Any]] = {
    "Strong": linear.check,
    "Session": sessions.check,
}


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("level", CHECKS)
def test_many_failovers(tmp_path: Path, level: str) -> None:
    minutes = float(os.environ.get("ARMILLARY_FAILOVER_MINUTES", "inf"))
    history, events = record(tmp_path, level, 30, minutes)
    verdict = CHECKS[level](history)
    text = f"{level}: {events} promotions, {events} kills, {len(history)} operations\n{verdict}\n"
    print(text)
    path = RESULTS / f"failover-histories-{time.strftime('%Y-%m-%d')}.txt"
    with path.open("a", encoding="utf-8") as out:
        out.write(f"python -m pytest {Path(__file__).name} -m soak, {platform.release()}\n{text}\n")
    assert verdict.violations == []
