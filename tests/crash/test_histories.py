"""Histories of concurrent clients on two workers, with splits, merges and kills, judged by a
checker. Without these an answer could be one that no single copy of the data would have given: a
read that goes back, a condition that held twice, a write that came again after a kill.

Small in `make test`; 10^5 operations in `make soak`, which writes to
bench/results/histories-<date>.txt.
`ARMILLARY_CRASH_SEED` repeats a run as far as the scheduler allows, `ARMILLARY_HISTORY_OPERATIONS`
shortens it, `ARMILLARY_HISTORY_FILE` keeps the history.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path

import pytest
from tests.support.histories import linear, porcupine, sessions
from tests.support.histories.record import save
from tests.support.histories.run import Run
from tests.support.results import commit

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
SOAK_OPERATIONS = int(os.environ.get("ARMILLARY_HISTORY_OPERATIONS", "100000"))
KILL_EVERY = 2_500


def judge(folder: Path, operations: int, kills: int, *, asks_porcupine: bool = False) -> list[str]:
    seed = int(os.environ.get("ARMILLARY_CRASH_SEED") or time.time_ns() % 2**31)
    print(f"\nARMILLARY_CRASH_SEED={seed}")
    run = Run(folder, seed, operations=operations, kills=kills)
    try:
        history = run.run()
    finally:
        run.close()
    if keep := os.environ.get("ARMILLARY_HISTORY_FILE"):
        save(Path(keep), history)
    assert not run.problems, run.problems[:5]
    linearizable, guaranteed = linear.check(history), sessions.check(history)
    counted = ", ".join(f"{count} {what}" for what, count in sorted(run.counts.items()))
    lines = [f"seed {seed}: {counted}", str(linearizable), str(guaranteed)]
    opinion = porcupine.judged(history, folder.parent) if asks_porcupine else None
    if asks_porcupine:
        lines.append(str(opinion or "Porcupine: no Go here, or no module"))
    print("\n".join(lines))
    assert opinion is None or not opinion.illegal, opinion
    assert not linearizable.violations, "\n".join(map(str, linearizable.violations[:3]))
    assert not guaranteed.violations, guaranteed.violations[:5]
    assert linearizable.operations >= operations
    assert linearizable.overlapping > operations / 20, "the clients did not meet"
    assert run.counts["splits"]
    assert run.counts["kills of one process"] + run.counts["kills of everything"]
    return lines


def test_a_short_history_is_linearizable(tmp_path: Path) -> None:
    judge(tmp_path / "data", 2_000, 3)


@pytest.mark.soak
@pytest.mark.timeout(2 * 3600)
def test_a_hundred_thousand_operations_are_linearizable(tmp_path: Path) -> None:
    kills = SOAK_OPERATIONS // KILL_EVERY
    lines = judge(tmp_path / "data", SOAK_OPERATIONS, kills, asks_porcupine=True)
    path = RESULTS / f"histories-{time.strftime('%Y-%m-%d')}.txt"
    head = (
        f"pytest -m soak tests/crash/test_histories.py, {time.strftime('%Y-%m-%d %H:%M')}, "
        f"commit {commit()}, two workers, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f} after, Python {platform.python_version()}"
    )
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join([head, *lines]) + "\n\n")
