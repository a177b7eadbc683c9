"""Sorted rows in immutable blocks: a snapshot is a reference, a commit copies what it touches.

    firsts  [  ""      m      t  ]        the least key each block may hold
    blocks  [ a b f | m n q | t x ]       each at most BLOCK_ROWS_MAX rows, never changed in place

`get` is two bisections. `apply` takes all changes of a commit, copies only the touched blocks, and
the list of references (4,000 for a million rows). Readers keep the `Blocks` they began with for as
long as they like, and block no writer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from armillary.engine.base import Row

BLOCK_ROWS_MAX = 512
BLOCK_ROWS_MIN = 64  # a block left smaller than this joins its neighbour


@dataclass(frozen=True, slots=True)
class Block:
    keys: list[bytes]
    values: list[bytes]


@dataclass(frozen=True, slots=True)
class Blocks:
    firsts: list[bytes]
    blocks: list[Block]

    def get(self, key: bytes) -> bytes | None:
        block = self.blocks[bisect_right(self.firsts, key) - 1]
        at = bisect_left(block.keys, key)
        if at < len(block.keys) and block.keys[at] == key:
            return block.values[at]
        return None

    def scan(self, start: bytes, end: bytes) -> Iterator[Row]:
        if start >= end:
            return
        number = bisect_right(self.firsts, start) - 1
        while number < len(self.blocks) and self.firsts[number] < end:
            block = self.blocks[number]
            low, high = bisect_left(block.keys, start), bisect_left(block.keys, end)
            yield from zip(block.keys[low:high], block.values[low:high], strict=True)
            number += 1

    def scan_reverse(self, start: bytes, end: bytes) -> Iterator[Row]:
        if start >= end:
            return
        number = bisect_left(self.firsts, end) - 1
        while number >= 0:
            block = self.blocks[number]
            low, high = bisect_left(block.keys, start), bisect_left(block.keys, end)
            yield from zip(block.keys[low:high][::-1], block.values[low:high][::-1], strict=True)
            if self.firsts[number] <= start:
                return
            number -= 1

    def apply(self, changes: Mapping[bytes, bytes | None]) -> Blocks:
        """These rows with `changes` in them (None deletes). The receiver stays as it was."""
        firsts, blocks = self.firsts.copy(), self.blocks.copy()
        keys = sorted(changes)
        # From the right, so that replacing a block leaves the numbers of those to its left alone.
        stop = len(keys)
        while stop:
            number = bisect_right(self.firsts, keys[stop - 1]) - 1
            begin = bisect_left(keys, self.firsts[number], 0, stop)
            whole = _changed(self.blocks[number], keys[begin:stop], changes)
            upto = number + 1
            if len(whole.keys) < BLOCK_ROWS_MIN and upto < len(blocks):
                whole = Block(
                    whole.keys + blocks[upto].keys,
                    whole.values + blocks[upto].values,
                )
                upto += 1
            pieces = _pieces(whole)
            blocks[number:upto] = pieces
            firsts[number:upto] = [
                firsts[number],  # the first piece keeps the old bound, so the bounds leave no gap
                *(piece.keys[0] for piece in pieces[1:]),
            ]
            stop = begin
        return Blocks(firsts, blocks)


EMPTY = Blocks([b""], [Block([], [])])


def _changed(block: Block, keys: list[bytes], changes: Mapping[bytes, bytes | None]) -> Block:
    if len(keys) > BLOCK_ROWS_MAX:  # a bulk load: one merge instead of many insertions
        rows: dict[bytes, bytes | None] = dict(zip(block.keys, block.values, strict=True))
        rows.update((key, changes[key]) for key in keys)
        left = sorted((key, value) for key, value in rows.items() if value is not None)
        return Block([key for key, _ in left], [value for _, value in left])
    new_keys, new_values = block.keys.copy(), block.values.copy()
    for key in keys:
        value = changes[key]
        at = bisect_left(new_keys, key)
        there = at < len(new_keys) and new_keys[at] == key
        if value is None:
            if there:
                del new_keys[at], new_values[at]
        elif there:
            new_values[at] = value
        else:
            new_keys.insert(at, key)
            new_values.insert(at, value)
    return Block(new_keys, new_values)


def _pieces(block: Block) -> list[Block]:
    """Cut a block that grew too large into equal pieces of about half the bound."""
    rows = len(block.keys)
    if rows <= BLOCK_ROWS_MAX:
        return [block]
    count = -(-rows // (BLOCK_ROWS_MAX // 2))
    cuts = [rows * piece // count for piece in range(count + 1)]
    return [Block(block.keys[low:high], block.values[low:high]) for low, high in pairwise(cuts)]
