"""Porcupine's opinion of a history, where Go is installed and its module can be had
(`porcupine/main.go`). A key with dozens of operations that were never answered, and whose effect
was seen, may be undecided when its time is over; `linear.py` decides them all."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.support.histories.record import Operation, save

FOLDER = Path(__file__).parent / "porcupine"


@dataclass(frozen=True, slots=True)
class Opinion:
    operations: int
    keys: int
    illegal: list[str]
    unknown: list[str]

    def __str__(self) -> str:
        result = f"not linearizable: {', '.join(self.illegal)}" if self.illegal else "linearizable"
        undecided = f", {len(self.unknown)} undecided in time" if self.unknown else ""
        return (
            f"Porcupine: {self.operations:,} operations on {self.keys:,} keys: {result}{undecided}"
        )


def judged(history: Iterable[Operation], folder: Path, *, key_seconds: int = 30) -> Opinion | None:
    """None: no Go, or no module."""
    if shutil.which("go") is None:
        return None
    program, path = folder / "porcupine", folder / "history.jsonl"
    made = subprocess.run(["go", "build", "-o", str(program), "."], cwd=FOLDER, check=False)
    if made.returncode:
        return None
    save(path, history)
    with path.open("rb") as lines:
        said = subprocess.run(
            [str(program), "-timeout", f"{key_seconds}s"],
            stdin=lines,
            stdout=subprocess.PIPE,
            check=True,
        )
    return Opinion(**json.loads(said.stdout))
