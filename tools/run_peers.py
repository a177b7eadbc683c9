"""Run the benchmarks that compare this server with others, and keep what they print.

    python -m tools.run_peers            all of them; about half an hour
    python -m tools.run_peers table      compared with Azurite (npm)
    python -m tools.run_peers mongo      compared with FerretDB 1.24 (Go)
    python -m tools.run_peers gremlin    compared with Gremlin Server (Maven)
    python -m tools.run_peers http       compared with @vercel/cosmosdb-server (npm)

Peers come from their registries by name. What is printed goes to bench/results/ with its command,
commit and the load before; `bench.http` keeps files of its own as well.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tools.run_suites import RESULTS, commit
from tools.suites.running import ROOT

PEERS: Final[dict[str, tuple[str, ...]]] = {
    "table": ("-m", "bench.table"),
    "mongo": ("bench/mongo.py", "--ferretdb"),
    "gremlin": ("-m", "bench.gremlin"),
    "http": ("-m", "bench.http"),
}


def run(name: str, results: Path) -> Path:
    command = PEERS[name]
    now = datetime.now(UTC)
    head = (
        f"python {' '.join(command)}   {now:%Y-%m-%d %H:%M} UTC, at {commit()}, "
        f"load {os.getloadavg()[0]:.1f} before\n"
    )
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    file = results / f"{name}-{now:%Y-%m-%d}.txt"
    file.write_text(head + done.stdout, "utf-8")
    return file


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run the benchmarks that compare with others.")
    parser.add_argument("names", nargs="*", choices=(*PEERS, []), default=[])
    for asked in parser.parse_args().names or PEERS:
        print(run(asked, RESULTS).read_text("utf-8"))
