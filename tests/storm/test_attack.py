"""A server with all its protocols under attack from outside: damaged frames, headers, bodies,
queries, tokens and scripts. Without this a request that nobody thought of could be answered 500,
keep memory, stop other clients, or keep the server from ending.

Some thousands in `make test`; a million in `make soak`, with a victim that is timed beside hostile
and beside valid requests of the same rate and of the same routes, commands and scripts, written to
bench/results/attack-<date>.txt.
`ARMILLARY_FUZZ_SEED` repeats a run, `ARMILLARY_FUZZ_SHARE` and `ARMILLARY_FUZZ_SECONDS` shorten it.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest
from tests.support.attack.run import Outcome, Siege
from tests.support.results import commit

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="reads /proc, sends SIGTERM")

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
SHARE = float(os.environ.get("ARMILLARY_FUZZ_SHARE", "1"))
REQUESTS = int(1_000_000 * SHARE)
WARM = 0.3  # of a run: caches fill up to their bounds
GROWTH_MB_MAX = 50.0
END_SECONDS_MAX = 5.0
SECONDS = float(os.environ.get("ARMILLARY_FUZZ_SECONDS", "7200"))
VICTIM_REQUESTS = int(10_000 * min(1.0, 4 * SHARE))
VICTIM_RATE = 250.0
"""Hostile and valid requests a second that the victim is timed beside."""


@dataclass(frozen=True)
class Memory:
    """What the processes held. A request may take what its budget allows, and gives it back: the
    median of a third of the run tells growth from that, the most of it is shown beside."""

    early_mb: float
    late_mb: float
    most_mb: float
    least_late_mb: float

    @property
    def growth_mb(self) -> float:
        return self.late_mb - self.early_mb

    def line(self) -> str:
        return (
            f"memory after {WARM:.0%}: median {self.early_mb:.0f} MB in the first third, "
            f"{self.late_mb:.0f} MB in the last ({self.growth_mb:+.0f} MB), "
            f"between {self.least_late_mb:.0f} and {self.most_mb:.0f} MB"
        )


def flatness(samples: list[tuple[float, float]], seconds: float) -> Memory:
    warm = [mb for at, mb in samples if at > seconds * WARM]
    third = max(1, len(warm) // 3)
    return Memory(median(warm[:third]), median(warm[-third:]), max(warm), min(warm[-third:]))


def seed() -> int:
    chosen = int(os.environ.get("ARMILLARY_FUZZ_SEED", time.time_ns() % 10**9))
    print(f"\nARMILLARY_FUZZ_SEED={chosen}")
    return chosen


def no_defects(siege: Siege, outcome: Outcome) -> None:
    assert not outcome.defects, "\n".join(outcome.defects)
    assert not siege.bugs, "\n".join(siege.story)


def test_thousands_of_hostile_requests_find_no_defect(tmp_path: Path) -> None:
    siege = Siege(tmp_path / "data")
    try:
        outcome = siege.attack(4_000, 7)
        print("\n".join(outcome.lines()))
        no_defects(siege, outcome)
        assert not outcome.silent, "\n".join(outcome.silent)
        with siege.victim() as seen:
            pass
        assert seen["reads"] > 0
        assert seen["wrong"] == 0
        code, _ = siege.end_amid(8)
        assert code == 0
    finally:
        siege.close()


@pytest.mark.soak
@pytest.mark.timeout(3 * 3600)
def test_a_million_hostile_requests(tmp_path: Path) -> None:
    chosen = seed()
    lines = [
        f"pytest -m soak tests/storm/test_attack.py, {time.strftime('%Y-%m-%d %H:%M')}, "
        f"commit {commit()}, seed {chosen}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f} before, Python {platform.python_version()}"
    ]
    siege = Siege(tmp_path / "data")
    try:
        samples: list[tuple[float, float]] = []
        outcome = siege.attack(REQUESTS, chosen, samples=samples, seconds=SECONDS)
        lines += outcome.lines()
        memory = flatness(samples, outcome.seconds)
        lines.append(memory.line())
        lines.append(f"{len(outcome.defects)} defects, {len(siege.bugs)} lines of bugs in the log")
        lines += [f"  log: {one}".replace(f"{ROOT}/", "") for one in siege.story]
        times = {}
        for name in ("valid", "hostile"):
            valid = name == "valid"
            with siege.victim() as seen:
                siege.attack(VICTIM_REQUESTS, chosen + 1, valid=valid, rate=VICTIM_RATE)
            times[name] = seen
            lines.append(
                f"victim beside {name} requests, {VICTIM_RATE:.0f}/s: {seen['reads']:,} reads, "
                f"{seen['wrong']} wrong, p50 {seen['p50']:.1f} ms, p99 {seen['p99']:.1f} ms, "
                f"longest {seen['max']:.0f} ms"
            )
        ratio = times["hostile"]["p99"] / times["valid"]["p99"]
        lines.append(f"p99 beside hostile / beside valid: {ratio:.2f} (goal 3)")
        code, seconds = siege.end_amid(chosen + 2)
        lines.append(f"SIGTERM amid the attack: exit code {code} after {seconds:.1f} s")
        lines += [f"  {one}" for one in siege.late]
        lines.append(f"load {os.getloadavg()[0]:.1f} after")
    finally:
        siege.close()
        print("\n".join(lines))
    with (RESULTS / f"attack-{time.strftime('%Y-%m-%d')}.txt").open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n\n")
    no_defects(siege, outcome)
    assert not outcome.silent, "\n".join(outcome.silent)
    assert sum(outcome.sent.values()) >= REQUESTS * 0.99
    assert memory.growth_mb < GROWTH_MB_MAX
    assert all(one["wrong"] == 0 for one in times.values())
    assert code == 0
    assert seconds < END_SECONDS_MAX
