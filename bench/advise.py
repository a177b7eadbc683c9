"""How fast `armillary advise` reads, beside polars reading the same file and nothing else.

    python bench/advise.py --items 1000000 [--format jsonl|parquet]

Makes a file of device readings (about 310 bytes each as JSON), lets polars read all of it in its
own batches, then runs the command on it with a workload. Both run in processes of their own, so
that peak memory and CPU time are theirs. Prints MB/s, CPU seconds and peak memory of each, and the
ratio.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

CHUNK = 500_000
READ = """
import polars as pl, sys
path = sys.argv[1]
scan = pl.scan_parquet(path) if path.endswith("parquet") else pl.scan_ndjson(path)
print(sum(len(batch) for batch in scan.collect_batches()))
"""
WORKLOAD = {
    "operations": [
        {"kind": "create", "rate": 8_000},
        {"kind": "query", "rate": 400, "text": "SELECT * FROM c WHERE c.deviceId = @d"},
        {"kind": "query", "rate": 4, "text": "SELECT * FROM c WHERE c.date = @d"},
    ]
}


def readings(start: int, count: int, total: int, random: np.random.Generator) -> pl.DataFrame:
    number = np.arange(start, start + count)
    seconds = 1_767_225_600 + number * (30 * 86_400 / total)
    frame = pl.DataFrame(
        {
            "id": random.integers(0, 2**63, count),
            "deviceId": random.integers(0, 200_000, count),
            "at": pl.Series((seconds * 1000).astype(np.int64)),
            "site": random.integers(0, 300, count),
            "temperature": random.normal(20, 5, count),
            "pressure": random.normal(1000, 20, count),
            "status": random.integers(0, 4, count),
        }
    )
    moment = pl.from_epoch("at", time_unit="ms")
    return frame.select(
        pl.format("{}-{}", pl.col("id"), pl.Series(number)).alias("id"),
        pl.format("device-{}", pl.col("deviceId")).alias("deviceId"),
        moment.dt.strftime("%Y-%m-%d").alias("date"),
        moment.dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").alias("at"),
        pl.struct(pl.format("site-{}", "site").alias("name"), pl.lit("eu").alias("region")).alias(
            "site"
        ),
        "temperature",
        "pressure",
        pl.format("s{}", "status").alias("status"),
        pl.lit("x" * 60).alias("note"),
    )


def make(path: Path, items: int) -> None:
    random = np.random.default_rng(1)
    if path.suffix == ".parquet":
        pl.concat(
            [readings(at, min(CHUNK, items - at), items, random) for at in range(0, items, CHUNK)]
        ).write_parquet(path, row_group_size=100_000)
        return
    with path.open("wb") as file:
        for at in range(0, items, CHUNK):
            readings(at, min(CHUNK, items - at), items, random).write_ndjson(file)


def run(command: list[str]) -> tuple[float, float, float, str]:
    """(seconds, CPU seconds, peak MB, what it printed) of a process."""
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        child = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
        took = time.perf_counter() - began
        if status:
            raise SystemExit(f"{command[:4]} ended with {status}")
        out.seek(0)
        return took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out.read().decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--format", choices=["jsonl", "parquet"], default="jsonl")
    parser.add_argument("--folder", type=Path, default=None, help="Keeps the file for next time.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        path = folder / f"readings-{given.items}.{given.format}"
        if not path.exists():
            make(path, given.items)
        workload = Path(temporary) / "workload.json"
        workload.write_text(json.dumps(WORKLOAD))
        size = path.stat().st_size / 1e6
        print(f"{given.items:,} items, {size:,.0f} MB of {given.format}, {os.cpu_count()} cores")
        read = run([sys.executable, "-c", READ, str(path)])
        options = ["--workload", str(workload), "--throughput", "100000", "--json"]
        advised = run([sys.executable, "-m", "armillary", "advise", str(path), *options])
        answer = json.loads(advised[3])
        for name, (took, cpu, peak, _) in (("polars", read), ("advise", advised)):
            print(
                f"{name:8} {size / took:8.1f} MB/s   {took:6.1f} s   CPU {cpu:6.1f} s   "
                f"peak {peak:6.0f} MB"
            )
        print(f"ratio    {read[0] / advised[0]:8.2f} of polars (CPU {read[1] / advised[1]:.2f})")
        print(f"answer   {answer['recommended']['key']}")


if __name__ == "__main__":
    main()
