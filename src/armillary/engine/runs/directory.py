"""Which runs a space has: one row alongside `meta`, written by every commit that changes it.

    newest ─▶ [ run ] [ run ] [ output ‖ input input ] [ run ] ─▶ oldest, then the tree
                                  a merge under way

Age is the position in this list, never the number of a run. A merge in progress is one slot: its
output holds the keys below the boundary, its inputs count only from the boundary on. So a merge can
be cut short after any piece, and nothing is in two places.

Bytes: msgpack of arrays; the numbers of runs only rise, a nonce tells a run from one of an aborted
transaction with the same number.
"""

from __future__ import annotations

from typing import Final

import msgspec

from armillary.engine.runs.blocks import END

#: Slots under which a caller can always merge: more, and a flush merges whatever it takes.
SLOTS_MAX: Final = 24
#: Entries of a run that a reader decodes and keeps as one, not block by block.
WHOLE_ENTRIES: Final = 1_000
MERGES_MAX: Final = 3  # at once; each keeps a boundary in the directory


class Run(msgspec.Struct, frozen=True, array_like=True):
    number: int
    nonce: bytes
    entries: int
    blocks: int
    """Ever written: the number of the next one."""


class Slot(msgspec.Struct, frozen=True, array_like=True):
    """One run, or a merge of adjacent ones (newest first)."""

    inputs: tuple[Run, ...]
    output: Run | None = None
    boundary: bytes = b""

    @property
    def merging(self) -> bool:
        return self.output is not None

    @property
    def entries(self) -> int:
        return sum(run.entries for run in self.inputs)

    def parts(self) -> list[tuple[Run, bytes, bytes]]:
        """(run, from, up to): what counts of each run, newest first."""
        below = self.boundary
        parts = [(run, below, END) for run in self.inputs]
        if self.output is not None:
            parts.append((self.output, b"", below))
        return parts


class Directory(msgspec.Struct, frozen=True, array_like=True):
    slots: tuple[Slot, ...] = ()
    """Newest first."""
    next_run: int = 1
    tree: bool = True
    """Rows of packed kinds may be left in the tree, older than every run."""

    def parts(self) -> list[tuple[Run, bytes, bytes]]:
        return [part for slot in self.slots for part in slot.parts()]


#: Of a space that was made before there were runs.
NO_RUNS: Final = Directory()
#: Of a new space.
EMPTY: Final = Directory(tree=False)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, Directory]).decode
_FORM: Final = 1


def pack_directory(directory: Directory) -> bytes:
    return _encode((_FORM, directory))


def unpack_directory(row: bytes | None) -> Directory:
    if row is None:
        return NO_RUNS
    form, directory = _decode(row)
    assert form == _FORM, f"a directory of runs of form {form}"
    return directory
