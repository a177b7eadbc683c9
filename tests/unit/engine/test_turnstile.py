"""Locks between processes, with and without giving the interpreter up."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from armillary.engine.lmdb import turnstile
from armillary.engine.lmdb.nonces import DRAWN_BYTES, Nonces
from armillary.engine.lmdb.turnstile import FileLock, Quick
from armillary.engine.runs.writing import NONCE_BYTES

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")


@pytest.fixture(params=["usual", "quick"])
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Quick:
    """How this process locks: as one that seldom writes, or as one that often does."""
    made = Quick(calls_min=1 if request.param == "quick" else 1_000_000)
    monkeypatch.setattr(turnstile, "QUICK", made)
    made.lock(-1)  # the call after which it has `ctypes`, or has not
    return made


def test_who_holds_a_lock_keeps_others_out(quick: Quick, tmp_path: Path) -> None:
    one, other = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert one.try_take()
    assert not other.try_take()
    one.free()
    assert other.try_take()
    other.free()
    other.close()
    one.close()


def test_who_has_to_wait_gets_it_when_it_is_freed(quick: Quick, tmp_path: Path) -> None:
    one, other = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    one.take()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other.take)
        assert not waiting.done()
        one.free()
        assert waiting.result(60) is None
    assert not one.try_take()
    other.close()
    one.close()


def test_a_lock_is_quick_only_after_some_calls(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    quick = Quick(calls_min=3)
    seen = [quick.lock(lock._handle) for _ in range(5)]
    assert seen == [False, False, False, True, True]
    assert quick.unlock(lock._handle)
    lock.close()


def test_a_closed_lock_is_an_error_either_way(quick: Quick, tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.close()
    with pytest.raises((OSError, ValueError)):
        lock.try_take()


def test_threads_never_draw_the_same_nonce() -> None:
    nonces = Nonces()
    many = 3 * DRAWN_BYTES // NONCE_BYTES
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: nonces(NONCE_BYTES), range(many)))
    assert {len(one) for one in drawn} == {NONCE_BYTES}
    assert len(set(drawn)) == many
