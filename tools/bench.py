"""Run the benchmarks: every bench/*.py that defines `main`, one after the other, each in a process
of its own. `python tools/bench.py point_read` runs one. Files without a `main` are shared code.
"""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def benchmarks(folder: Path) -> list[str]:
    return [path.stem for path in sorted(folder.glob("*.py")) if _has_main(path)]


def _has_main(path: Path) -> bool:
    body = ast.parse(path.read_text(encoding="utf-8"), str(path)).body
    return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in body)


def main(wanted: list[str]) -> int:
    known = benchmarks(ROOT / "bench")
    if unknown := sorted(set(wanted) - set(known)):
        print(f"No benchmark named {', '.join(unknown)}. There are: {', '.join(known) or 'none'}.")
        return 2
    if not known:
        print("There are no benchmarks yet.")
    failed = []
    for name in wanted or known:
        print(f"--- {name}", flush=True)
        command = [sys.executable, "-m", f"bench.{name}"]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"Failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
