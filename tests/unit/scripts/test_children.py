"""A script that computes for long gives way to everything else; one that only waits does not."""

from __future__ import annotations

import marshal
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

import orjson
import pytest
from tests.support.waiting import until

from armillary import limits
from armillary.scripts.children.bounds import Bounds
from armillary.scripts.children.process import Child, ChildGone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="priorities as Linux has them")

FOREVER = "function (wanted) { while (wanted); return 7; }"


@pytest.fixture
def child() -> Iterator[Child]:
    made = Child(Bounds(seconds=600.0))
    made.ask(b"F", marshal.dumps([("f", FOREVER)]), time.monotonic() + 60)
    yield made
    made.close()


def call(child: Child, wanted: bool) -> bytes:
    return child.ask(b"C", orjson.dumps([[0, [wanted]]]), time.monotonic() + 600).text


def priority(child: Child) -> int:
    return os.getpriority(os.PRIO_PROCESS, child.pid)


def test_who_computes_for_long_gives_way(child: Child) -> None:
    before = priority(child)
    assert b"7" in call(child, False)
    assert priority(child) == before
    ended: list[bool] = []

    def run() -> None:
        with pytest.raises(ChildGone):
            call(child, True)
        ended.append(True)

    running = threading.Thread(target=run)
    running.start()
    assert until(lambda: priority(child) == min(19, before + limits.SCRIPT_LONG_NICENESS))
    os.kill(child.pid, signal.SIGKILL)
    running.join(60)
    assert ended


def test_who_waits_for_a_processor_does_not(child: Child) -> None:
    """On a busy machine every script takes long by the clock."""
    before = priority(child)
    os.kill(child.pid, signal.SIGSTOP)
    found: list[bytes] = []
    running = threading.Thread(target=lambda: found.append(call(child, False)))
    running.start()
    running.join(5 * limits.SCRIPT_LONG_SECONDS)
    assert priority(child) == before
    os.kill(child.pid, signal.SIGCONT)
    running.join(60)
    assert b"7" in found[0]
    assert not child.is_worn()


def test_who_was_slowed_is_good_again_only_with_its_old_priority(
    child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    child._slow_down()
    assert child.is_worn()
    with monkeypatch.context() as patched:
        patched.setattr(os, "setpriority", _refused)
        child.recover()
        assert child.is_worn()
    child.recover()
    has_it_back = priority(child) == os.getpriority(os.PRIO_PROCESS, 0)
    assert child.is_worn() is not has_it_back


def _refused(*_: object) -> None:
    raise PermissionError
