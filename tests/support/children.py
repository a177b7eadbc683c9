"""Python in another process, with this checkout importable. For what only two processes show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PREAMBLE = """
import os, sys, time
from pathlib import Path
from armillary.engine.base import *
from armillary.engine.lmdb.engine import LmdbEngine
from tests.support.commands import HANDLERS, command, first_rows
folder = Path(sys.argv[1])
"""


def start_child(
    code: str, folder: Path, *arguments: str, preload: Path | None = None, **settings: str
) -> subprocess.Popen[str]:
    """`code` runs after PREAMBLE. Its output is text; its input is a pipe the test may write to."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, **settings}
    if preload is not None:
        environment["LD_PRELOAD"] = str(preload)
    return subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + code, str(folder), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment,
    )


def run_child(
    code: str, folder: Path, *arguments: str, preload: Path | None = None, **settings: str
) -> subprocess.CompletedProcess[str]:
    child = start_child(code, folder, *arguments, preload=preload, **settings)
    output, errors = child.communicate(timeout=120)
    return subprocess.CompletedProcess(child.args, child.returncode, output, errors)


def output_of(code: str, folder: Path, *arguments: str) -> str:
    """What a child that must succeed printed."""
    done = run_child(code, folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_for_line(child: subprocess.Popen[str], line: str) -> None:
    assert child.stdout is not None
    while (text := child.stdout.readline()) != "":
        if text.strip() == line:
            return
    assert child.stderr is not None
    raise AssertionError(f"the child ended before it said {line!r}: {child.stderr.read()}")
