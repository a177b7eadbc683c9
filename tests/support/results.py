"""What every result in bench/results/ says of itself."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit() -> str:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    here = Path(__file__).parent
    found = subprocess.run(asked, cwd=here, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"
