"""The redo log against plain dictionaries, and each rule that keeps it right broken on purpose.

If a broken rule is not found, the model can't see it, and neither could it see a mistake of ours.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mmh3 import mmh3_x64_128_digest as murmur_128
from tests.support.redo_model import LOG_BYTES, RECORD_BYTES, first_wrong, run_history

from armillary.engine.lmdb import commit, environment, redo_log
from armillary.engine.lmdb.access import LmdbReader
from armillary.engine.lmdb.commit import GroupCommit
from armillary.engine.lmdb.engine import LmdbStore
from armillary.engine.lmdb.environment import Environment
from armillary.engine.lmdb.redo_log import Part, RedoLog
from armillary.engine.lmdb.tail import Layer, Tail, TailReader, View
from armillary.engine.overlay import OverlayWriter

HISTORIES = 120  # of the right code
FOUND_WITHIN = 400  # histories, for every broken rule

Patch = Callable[[pytest.MonkeyPatch], None]


def test_every_way_of_reading_agrees_with_a_dictionary() -> None:
    assert first_wrong(HISTORIES) is None


@settings(max_examples=60)
@given(st.randoms(use_true_random=False), st.integers(1, 8))
def test_a_short_history_that_goes_wrong_is_made_shorter(random: Random, steps: int) -> None:
    run_history(random, steps)


# --- records --------------------------------------------------------------------------------------


def no_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(redo_log, "sync", lambda file: None)


def head_moved_before_the_sync(patch: pytest.MonkeyPatch) -> None:
    sync = redo_log.sync
    logs: list[RedoLog] = []
    append = RedoLog.append

    def noted(self: RedoLog, parts: Sequence[Part]) -> bool:
        logs[:] = [self]
        return append(self, parts)

    def late(file: int) -> None:
        log = logs[0]
        _, end, mark = log.head()
        data = os.pread(file, LOG_BYTES, redo_log.HEAD_PAGE + end)
        ends = [size for _, size in redo_log._whole_records(data, mark)]
        log.numbers[1] = end + ends[0]
        sync(file)
        log.numbers[1] = end

    patch.setattr(RedoLog, "append", noted)
    patch.setattr(redo_log, "sync", late)


def head_moved_before_the_record(patch: pytest.MonkeyPatch) -> None:
    append = RedoLog.append

    def early(self: RedoLog, parts: Sequence[Part]) -> bool:
        _, end, mark = self.head()
        body = redo_log._encode(parts)
        size = redo_log._RECORD.size + len(body)
        if len(body) > RECORD_BYTES or end + size > LOG_BYTES:
            return append(self, parts)
        self.numbers[1] = end + size
        checksum = murmur_128(mark + body)[:4]
        record = redo_log._RECORD.pack(checksum, len(body), mark) + body
        os.pwrite(self._file, record, redo_log.HEAD_PAGE + end)
        redo_log.sync(self._file)
        return True

    patch.setattr(RedoLog, "append", early)


def whole_or_not(patch: pytest.MonkeyPatch) -> None:
    """Records are not looked at before they are believed."""
    patch.setattr(redo_log, "murmur_128", lambda data: _Any(murmur_128(data)))


class _Any(bytes):
    """Equal to whatever it is compared with, in part too."""

    def __getitem__(self, which: Any) -> Any:
        return _Any(bytes.__getitem__(self, which))

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = bytes.__hash__


def joined_rows_in_no_record(patch: pytest.MonkeyPatch) -> None:
    parts = commit._Group.parts
    patch.setattr(commit._Group, "parts", lambda self: parts(self) or [])


def one_space_of_a_group(patch: pytest.MonkeyPatch) -> None:
    append = RedoLog.append
    patch.setattr(RedoLog, "append", lambda self, parts: append(self, parts[:1]))


def deletes_in_no_record(patch: pytest.MonkeyPatch) -> None:
    append = RedoLog.append

    def puts(self: RedoLog, parts: Sequence[Part]) -> bool:
        kept: list[Part] = []
        for space, keys, values in parts:
            rows = {k: v for k, v in zip(keys, values, strict=True) if v is not None}
            kept.append((space, list(rows), list(rows.values())))
        return append(self, kept)

    patch.setattr(RedoLog, "append", puts)


# --- groups ---------------------------------------------------------------------------------------


def a_refused_command_is_not_undone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OverlayWriter, "undo_to", lambda self, mark: None)


def a_failed_group_is_not_undone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commit._Group, "undo", lambda self: None)


def a_failed_group_takes_those_before_along(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commit._Group, "accept", lambda self: None)


# --- commits of LMDB ------------------------------------------------------------------------------


def the_mark_stays(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(environment, "NONCES", lambda size: b"m" * size)


def the_mark_of_a_flush_stays(patch: pytest.MonkeyPatch) -> None:
    """And nothing but a cleared first record keeps the records from being replayed again."""
    patch.setattr(commit, "put_mark", lambda transaction: None)
    patch.setattr(commit, "is_marked", lambda transaction: True)


def the_mark_of_a_replay_stays(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(environment, "put_mark", lambda transaction: None)
    patch.setattr(commit, "is_marked", lambda transaction: True)


def the_log_ends_before_its_commit(patch: pytest.MonkeyPatch) -> None:
    flush = GroupCommit._flush

    def early(self: GroupCommit) -> None:
        self._environment.redo.end()
        flush(self)

    patch.setattr(GroupCommit, "_flush", early)


def a_flush_of_the_last_group_only(patch: pytest.MonkeyPatch) -> None:
    accept = OverlayWriter.accept

    def forget(self: OverlayWriter) -> None:
        last = [key for key, _ in self._undo if isinstance(key, bytes)]
        kept = {key: self._changes[key] for key in last if key in self._changes}
        accept(self)
        if kept:
            self._changes.clear()
            self._changes.update(kept)

    patch.setattr(OverlayWriter, "accept", forget)


# --- replay ---------------------------------------------------------------------------------------


def replay_without_the_last_record(patch: pytest.MonkeyPatch) -> None:
    left = RedoLog.left
    patch.setattr(RedoLog, "left", lambda self, mark: left(self, mark)[:-1])


def replay_backwards(patch: pytest.MonkeyPatch) -> None:
    left = RedoLog.left
    patch.setattr(RedoLog, "left", lambda self, mark: left(self, mark)[::-1])


def replay_up_to_the_head(patch: pytest.MonkeyPatch) -> None:
    """Which is lost with the power."""
    whole = redo_log._whole_records
    left = RedoLog.left

    def shown(self: RedoLog, mark: bytes | None) -> list[list[Part]]:
        end = self.head()[1]
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(redo_log, "_whole_records", lambda data, mark: whole(data[:end], mark))
            return left(self, mark)

    patch.setattr(RedoLog, "left", shown)


def no_replay_at_the_start(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Environment, "replay_at_start", lambda self: None)


def no_replay_for_one_that_died(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RedoLog, "is_open", False)


def replay_only_where_the_head_shows_records(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RedoLog, "is_open", property(lambda self: self.head()[1] != 0))


# --- readers --------------------------------------------------------------------------------------


def readers_without_a_view(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tail, "view", lambda self: None)


def point_reads_without_a_view(patch: pytest.MonkeyPatch) -> None:
    read_via = LmdbStore.read_via

    def blind(self: LmdbStore, *given: Any) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Tail, "view", lambda self: None)
            return read_via(self, *given)

    patch.setattr(LmdbStore, "read_via", blind)


def short_queries_without_a_view(patch: pytest.MonkeyPatch) -> None:
    read_few = LmdbStore.read_few

    def blind(self: LmdbStore, *given: Any) -> Any:
        return self._read_few(*given) or read_few(self, *given)

    patch.setattr(LmdbStore, "read_few", blind)


def pins_without_a_view(patch: pytest.MonkeyPatch) -> None:
    reader_in = LmdbStore.reader_in
    patch.setattr(
        LmdbStore, "reader_in", lambda self, txn, space, view: reader_in(self, txn, space, None)
    )


def a_view_over_newer_snapshots(patch: pytest.MonkeyPatch) -> None:
    def over(self: LmdbStore, transaction: Any, place: Any, space: int, view: View | None) -> Any:
        reader = LmdbReader(transaction, place, self._read_seconds_max)
        layer = None if view is None else view.layers.get(space)
        return reader if layer is None else TailReader(reader, layer)

    patch.setattr(LmdbStore, "_reader", over)
    patch.setattr(Tail, "is_still", lambda self, view: True)


def a_view_asked_for_after_the_snapshot(patch: pytest.MonkeyPatch) -> None:
    """Records that lie on top of a later base are missed."""
    view = Tail.view
    kept: dict[int, View | None] = {}

    def before(self: Tail) -> View | None:
        found = kept.get(id(self))
        kept[id(self)] = view(self)
        return found if found is not None and self.is_still(found) else kept[id(self)]

    patch.setattr(Tail, "view", before)


def a_base_too_low(patch: pytest.MonkeyPatch) -> None:
    begin = RedoLog.begin
    patch.setattr(RedoLog, "begin", lambda self, base, mark: begin(self, base - 1, mark))


def a_layer_that_changes(patch: pytest.MonkeyPatch) -> None:
    after = Layer.after

    def same(self: Layer, new: dict[bytes, bytes | None]) -> Layer:
        made = after(self, new)
        self.changes.update(new)  # type: ignore[attr-defined]
        return made

    patch.setattr(Layer, "after", same)


def an_order_without_new_keys(patch: pytest.MonkeyPatch) -> None:
    order = Layer.order

    def old(self: Layer) -> list[bytes]:
        ordered, _ = self._keys
        return ordered or order(self)

    patch.setattr(Layer, "order", old)


def the_meta_row_below_the_layer(patch: pytest.MonkeyPatch) -> None:
    init = TailReader.__init__

    def below(self: TailReader, base: Any, layer: Layer) -> None:
        init(self, base, layer)
        self.meta = base.meta

    patch.setattr(TailReader, "__init__", below)


def a_new_view_of_new_records_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Layer, "after", lambda self, new: Layer(new))


def a_backup_without_the_log(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LmdbStore, "flush", lambda self: None)


BROKEN: list[Patch] = [
    no_sync,
    head_moved_before_the_sync,
    head_moved_before_the_record,
    whole_or_not,
    joined_rows_in_no_record,
    one_space_of_a_group,
    deletes_in_no_record,
    a_refused_command_is_not_undone,
    a_failed_group_is_not_undone,
    a_failed_group_takes_those_before_along,
    the_mark_stays,
    the_mark_of_a_flush_stays,
    the_mark_of_a_replay_stays,
    the_log_ends_before_its_commit,
    a_flush_of_the_last_group_only,
    replay_without_the_last_record,
    replay_backwards,
    replay_up_to_the_head,
    no_replay_at_the_start,
    no_replay_for_one_that_died,
    replay_only_where_the_head_shows_records,
    readers_without_a_view,
    point_reads_without_a_view,
    short_queries_without_a_view,
    pins_without_a_view,
    a_view_over_newer_snapshots,
    a_view_asked_for_after_the_snapshot,
    a_base_too_low,
    a_layer_that_changes,
    an_order_without_new_keys,
    the_meta_row_below_the_layer,
    a_new_view_of_new_records_only,
    a_backup_without_the_log,
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.__name__)
def test_a_broken_rule_is_found(broken: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)
    assert first_wrong(FOUND_WITHIN) is not None
