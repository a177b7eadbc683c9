"""`python -m bench.simulate [NAME…]`: how long the simulator takes.

The reference scenario (one full range to 100 TB in a year, then 10 M RU/s) has to take less than a
minute; the others are there to compare. CPU time beside wall time, because other work may run.
"""

import sys
import time

from bench.report import Report

from armillary.sim.run import simulate
from armillary.sim.scenarios import NAMED, named


def main() -> None:
    report = Report("simulate")
    for name in [word for word in sys.argv[1:] if not word.startswith("-")] or NAMED:
        wall, cpu = time.perf_counter(), time.process_time()
        result = simulate(named(name))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        report.line(
            f"{name}: {result.scenario.days:g} days",
            wall,
            unit="s",
            cpu_s=round(cpu, 1),
            partitions=result.hours[-1].partitions,
            splits=result.splits,
            windows=len(result.windows),
        )


if __name__ == "__main__":
    main()
