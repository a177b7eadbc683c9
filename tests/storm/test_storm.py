"""Without these, a split under real load could lose a write, show one twice, or stop the writers.

In CI some megabytes; `make soak` runs the full size and writes bench/results/storm-<engine>.txt.
"""

import os
import platform
import time
from pathlib import Path

import pytest
from tests.support.postgres import fresh_url
from tests.support.storm import Findings, Size, Storm

from armillary.account import open_account

SEED = 30
RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
KB, MB = 1000, 1000**2


def run(address: str, size: Size, partition_bytes: int, seed: int = SEED) -> Findings:
    with open_account(address, partition_bytes=partition_bytes, durability="relaxed") as account:
        return Storm(account, size, seed).run()


def test_on_lmdb(tmp_path: Path) -> None:
    found = run(str(tmp_path / "data"), Size(4 * MB, ranges_min=5, merges_min=1), 256 * KB)
    assert found.wrong == [], "\n".join(found.lines())
    assert found.counts["most ranges"] > 4, found.lines()
    assert found.counts["merges"] > 0, found.lines()
    assert found.counts["feed items"] >= found.counts["writes"] / 2, found.lines()
    print(*found.lines(), sep="\n")


def test_with_all_versions(tmp_path: Path) -> None:
    """Old versions travel too."""
    found = run(str(tmp_path / "data"), Size(2 * MB, retention_minutes=10), 256 * KB)
    assert found.wrong == [], "\n".join(found.lines())


@pytest.mark.postgres
def test_on_postgresql() -> None:
    found = run(fresh_url(), Size(1 * MB, readers=2, ranges_min=2), 256 * KB)
    assert found.wrong == [], "\n".join(found.lines())
    assert found.counts["ranges at the end"] > 1, found.lines()


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["lmdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_full_size(engine: str, tmp_path: Path) -> None:
    """100 MB in partitions of 1 MB; on PostgreSQL a tenth of it."""
    seed = int(os.environ.get("ARMILLARY_STORM_SEED", SEED))
    data, address = (
        (100 * MB, str(tmp_path / "data")) if engine == "lmdb" else (10 * MB, fresh_url())
    )
    began = time.perf_counter()
    found = run(address, Size(data, merges=False, seconds_max=3600), 1 * MB, seed)
    lines = [
        f"{time.strftime('%Y-%m-%d')} make soak: {data // MB} MB on {engine}, partitions of 1 MB, "
        f"4 writers, 4 readers, seed {seed}: {time.perf_counter() - began:.0f} s on "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        *found.lines(),
    ]
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / f"storm-{engine}.txt").open("a") as file:
        file.write("\n".join(lines) + "\n")
    assert found.wrong == [], lines
