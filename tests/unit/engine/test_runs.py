"""Bounds of runs: how many are live, how much a piece of merging reads, what is kept in memory."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from random import Random
from typing import Any
from zlib import crc32

import msgspec
import pytest
from tests.support.commands import command, first_rows
from tests.support.run_area import MemoryArea
from tests.support.waiting import until

from armillary.engine.lmdb import environment
from armillary.engine.lmdb.engine import LmdbEngine
from armillary.engine.runs import checking, merging, writing
from armillary.engine.runs.area import Area
from armillary.engine.runs.blocks import (
    Block,
    cut_blocks,
    decode_block,
    of_entries,
    put_together,
)
from armillary.engine.runs.cache import CACHE, EXPANSION, BlockCache, Whole
from armillary.engine.runs.directory import EMPTY, SLOTS_MAX, Directory, Run, Slot, pack_directory
from armillary.errors import DataDamaged
from armillary.store.rows import layout

OpenLmdb = Callable[..., LmdbEngine]


def burst(groups: int, entries: int) -> tuple[MemoryArea, Directory, int]:
    """Commits of random entries, as the engine makes them. The most slots there ever were, too."""
    random, area, directory, most = Random(3), MemoryArea(), EMPTY, 0
    for _ in range(groups):
        changes: dict[bytes, bytes | None] = {
            b"\x51" + random.randbytes(12): b"" for _ in range(entries)
        }
        directory = writing.flush(area, directory, changes, random.randbytes)  # type: ignore[arg-type]
        directory = merging.plan(directory, random.randbytes, busy=True)
        work = merging.work_of(entries)
        directory = merging.work(area, directory, work, busy=True)  # type: ignore[arg-type]
        most = max(most, len(directory.parts()))
    return area, directory, most


@pytest.mark.parametrize(("groups", "entries"), [(120, 500), (400, 17)])
def test_few_runs_are_live_during_and_after_a_burst(groups: int, entries: int) -> None:
    area, directory, most = burst(groups, entries)
    assert most <= 14
    while merging.is_due(directory):
        directory = merging.plan(directory, Random(1).randbytes, busy=False)
        directory = merging.work(area, directory, 16_000)  # type: ignore[arg-type]
    assert len(directory.slots) <= 6
    assert sum(slot.entries for slot in directory.slots) == groups * entries
    assert len(pack_directory(directory)) <= 1_000


def test_what_was_begun_in_a_pause_of_a_load_does_not_burden_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or each pause begins a merge of nearly everything, and the commits after it do that."""
    random, area, directory, most = Random(4), MemoryArea(), EMPTY, 0
    read = 0
    piece = merging.merge_piece

    def counted(*given: Any) -> tuple[Directory, int]:
        nonlocal read
        after, done = piece(*given)
        read += done
        return after, done

    calls, commits, entries = 24, 6, 1_500
    for _ in range(calls):
        monkeypatch.setattr(merging, "merge_piece", counted)
        for _ in range(commits):
            changes: dict[bytes, bytes | None] = {
                b"\x51" + random.randbytes(12): b"" for _ in range(entries)
            }
            directory = writing.flush(area, directory, changes, random.randbytes)  # type: ignore[arg-type]
            directory = merging.plan(directory, random.randbytes, busy=True)
            work = merging.work_of(entries)
            directory = merging.work(area, directory, work, busy=True)  # type: ignore[arg-type]
            most = max(most, len(directory.parts()))
        monkeypatch.setattr(merging, "merge_piece", piece)
        # A pause: time for one piece.
        directory = merging.plan(directory, random.randbytes, busy=False)
        directory = merging.work(area, directory, merging.PIECE_ENTRIES)  # type: ignore[arg-type]
    assert read <= 2 * calls * commits * entries
    assert most <= SLOTS_MAX + commits
    assert len(pack_directory(directory)) <= 1_000


def test_of_very_many_runs_those_that_are_alike_merge_and_not_all() -> None:
    sizes = [size for size in (30_000, 240_000, 1_900_000, 15_000_000) for _ in range(7)]
    runs = [Run(number, b"%08d" % number, size, 1) for number, size in enumerate(sizes)]
    directory = Directory(tuple(Slot((run,)) for run in runs), len(runs))
    assert len(sizes) > SLOTS_MAX
    after = merging.plan(directory, Random(1).randbytes, busy=True)
    begun = [slot.inputs for slot in after.slots if slot.merging]
    assert begun
    assert all(len({run.entries for run in inputs}) == 1 for inputs in begun)


def test_a_piece_of_a_merge_is_bounded() -> None:
    area, directory, _ = burst(60, 500)
    directory = merging.plan(directory, Random(1).randbytes, busy=False)
    slots = [at for at, slot in enumerate(directory.slots) if slot.merging]
    for at in slots[:1]:
        _, read = merging.merge_piece(area, directory, at, 1_000)  # type: ignore[arg-type]
        assert read <= 1_000 + 300 * len(directory.slots[at].inputs), "whole blocks are read"


def test_a_sorted_load_is_one_run_and_merges_nothing() -> None:
    area, directory = MemoryArea(), EMPTY
    for part in range(20):
        rows: dict[bytes, bytes | None] = {
            b"\x51%06d" % (1_000 * part + number): b"" for number in range(1_000)
        }
        directory = writing.flush(area, directory, rows, Random(1).randbytes)  # type: ignore[arg-type]
        assert not merging.is_due(directory)
    assert [slot.entries for slot in directory.slots] == [20_000]


def test_batches_of_rising_rows_of_several_kinds_merge_nothing_but_the_few_between() -> None:
    """As many documents with rising names, one batch after the other: rows of the partition and of
    the index of names, and one of the record of a retryable write, which lies between them."""
    area, directory, number, merged = MemoryArea(), EMPTY, 0, 0
    for batch in range(100):
        rows: dict[bytes, bytes | None] = {b"\x51a%06d" % batch: b""}
        for _ in range(100):
            number += 1
            rows |= {b"\x31%06d" % number: b"", b"\x51b%06d" % number: b""}
        directory = writing.flush(area, directory, rows, Random(batch).randbytes)  # type: ignore[arg-type]
        directory = merging.plan(directory, Random(batch).randbytes, busy=True)
        merged += sum(slot.entries for slot in directory.slots if slot.merging)
        directory = merging.work(area, directory, 10_000)  # type: ignore[arg-type]
    assert merged <= 100
    assert max(slot.entries for slot in directory.slots) >= 9_900
    assert sum(slot.entries for slot in directory.slots) == 20_100
    area.save(directory)
    assert not [*checking.problems(area, b"\x31\x51")]  # type: ignore[arg-type]


def test_blocks_fill_a_page_and_never_more() -> None:
    random = Random(2)
    for longest in (8, 40, 300, 506):
        keys = sorted({random.randbytes(random.randrange(1, longest + 1)) for _ in range(900)})
        values: list[bytes | None] = [random.choice([None, b"", b"v" * 20]) for _ in keys]
        blocks = cut_blocks(of_entries(keys, values), b"\xff" * 600)
        assert all(len(value) <= 4_080 for _, value in blocks)
        made = [decode_block(value) for _, value in blocks]
        found = [one.part(0, len(one)) for one in made]
        assert [key for one, _ in found for key in one] == keys
        assert [value for _, one in found for value in one] == values
        for (bound, _), (before, _), (after, _) in zip(blocks, found, found[1:], strict=False):
            assert before[-1] < bound <= after[0]


@pytest.mark.parametrize("lengths", [(30, 31), (30, 160), (1, 250), (200, 320)])
@pytest.mark.parametrize("tombstones", [False, True])
@pytest.mark.parametrize("count", [400, 2_000])  # a short list is counted at once
def test_blocks_hold_as_many_entries_as_fit(
    lengths: tuple[int, int], tombstones: bool, count: int
) -> None:
    """Pages are what a merge costs. The reference counts entry by entry; what it may leave free is
    an allowance for the longest head, and a byte of each entry that might have had 256."""
    random = Random(5)
    keys = sorted({b"Q" + random.randbytes(random.choice(lengths)) for _ in range(count)})
    values = [None if tombstones and random.random() < 0.5 else b"v" * 16 for _ in keys]
    made = [decode_block(value) for _, value in cut_blocks(of_entries(keys, values), b"R")]
    at = 0
    for block in made[:-1]:
        at += len(block)
        first, last = at - len(block), at + 1
        entries = zip(keys[first:last], values[first:last], strict=True)
        beside = (2 if block.joined is None else 0) + 2 + (lengths[1] > 230)
        assert sum(len(key) + len(value or b"") + beside for key, value in entries) > 4_080 - 16


@pytest.mark.parametrize("count", [1, 3, 40])
def test_newer_entries_hide_older_ones_be_they_few_or_many(count: int) -> None:
    """Few are laid over the older ones one by one, many in a dictionary."""
    random = Random(count)
    for _ in range(50):
        older, newer = (
            {
                b"Q%c" % random.randrange(60): random.choice([None, b"", b"v", b"other"])
                for _ in range(size)
            }
            for size in (30, count)
        )
        sources = [
            of_entries(keys := sorted(one), [one[key] for key in keys]) for one in (newer, older)
        ]
        found = [block.part(0, len(block)) for block in put_together(sources, tombstones=True)]
        assert dict(zip(*found[0], strict=True)) == older | newer
        assert found[0][0] == sorted(older | newer)


def test_rows_that_follow_each_other_are_deleted_by_one_cursor(open_lmdb: OpenLmdb) -> None:
    """LMDB joins pages meanwhile, and a cursor that lost its place would leave rows, or take
    others."""
    random, environment = Random(7), open_lmdb()._environment.lmdb
    db = environment.open_db(b"rows")
    for prefix in (b"", b"\0\0\0\7"):
        with environment.begin(write=True) as transaction:
            area, model = Area(transaction, db, prefix), MemoryArea()
            for number in range(4_000):
                key = bytes((random.randrange(4),)) + random.randbytes(random.randrange(1, 300))
                value = random.randbytes(random.choice((10, 4_000 if number % 9 else 700)))
                area.put(key, value)
                model.put(key, value)
            for kind in (b"\1", b"\3"):
                for _ in range(12):
                    count = random.randrange(1, 70)
                    start = random.choice([*islice(model.keys_of(kind), 500)])
                    area.delete_from(start, count)
                    model.delete_from(start, count)
                assert area.take(kind) == model.take(kind)
            assert area.rows(b"\0", b"\xff", 9_999) == model.rows(b"\0", b"\xff", 9_999)
            transaction.abort()


@pytest.mark.parametrize(
    ("form", "body"),
    [(1, [[b"a", b"b"], [b"1", None]]), (2, [1, [b"a1", b"b2"]])],
)
def test_blocks_of_earlier_versions_are_read(form: int, body: list[object]) -> None:
    """They have a CRC32. Folders that were made before have such blocks until they are merged."""
    packed = msgspec.msgpack.encode(body)
    value = bytes((form,)) + crc32(packed).to_bytes(4, "big") + packed
    keys, values = decode_block(value).part(0, 2)
    assert (keys, values) == ([b"a", b"b"], [b"1", None if form == 1 else b"2"])
    for wrong in (value[:-1] + b"x", bytes((form + 2,)) + value[1:], b"\x05" + value[1:], b"\x01"):
        with pytest.raises(DataDamaged):
            decode_block(wrong)


def test_the_cache_is_bounded() -> None:
    cache = BlockCache(100_000)
    for number in range(1_000):
        cache.put(b"%d" % number, Block([b"k"], [b"v"]), 1_000)
    assert cache.get(b"999") is not None
    kept = sum(cache.get(b"%d" % number) is not None for number in range(1_000))
    assert kept <= 100_000 // EXPANSION // 1_000


def test_a_small_run_that_was_replaced_is_forgotten() -> None:
    cache = BlockCache(1_000_000)
    for number in range(3):
        cache.put_whole(b"%d" % number, Whole({0x41: Block([b"k"], [b"v"])}, 100))
    cache.forget([b"0", b"1", b"none"])
    assert [cache.get_whole(b"%d" % number) is None for number in range(3)] == [True, True, False]


def test_writes_and_looks_in_turns_keep_few_runs_whole(
    open_lmdb: OpenLmdb, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write makes the newest run again: of those before nothing is kept."""
    names: list[bytes] = []
    put_whole = BlockCache.put_whole

    def watched(self: BlockCache, name: bytes, whole: Whole) -> None:
        names.append(name)
        put_whole(self, name, whole)

    monkeypatch.setattr(BlockCache, "put_whole", watched)
    engine = open_lmdb(packed=b"\x51")
    engine.create_space(1, first_rows())
    for number in range(40):
        key = b"\x51%04d" % (7 * number % 40)
        engine.run(1, command(("put", key, b"v")))
        engine.flush()
        for _ in range(20):
            with engine.read(1) as reader:
                assert reader.get(key) == b"v"
    assert len(names) >= 20
    monkeypatch.undo()
    assert sum(CACHE.get_whole(name) is not None for name in names) < 10


def test_merging_rests_while_an_old_snapshot_lives(
    open_lmdb: OpenLmdb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "OLD_READER_SECONDS", 0.0)
    monkeypatch.setattr(environment, "OLD_READER_COMMITS", 3)
    engine = open_lmdb(packed=b"\x51")
    engine.create_space(1, first_rows())
    assert not engine._environment.has_old_reader()
    with engine.read(1):
        for number in range(6):
            engine.run(1, command(("put", b"\x51%d" % number, b"v")))
            engine.flush()
        assert engine._environment.has_old_reader()
    assert not engine._environment.has_old_reader()
    until(lambda: not engine._commit.due)


def test_queues_point_rows_and_absolute_values_are_in_no_run() -> None:
    """`tx` is a queue, whose first live key would lie behind all tombstones; `lp` is read by every
    write."""
    for kind in (layout.TX, layout.LP, layout.DOC, layout.ID, layout.UX, layout.LOG, layout.SHAPE):
        assert kind not in layout.PACKED


@pytest.mark.parametrize("key", [b"\xf0", b"\xf1\x00\x00\x00\x01x", b"\xff"])
def test_keys_of_the_engine_are_refused_and_hidden(open_lmdb: OpenLmdb, key: bytes) -> None:
    engine = open_lmdb(packed=b"\x51")
    engine.create_space(1, first_rows())
    engine.run(1, command(("put", b"\x51a", b"v")))
    with pytest.raises(ValueError, match="belong to the engine"):
        engine.run(1, command(("put", key, b"v")))
    with engine.read(1) as reader:
        assert reader.get(key) is None
        assert [found for found, _ in reader.scan(b"\x01", b"\xff" * 8)] == [b"\x51a"]
