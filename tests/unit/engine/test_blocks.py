"""Blocks against a plain dict, with blocks small enough that every example splits and joins."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armillary.engine import blocks as module
from armillary.engine.blocks import EMPTY, Blocks

KEYS = st.integers(0, 60).map(lambda n: b"%02d" % n)
CHANGES = st.dictionaries(KEYS, st.none() | st.binary(max_size=2), max_size=20)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_ROWS_MAX", 6)
    monkeypatch.setattr(module, "BLOCK_ROWS_MIN", 2)


def _assert_well_formed(blocks: Blocks) -> None:
    assert blocks.firsts[0] == b""
    assert blocks.firsts == sorted(set(blocks.firsts))
    assert len(blocks.firsts) == len(blocks.blocks)
    bounds = [*blocks.firsts[1:], b"\xff"]
    for first, end, block in zip(blocks.firsts, bounds, blocks.blocks, strict=True):
        assert len(block.keys) == len(block.values) <= module.BLOCK_ROWS_MAX
        assert block.keys == sorted(set(block.keys))
        assert all(first <= key < end for key in block.keys)


# The fixture only sets constants, the same for every example.
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CHANGES, max_size=12), KEYS, KEYS)
def test_any_commits_leave_what_a_dict_would_hold_and_old_snapshots_alone(
    commits: list[dict[bytes, bytes | None]], start: bytes, end: bytes
) -> None:
    blocks, model = EMPTY, dict[bytes, bytes]()
    history = []
    for changes in commits:
        blocks = blocks.apply(changes)
        for key, value in changes.items():
            if value is None:
                model.pop(key, None)
            else:
                model[key] = value
        history.append((blocks, dict(model)))
    for snapshot, rows in history:
        _assert_well_formed(snapshot)
        assert list(snapshot.scan(b"", b"\xff")) == sorted(rows.items())
        expected = sorted((k, v) for k, v in rows.items() if start <= k < end)
        assert list(snapshot.scan(start, end)) == expected
        assert list(snapshot.scan_reverse(start, end)) == expected[::-1]
        assert all(snapshot.get(b"%02d" % n) == rows.get(b"%02d" % n) for n in range(61))


def test_deleting_everything_does_not_leave_a_trail_of_small_blocks() -> None:
    blocks = EMPTY.apply({b"%05d" % n: b"" for n in range(5000)})
    for low in range(0, 5000, 10):
        blocks = blocks.apply({b"%05d" % n: None for n in range(low, low + 10)})
    assert len(blocks.blocks) <= 2
