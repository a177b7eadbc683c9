"""Build fault_shim.c once per test session, or skip by name where nothing can build it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("fault_shim.c")


def build_fault_shim(folder: Path) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler: the fault shim can't be built")
    if not sys.platform.startswith("linux"):
        pytest.skip("the fault shim needs LD_PRELOAD and /proc of Linux")
    library = folder / "fault_shim.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library)]
    subprocess.run([*command, str(SOURCE), "-ldl"], check=True)
    return library
