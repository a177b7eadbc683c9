"""Runs against a dict, and each rule that keeps them right broken on purpose.

If a broken rule is not found, the model can't see it, and neither could it see a mistake of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.support.run_area import MemoryArea
from tests.support.run_model import History, first_wrong

from armillary.engine.runs import merging, reading, writing
from armillary.engine.runs.directory import Directory, Run, Slot

HISTORIES = 60  # of the right code
FOUND_WITHIN = 200  # histories, for every broken rule

Patch = Callable[[pytest.MonkeyPatch], None]


def test_every_way_of_reading_agrees_with_a_dict() -> None:
    assert first_wrong(HISTORIES) is None


def age_by_number(patch: pytest.MonkeyPatch) -> None:
    def parts(directory: Directory) -> list[tuple[Run, bytes, bytes]]:
        found = [part for slot in directory.slots for part in slot.parts()]
        return sorted(found, key=lambda part: -part[0].number)

    patch.setattr(Directory, "parts", parts)


def merge_of_runs_that_are_not_adjacent(patch: pytest.MonkeyPatch) -> None:
    plan = merging.plan

    def skipping(directory: Directory, nonce: Any, *, busy: bool) -> Directory:
        slots = directory.slots
        if len(slots) > 2 and not slots[0].merging and not slots[2].merging:
            output = Run(directory.next_run, nonce(8), 0, 0)
            inputs = (*slots[0].inputs, *slots[2].inputs)
            left = (Slot(inputs, output), slots[1], *slots[3:])
            return Directory(left, directory.next_run + 1, directory.tree)
        return plan(directory, nonce, busy=busy)

    patch.setattr(merging, "plan", skipping)


def output_on_top(patch: pytest.MonkeyPatch) -> None:
    piece = merging.merge_piece

    def on_top(area: Any, directory: Directory, at: int, entries: int) -> tuple[Directory, int]:
        after, done = piece(area, directory, at, entries)
        if len(after.slots) == len(directory.slots) and not after.slots[at].merging:
            slots = list(after.slots)
            slots.insert(0, slots.pop(at))
            after = Directory(tuple(slots), after.next_run, after.tree)
        return after, done

    patch.setattr(merging, "merge_piece", on_top)


def inputs_not_pinned(patch: pytest.MonkeyPatch) -> None:
    flush = writing.flush

    def into_an_input(
        area: Any, directory: Directory, changes: Mapping[bytes, bytes | None], nonce: Any
    ) -> Directory:
        slots = directory.slots
        if not slots or not slots[0].merging or not slots[0].inputs:
            return flush(area, directory, changes, nonce)
        first, *others = slots[0].inputs
        alone = flush(area, Directory((Slot((first,)),), directory.next_run), changes, nonce)
        inputs = tuple(run for slot in alone.slots for run in slot.inputs)
        changed = Slot((*inputs, *others), slots[0].output, slots[0].boundary)
        return Directory((changed, *slots[1:]), alone.next_run, directory.tree)

    patch.setattr(writing, "flush", into_an_input)


def tombstones_fall_over_the_tree(patch: pytest.MonkeyPatch) -> None:
    piece = merging.merge_piece

    def forgetful(area: Any, directory: Directory, at: int, entries: int) -> tuple[Directory, int]:
        blind = Directory(directory.slots, directory.next_run, False)
        after, done = piece(area, blind, at, entries)
        return Directory(after.slots, after.next_run, directory.tree), done

    patch.setattr(merging, "merge_piece", forgetful)


def tombstones_fall_above_older_runs(patch: pytest.MonkeyPatch) -> None:
    piece = merging.merge_piece

    def forgetful(area: Any, directory: Directory, at: int, entries: int) -> tuple[Directory, int]:
        upper = Directory(directory.slots[: at + 1], directory.next_run, directory.tree)
        after, done = piece(area, upper, at, entries)
        slots = (*after.slots, *directory.slots[at + 1 :])
        return Directory(slots, after.next_run, after.tree), done

    patch.setattr(merging, "merge_piece", forgetful)


def migrated_rows_on_top(patch: pytest.MonkeyPatch) -> None:
    move = merging.move_from_tree

    def on_top(*arguments: Any) -> Directory:
        after = move(*arguments)
        slots = list(after.slots)
        if not after.tree and slots:
            slots.insert(0, slots.pop())
        return Directory(tuple(slots), after.next_run, after.tree)

    patch.setattr(merging, "move_from_tree", on_top)


def a_delete_leaves_nothing(patch: pytest.MonkeyPatch) -> None:
    flush = writing.flush

    def puts_only(area: Any, directory: Any, changes: Any, nonce: Any) -> Directory:
        puts = {key: value for key, value in changes.items() if value is not None}
        return flush(area, directory, puts, nonce)

    patch.setattr(writing, "flush", puts_only)


def scan_keeps_repeats(patch: pytest.MonkeyPatch) -> None:
    def one_after_the_other(sources: Any, reverse: bool) -> Any:
        rows = [
            (key, value)
            for source in sources
            for keys, values in source
            for key, value in zip(keys, values, strict=True)
            if value is not None
        ]
        yield sorted(rows, reverse=reverse)

    patch.setattr(reading, "merged", one_after_the_other)


def directory_not_written(patch: pytest.MonkeyPatch) -> None:
    save = MemoryArea.save

    def only_when_runs_come_or_go(area: MemoryArea, directory: Directory) -> None:
        if len(directory.slots) != len(area.directory().slots):
            save(area, directory)

    patch.setattr(MemoryArea, "save", only_when_runs_come_or_go)


def directory_kept_from_the_transaction_before(patch: pytest.MonkeyPatch) -> None:
    flush = writing.flush
    kept: dict[int, Directory] = {}

    def from_memory(area: Any, directory: Directory, changes: Any, nonce: Any) -> Directory:
        owner = id(nonce.__self__)
        after = flush(area, kept.get(owner, directory), changes, nonce)
        kept[owner] = after
        return after

    patch.setattr(writing, "flush", from_memory)


def cache_by_number(patch: pytest.MonkeyPatch) -> None:
    load = reading.RunReader._load

    def without_nonce(reader: reading.RunReader, run: Run, where: bytes) -> Any:
        return load(reader, Run(run.number, b"", run.entries, run.blocks), where)

    patch.setattr(reading.RunReader, "_load", without_nonce)


def cache_filled_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    def look(history: History, area: MemoryArea) -> None:
        reader = history.reader(area, history.cache)
        for start in (b"\x31", b"\x51"):
            list(reader.chunks(start, b"\x52", False))

    patch.setattr(History, "look", look)


def small_run_kept_whole_while_it_merges(patch: pytest.MonkeyPatch) -> None:
    whole = reading.RunReader._whole

    def of_any(reader: reading.RunReader, part: reading.Part) -> Any:
        run, _, _, prefix, name = part
        return whole(reader, (run, b"", b"\xf0", prefix, name))

    patch.setattr(reading.RunReader, "_whole", of_any)


def small_run_kept_whole_while_it_grows(patch: pytest.MonkeyPatch) -> None:
    whole = reading.RunReader._whole

    def by_nonce_alone(reader: reading.RunReader, part: reading.Part) -> Any:
        run, low, high, prefix, _ = part
        return whole(reader, (run, low, high, prefix, run.nonce))

    patch.setattr(reading.RunReader, "_whole", by_nonce_alone)


def inputs_count_whole(patch: pytest.MonkeyPatch) -> None:
    def parts(slot: Slot) -> list[tuple[Run, bytes, bytes]]:
        found = [(run, b"", b"\xf0") for run in slot.inputs]
        return found if slot.output is None else [*found, (slot.output, b"", slot.boundary)]

    patch.setattr(Slot, "parts", parts)


def output_listed_at_the_end_only(patch: pytest.MonkeyPatch) -> None:
    def parts(slot: Slot) -> list[tuple[Run, bytes, bytes]]:
        return [(run, slot.boundary, b"\xf0") for run in slot.inputs]

    patch.setattr(Slot, "parts", parts)


def the_older_value_wins(patch: pytest.MonkeyPatch) -> None:
    piece = merging.merge_piece

    def backwards(area: Any, directory: Directory, at: int, entries: int) -> tuple[Directory, int]:
        slots = list(directory.slots)
        slot = slots[at]
        slots[at] = Slot(slot.inputs[::-1], slot.output, slot.boundary)
        after, done = piece(area, Directory(tuple(slots), *_rest(directory)), at, entries)
        slots = list(after.slots)
        if len(slots) > at and slots[at].merging:
            slots[at] = Slot(slots[at].inputs[::-1], slots[at].output, slots[at].boundary)
        return Directory(tuple(slots), *_rest(after)), done

    patch.setattr(merging, "merge_piece", backwards)


def _rest(directory: Directory) -> tuple[int, bool]:
    return directory.next_run, directory.tree


def load_appended_out_of_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(writing, "is_above", lambda area, run, key: True)


def a_run_continued_under_newer_keys(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(writing, "has_between", lambda area, run, first, last: False)


BROKEN: list[Patch] = [
    age_by_number,
    merge_of_runs_that_are_not_adjacent,
    output_on_top,
    inputs_not_pinned,
    tombstones_fall_over_the_tree,
    tombstones_fall_above_older_runs,
    migrated_rows_on_top,
    a_delete_leaves_nothing,
    scan_keeps_repeats,
    directory_not_written,
    directory_kept_from_the_transaction_before,
    cache_by_number,
    cache_filled_before_the_commit,
    small_run_kept_whole_while_it_merges,
    small_run_kept_whole_while_it_grows,
    inputs_count_whole,
    output_listed_at_the_end_only,
    the_older_value_wins,
    load_appended_out_of_order,
    a_run_continued_under_newer_keys,
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.__name__)
def test_a_broken_rule_is_found(broken: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)
    assert first_wrong(FOUND_WITHIN) is not None
