"""Does everything about the runs of a space agree? For `armillary doctor`, and for tests.

the directory lists every run that has blocks, and no run twice
blocks can be decoded (checksum), are in order, and do not overlap
a run has as many entries as the directory says; of a merge nothing is left below the boundary
no row of a packed kind is in the tree once the directory says so
"""

from __future__ import annotations

from collections.abc import Iterator

from armillary.engine.runs.area import Area
from armillary.engine.runs.blocks import BLOCK, decode_block, run_prefix
from armillary.engine.runs.directory import Run
from armillary.engine.sealing import unseal
from armillary.errors import DataDamaged

ROWS_AT_ONCE = 256


def problems(area: Area, packed: bytes, sealed: bytes = b"") -> Iterator[str]:
    """One line for each thing that does not agree."""
    yield from _damaged_rows(area, sealed)
    try:
        directory = area.directory()
    except Exception as error:  # noqa: BLE001 - damaged bytes fail to decode in many ways
        yield f"the directory of runs can't be read: {error}"
        return
    if not directory.tree:
        for kind in packed:
            rows = area.rows(bytes((kind,)), bytes((kind + 1,)), 1)
            if rows:
                yield f"the row {rows[0][0].hex()} is in the tree, but belongs into a run"
    runs = [run for run, _, _ in directory.parts()]
    numbers = [run.number for run in runs]
    if len(set(numbers)) != len(numbers) or len({run.nonce for run in runs}) != len(runs):
        yield f"a run is listed twice: {numbers}"
    if any(number >= directory.next_run for number in numbers):
        yield f"a run has a number that is not given out yet: {numbers}"
    known = {run_prefix(number) for number in numbers}
    unlisted = {key[:5] for key in area.keys_of(BLOCK)} - known
    for prefix in sorted(unlisted):
        yield f"the blocks of run {int.from_bytes(prefix[1:], 'big')} are in no directory"
    for slot in directory.slots:
        for run in slot.inputs:
            yield from _run(area, run, exact=not slot.merging, boundary=slot.boundary)
        if slot.output is not None:
            yield from _run(area, slot.output, exact=True, end=slot.boundary)


def _damaged_rows(area: Area, sealed: bytes) -> Iterator[str]:
    for kind in sealed:
        start, end = bytes((kind,)), bytes((kind + 1,))
        while rows := area.rows(start, end, ROWS_AT_ONCE):
            for key, value in rows:
                try:
                    unseal(value, key)
                except (DataDamaged, IndexError):
                    yield f"the row {key.hex()} is damaged"
            start = rows[-1][0] + b"\x00"


def _run(
    area: Area, run: Run, *, exact: bool, boundary: bytes = b"", end: bytes = b""
) -> Iterator[str]:
    entries, last = 0, b""
    name = f"run {run.number}"
    for where in list(area.keys_of(run_prefix(run.number))):
        value = area.get(where)
        try:
            assert value is not None
            block = decode_block(value, where)
            keys, values = block.part(0, len(block))
        except (DataDamaged, AssertionError):
            yield f"{name}: the block under {where.hex()} is damaged"
            continue
        entries += len(keys)
        if not keys or len(keys) != len(values) or keys != sorted(set(keys)) or keys[0] <= last:
            yield f"{name}: the block under {where.hex()} is not in order"
        elif keys[-1] < boundary:
            yield f"{name}: the block under {where.hex()} should have gone with a merge"
        elif end and keys[-1] >= end:
            yield f"{name}: the block under {where.hex()} is above the boundary of its merge"
        last = keys[-1] if keys else last
    if exact and entries != run.entries:
        yield f"{name} has {entries} entries, and {run.entries} are listed"
