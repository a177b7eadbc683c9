"""One hour of everything at once, in `make soak`; a minute of it in CI would prove little and cost
much, so there it runs for a few seconds to keep the harness itself honest.

`ARMILLARY_SOAK_MINUTES` makes it longer or shorter. The long run writes what it saw to
bench/results/hour-<date>.txt.
"""

import os
import platform
import sys
import time
from pathlib import Path
from statistics import mean

import pytest
from tests.support.hour import TTL_SECONDS, Hour, Sample

pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs /proc")

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"


def account(hour: Hour) -> None:
    hour.check()
    assert hour.problems == []
    deadline = time.monotonic() + 4 * TTL_SECONDS
    while hour.brief_left() and time.monotonic() < deadline:
        time.sleep(1)
    assert hour.brief_left() == 0, "items past their time to live"


def test_the_harness_for_some_seconds(tmp_path: Path) -> None:
    hour = Hour(tmp_path / "data", 1, say=print)
    try:
        wanted = ("writes", "reads", "feed entries")
        hour.run(90, quiet_share=1.0, enough=lambda: all(hour.counts[one] > 30 for one in wanted))
        hour.check()
        assert hour.problems == []
        assert all(hour.counts[one] > 30 for one in wanted), hour.counts
        # The account can fail: an item that nobody has, and one that is another.
        mine = next(one for one in hour.owned if one.live)
        mine.allowed[mine.live[0]] = (-1,)
        mine.allowed["never written"] = (5,)
        hour.check()
        assert len(hour.problems) >= 2
    finally:
        hour.close()


@pytest.mark.soak
@pytest.mark.timeout(3 * 3600)
def test_an_hour_of_everything(tmp_path: Path) -> None:
    minutes = float(os.environ.get("ARMILLARY_SOAK_MINUTES", "60"))
    report = RESULTS / f"hour-{time.strftime('%Y-%m-%d')}.txt"
    lines = [
        "python -m pytest tests/crash/test_hour.py -m soak -s",
        f"{minutes:g} minutes, {platform.system()} {platform.release()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}",
        "",
    ]
    hour = Hour(tmp_path / "data", time.time_ns() % 2**31, say=print)
    try:
        hour.run(minutes * 60)
        account(hour)
        last = hour.sample()
        lines += [f"{count:>10,}  {what}" for what, count in sorted(hour.counts.items())]
        lines += ["", "second  memory MB   own MB  file MB  ranges"]
        step = max(1, len(hour.samples) // 40)
        lines += [_row(one) for one in [*hour.samples[::step], last]]
        lines += ["", "Nothing lost, nothing doubled, nothing left past its time to live."]
        print("\n".join(lines), file=sys.stderr)
        _check_flat(hour.samples)
        first = next(one.ranges for one in hour.samples if one.ranges > 0)
        assert last.ranges > max(first, 4), "partitions were to split by size"
        lines += ["Memory flat where nothing was killed; the file stopped growing."]
    finally:
        hour.close()
        report.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _row(one: Sample) -> str:
    return (
        f"{one.second:6.0f}  {one.memory_bytes / 1e6:9.1f}  {one.own_bytes / 1e6:7.1f}  "
        f"{one.file_bytes / 1e6:7.1f}  "
        f"{one.ranges:6}"
    )


def _check_flat(samples: list[Sample]) -> None:
    """In the last quarter nothing was killed: its end is compared with its beginning, the file with
    what it was half way, when the number of items had long settled."""
    quarter = samples[-len(samples) // 4 :]
    third = max(1, len(quarter) // 3)
    early = mean(one.own_bytes for one in quarter[third : 2 * third])
    late = mean(one.own_bytes for one in quarter[-third:])
    assert late < 1.1 * early, f"memory went from {early / 1e6:.0f} to {late / 1e6:.0f} MB"
    half = max(one.file_bytes for one in samples[: len(samples) // 2])
    assert samples[-1].file_bytes < 1.5 * half, "the file goes on growing"
