"""The wheel in an empty virtual environment, without the repository: what a stranger would do.

    python tools/try_wheel.py dist/armillary-….whl

Serves and answers, runs the demo in the terminal and the advisor on an example, and looks whether
the extras that are not installed say what to install. Ends with 1 at the first that does not work.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path

SECONDS_MAX = 600


def main(wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "venv", with_pip=True)
        python = home / "venv" / "bin" / "python"
        install(python, str(wheel.resolve()))
        print(f"installed: {size_of(home / 'venv') / 1e6:.0f} MB")
        serves(home)
        missing(home, ["serve", "--help"], None)
        missing(home, ["advise", "--scenario", "telemetry"], "armillary[advisor]")
        demo(home)
        install(python, f"{wheel.resolve()}[advisor]")
        told = run(home, ["advise", "--scenario", "telemetry"]).stdout
        expect("recommended" in told, f"advise says nothing:\n{told[:500]}")
        print("advise --scenario telemetry: fine")


def install(python: Path, what: str) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what]
    subprocess.run(command, check=True, timeout=SECONDS_MAX)


def environment() -> dict[str, str]:
    """Nothing that could find the repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def run(home: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(home / "venv" / "bin" / "armillary"), *words],
        cwd=home,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


def serves(home: Path) -> None:
    command = [str(home / "venv" / "bin" / "armillary"), "serve", "--port", "0"]
    for name in ("table", "mongo", "gremlin"):
        command += [f"--{name}-port", "0" if name != "mongo" else "off"]
    with subprocess.Popen(
        command, cwd=home, env=environment(), stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            printed = ""
            for line in server.stdout:
                printed += line
                if line.startswith("ready "):
                    break
            found = re.search(r"^ready (http://\S+)", printed, re.MULTILINE)
            expect(found is not None, f"the server is not ready:\n{printed}")
            assert found is not None
            with urllib.request.urlopen(f"{found[1]}/_armillary/health", timeout=30) as answer:
                expect(answer.status == 200, "no health")
            expect("armillary[portal]" in printed, "serve does not say that the portal is missing")
        finally:
            server.terminate()
            server.wait(60)
    print("serve: fine")


def demo(home: Path) -> None:
    done = run(home, ["demo", "--terminal", "--seconds", "2"])
    expect(done.returncode == 0, f"demo --terminal: {done.stderr[-500:]}")
    print("demo --terminal: fine")


def missing(home: Path, words: list[str], extra: str | None) -> None:
    done = run(home, words)
    expect("Traceback" not in done.stderr, f"{words}: a traceback\n{done.stderr[-800:]}")
    if extra is not None:
        expect(extra in done.stderr, f"{words} does not say {extra!r}: {done.stderr[-500:]}")
        print(f"{' '.join(words)} without its extra: says {extra}")


def size_of(folder: Path) -> int:
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())


def expect(holds: bool, text: str) -> None:
    if not holds:
        sys.exit(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
