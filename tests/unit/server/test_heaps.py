"""Heaps of glibc, one for each thread that came first, each keep what was freed in them: without
these tests a server under load would grow for as long as its threads change places."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.server_process import ServerProcess

from armillary.server.heaps import HEAPS

HEAP_BYTES = 64 * 1024 * 1024
"""Of a heap that is not the first, used and reserved; it begins at a multiple of this."""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc and /proc")


def heaps_of(pid: int) -> int:
    """The first is `[heap]`; each of the others is a used part and the reserved rest of it."""
    found = 1
    areas = []
    for line in Path(f"/proc/{pid}/maps").read_text("ascii").splitlines():
        place, rights, _, _, inode, *_ = line.split()
        start, end = (int(one, 16) for one in place.split("-"))
        areas.append((start, end, rights, inode))
    for (start, middle, rights, inode), (next_start, end, rest, _) in pairwise(areas):
        is_pair = rights == "rw-p" and rest == "---p" and inode == "0" and middle == next_start
        found += is_pair and start % HEAP_BYTES == 0 and end - start == HEAP_BYTES
    return found


def test_a_server_has_few_heaps_from_its_first_thread_on(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", real=True)
    try:
        server.wait_until_ready()
        for _ in range(40):
            assert server.ask("/_armillary/health").status == 200
        assert heaps_of(server.process.pid) <= HEAPS
        server.terminate()
        assert server.end()[0] == 0
    finally:
        server.close()
