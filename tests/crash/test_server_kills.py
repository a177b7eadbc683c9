"""`kill -9` of the whole server under load: without these, an answer of success might mean less
than it says, or a batch might be found by half. 40 times here, 1,000 times in `make soak`.

`ARMILLARY_CRASH_SEED` repeats a run as far as the scheduler allows.
"""

import os
import sys
import time
from pathlib import Path

import pytest
from tests.support.server_kills import Rounds, Tally

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")


def kill_often(folder: Path, times: int) -> Tally:
    seed = int(os.environ.get("ARMILLARY_CRASH_SEED") or time.time_ns() % 2**31)
    print(f"\nARMILLARY_CRASH_SEED={seed}")
    rounds = Rounds(folder, seed)
    try:
        for _ in range(times):
            rounds.round()
        return rounds.finish()
    finally:
        rounds.close()


def test_what_was_acknowledged_survives_the_server(tmp_path: Path) -> None:
    tally = kill_often(tmp_path / "data", 40)
    print(tally)
    assert tally.kills == 40
    assert tally.promised > 40 * 16


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_thousand_times(tmp_path: Path) -> None:
    total = Tally()
    for number in range(10):
        tally = kill_often(tmp_path / f"data{number}", 100)
        total = total.plus(tally)
        print(tally, flush=True)
    assert total.kills == 1_000
    print(f"In all: {total}.")
