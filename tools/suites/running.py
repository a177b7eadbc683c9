"""What every suite needs: its sources, an environment to run it in, servers to run it beside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent


def source_package(folder: Path, name: str, version: str = "") -> tuple[Path, str]:
    """(the unpacked source package of PyPI, its version): the newest unless one is named."""
    asked = f"{name}=={version}" if version else name
    do(folder, sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary",
       name, asked)  # fmt: skip
    archive = next(folder.glob("*.tar.gz"))
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    root = folder / archive.name.removesuffix(".tar.gz")
    return root, root.name.rsplit("-", 1)[1]


def environment_with(folder: Path, *packages: str) -> str:
    """The interpreter of a virtual environment that has these."""
    do(folder, sys.executable, "-m", "venv", "env")
    runner = str(folder / "env" / "bin" / "python")
    do(folder, runner, "-m", "pip", "install", "--quiet", "pytest", "pytest-asyncio",
       "pytest-timeout", *packages)  # fmt: skip
    return runner


def of_checkout(folder: Path, source: Path | None, part: str) -> tuple[Path, str]:
    """(a copy of a part of it, its commit)."""
    if source is None:
        raise SystemExit("This suite is on no registry: give a checkout with --from DIR.")
    shutil.copytree(source / part, folder / "suite", ignore=shutil.ignore_patterns(".git"))
    return folder / "suite", out(source, "git", "rev-parse", "--short=11", "HEAD")


def beside(servers: tuple[str, ...], place: Path, given: dict[str, str], *command: str) -> str:
    """What it printed; whether its tests passed, its report says. `servers` as tools.suites.served
    takes them; an empty value in `given` takes a setting away."""
    path = os.pathsep.join(filter(None, (str(ROOT), given.get("PYTHONPATH"))))
    environment = {**os.environ, **given, "PYTHONPATH": path}
    environment = {
        name: value
        for name, value in environment.items()
        if value and not name.lower().endswith("_proxy")  # a suite sets its own
    }
    done = subprocess.run(
        ["unshare", "-rnm", sys.executable, "-m", "tools.suites.served", *servers, "--", *command],
        cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )  # fmt: skip
    return done.stdout


def do(place: Path, *command: str, environment: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=place, env={**os.environ, **(environment or {})}, check=True)


def out(place: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    return done.stdout.strip()
