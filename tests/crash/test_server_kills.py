"""`kill -9` of the whole server under load: without these, an answer of success might mean less
than it says, or a batch might be found by half. 40 times here, 1,000 times in `make soak`, which
writes what it saw to bench/results/server-kills-<date>.txt as it goes.

`ARMILLARY_CRASH_SEED` repeats a run as far as the scheduler allows.
"""

import os
import platform
import sys
import time
from pathlib import Path

import pytest
from tests.support.server_kills import Rounds, Tally

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")


RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
FOLDERS = 10
#: In half of the folders all sixteen are the official SDK. It has its own patience with a server
#: that is gone, so its requests reach the next one at odd moments; it also leaves less of the
#: machine to the server, which the other half makes up for.
CLIENTS = ((13, 3), (0, 16))


def kill_often(folder: Path, times: int, *, raw: int = 13, sdk: int = 3) -> Tally:
    seed = int(os.environ.get("ARMILLARY_CRASH_SEED") or time.time_ns() % 2**31)
    print(f"\nARMILLARY_CRASH_SEED={seed}")
    rounds = Rounds(folder, seed, raw=raw, sdk=sdk)
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
@pytest.mark.timeout(4 * 3600)
def test_a_thousand_times(tmp_path: Path) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    report = RESULTS / f"server-kills-{time.strftime('%Y-%m-%d')}.txt"
    report.write_text(
        "python -m pytest tests/crash/test_server_kills.py -m soak -s\n"
        f"{time.strftime('%Y-%m-%d')}, {platform.system()} {platform.release()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}\n\n",
        encoding="utf-8",
    )
    total = Tally()
    for number in range(FOLDERS):
        raw, sdk = CLIENTS[number % len(CLIENTS)]
        begun = time.monotonic()
        tally = kill_often(tmp_path / f"data{number}", 1_000 // FOLDERS, raw=raw, sdk=sdk)
        total = total.plus(tally)
        seconds = time.monotonic() - begun
        _add(report, f"{sdk} clients of the SDK, {raw} others: {tally}; {seconds:.0f} s")
    assert total.kills == 1_000
    _add(report, f"\nIn all: {total}.")


def _add(report: Path, line: str) -> None:
    print(line, flush=True)
    with report.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
