"""Histories of five clients over two servers on a primary with a synchronous standby, with
promotions and kills: linearizable per key at the level Strong, session guarantees at Session, where
reads come from the standby of the server's region. `make soak` makes more of both."""

from __future__ import annotations

import itertools
import sys
from functools import partial
from pathlib import Path

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


def record(folder: Path, level: str, events: int) -> list[Operation]:
    """Each event is a promotion (fast, late, hung in turn) and the kill of a server."""
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
                drill.promote(KINDS[number % len(KINDS)])
                drill.kill_server()
            drill.flow(200)
            drill.halt()
            return recorder.history()
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
    history = record(tmp_path, "Strong", 2)
    verdict = linear.check(history)
    print(verdict)
    assert verdict.violations == []
    assert verdict.overlapping > 50  # else there was nothing to judge


def test_sessions_keep_their_guarantees_on_standbys_through_failovers(tmp_path: Path) -> None:
    history = record(tmp_path, "Session", 2)
    verdict = sessions.check(history)
    print(verdict)
    assert verdict.violations == []
    assert verdict.reads > 100


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_many_failovers_with_strong_reads(tmp_path: Path) -> None:
    verdict = linear.check(record(tmp_path, "Strong", 30))
    print(verdict)
    assert verdict.violations == []


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_many_failovers_with_sessions(tmp_path: Path) -> None:
    verdict = sessions.check(record(tmp_path, "Session", 30))
    print(verdict)
    assert verdict.violations == []
