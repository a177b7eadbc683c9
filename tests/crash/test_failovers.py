"""Two servers on a primary with a synchronous standby, under load, while databases fail over and
servers are killed: nothing acknowledged is lost, nothing is there twice. Three promotions and ten
kills here, a hundred each in `make soak`, which writes what it saw to
bench/results/failovers-<date>.txt. On Citus, where `ARMILLARY_TEST_CITUS_URL` names one, shards are
moved while servers are killed.

`ARMILLARY_CRASH_SEED` repeats a run as far as the scheduler allows; `ARMILLARY_FAILOVER_MINUTES`
ends it earlier.
"""

from __future__ import annotations

import math
import os
import platform
import sys
import time
from pathlib import Path

import psycopg
import pytest
from tests.support.failovers import KINDS, Drill, Tally
from tests.support.pg_cluster import servers
from tests.support.postgres import CITUS_SERVER, fresh_url

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL and SIGSTOP"),
]

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"


def _seed() -> int:
    seed = int(os.environ.get("ARMILLARY_CRASH_SEED") or time.time_ns() % 2**31)
    print(f"\nARMILLARY_CRASH_SEED={seed}")
    return seed


def fail_over_often(folder: Path, promotions: int, kills: int, minutes: float = math.inf) -> Tally:
    with servers() as make:
        drill = Drill(folder, [make("a"), make("b", start=False)], _seed())
        end = time.monotonic() + 60 * minutes
        try:
            for number in range(max(promotions, kills)):
                if time.monotonic() > end:
                    break
                if number < promotions:
                    drill.promote(KINDS[number % len(KINDS)])
                if number < kills:
                    drill.kill_server()
            return drill.finish()
        finally:
            drill.close()


def test_nothing_acknowledged_is_lost_by_promotions_and_kills(tmp_path: Path) -> None:
    tally = fail_over_often(tmp_path, 3, 10)
    print(tally)
    assert tally.well, str(tally)
    assert tally.acknowledged > 500
    assert (tally.promotions, tally.kills) == (3, 10)


def _report(name: str, tally: Tally, began: float) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = (
        "python -m pytest tests/crash/test_failovers.py -m soak -s\n"
        f"{time.strftime('%Y-%m-%d')}, {platform.system()} {platform.release()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, "
        f"{time.monotonic() - began:.0f} s\n\n{tally}\n"
    )
    path = RESULTS / f"{name}-{time.strftime('%Y-%m-%d')}.txt"
    path.write_text(text, encoding="utf-8")


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_a_hundred_promotions_and_a_hundred_kills(tmp_path: Path) -> None:
    began = time.monotonic()
    minutes = float(os.environ.get("ARMILLARY_FAILOVER_MINUTES", "inf"))
    tally = fail_over_often(tmp_path, 100, 100, minutes)
    print(tally)
    _report("failovers", tally, began)
    assert tally.well, str(tally)


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
@pytest.mark.skipif(
    not os.environ.get(CITUS_SERVER), reason=f"{CITUS_SERVER} names no PostgreSQL with Citus"
)
def test_shards_of_citus_are_moved_under_load(tmp_path: Path) -> None:
    began = time.monotonic()
    end = began + 60 * float(os.environ.get("ARMILLARY_FAILOVER_MINUTES", "inf"))
    base = os.environ[CITUS_SERVER]
    url = fresh_url(base)
    drill = Drill(tmp_path, [], _seed(), url=url)
    try:
        with psycopg.connect(base, autocommit=True) as connection:
            for number in range(100):
                if time.monotonic() > end:
                    break
                _move_one(connection, url.rpartition("schema=")[2], 1 + number % 4)
                drill.tally.moves += 1
                drill.flow()
                if number % 4 == 0:
                    drill.kill_server()
        tally = drill.finish()
    finally:
        drill.close()
    print(tally)
    _report("shard-moves", tally, began)
    assert tally.well, str(tally)


def _move_one(connection: psycopg.Connection, schema: str, space: int) -> None:
    """The shard of a space, to the next worker."""
    table = f"{schema}.armillary_rows"
    query = "SELECT get_shard_id_for_distribution_column(%s::regclass, %s)"
    row = connection.execute(query, (table, space)).fetchone()
    assert row is not None
    query = "SELECT nodename, nodeport FROM citus_shards WHERE shardid = %s"
    place = connection.execute(query, (row[0],)).fetchone()
    assert place is not None
    others = connection.execute(
        "SELECT node_name, node_port FROM citus_get_active_worker_nodes()"
        " WHERE (node_name, node_port) <> (%s, %s)",
        place,
    ).fetchall()
    connection.execute(
        "SELECT citus_move_shard_placement(%s, %s, %s, %s, %s, 'force_logical')",
        (row[0], *place, *others[0]),
    )
