"""Blocks: sorted entries as one value of at most a page, and the key each block lies under.

    key      F1, run(4), bound          every key of the block < bound <= every key of the next one
    value    form(1), crc32(4), msgpack [[key, …], [value or nil, …]]

A bound is as short as the two keys around it allow. One longer than `BOUND_BYTES_MAX` is cut and
followed by the number of the block in its run, so that blocks keep their order; a search then
walks over the few blocks that share the cut bound.

A value of up to 4,080 bytes fills one overflow page of LMDB exactly. Nothing here knows LMDB.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, TypeAlias
from zlib import crc32

import msgspec

from armillary.errors import DataDamaged

#: Sorted keys, and their values in the same order. None: a tombstone.
Entries: TypeAlias = tuple[list[bytes], list[bytes | None]]

#: Keys that begin with F0 to FF belong to the engine.
FIRST_OWN: Final = 0xF0
DIRECTORY_KEY: Final = b"\xf0"
BLOCK: Final = b"\xf1"
END: Final = b"\xf0"  # above every key of a caller

PAGE_BYTES: Final = 4_080
BOUND_BYTES_MAX: Final = 490
BLOCK_FORM: Final = 1

_HEAD: Final = struct.Struct(">BI")
_RUN: Final = struct.Struct(">I")
_SEQUENCE: Final = struct.Struct(">Q")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[list[bytes], list[bytes | None]]).decode
#: Of a page: what a guess aims at, and what is enough.
AIM_BYTES: Final = PAGE_BYTES * 97 // 100
LEAST_BYTES: Final = PAGE_BYTES * 85 // 100
GUESS_ENTRIES: Final = 64


def run_prefix(run: int) -> bytes:
    return BLOCK + _RUN.pack(run)


def block_key(run: int, bound: bytes, sequence: int) -> bytes:
    """`sequence` is the number of the block in its run."""
    if len(bound) > BOUND_BYTES_MAX:
        bound = bound[:BOUND_BYTES_MAX] + _SEQUENCE.pack(sequence)
    return BLOCK + _RUN.pack(run) + bound


def seek_key(run: int, key: bytes) -> bytes:
    """The first block at or after this may have keys >= `key`; none before it has."""
    if len(key) > BOUND_BYTES_MAX:
        key = key[:BOUND_BYTES_MAX]
    return BLOCK + _RUN.pack(run) + key + b"\x00"


def seek_key_below(run: int, end: bytes) -> bytes:
    """The first block at or after this, or the last one before it, may have the greatest key
    < `end`; none after those has one."""
    if len(end) > BOUND_BYTES_MAX:
        end = end[:BOUND_BYTES_MAX] + b"\xff" * (_SEQUENCE.size + 1)
    return BLOCK + _RUN.pack(run) + end


def bound_between(last: bytes, following: bytes) -> bytes:
    """The shortest key that is above `last` and not above `following`."""
    if len(following) > 40 and last[:32] == following[:32]:
        at = _common(last, following)
    else:
        at = 0
        for one, other in zip(last, following, strict=False):
            if one != other:
                break
            at += 1
    return following[: at + 1]


def _common(one: bytes, other: bytes) -> int:
    """Length of the common prefix, by bisection: for long keys."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def encode_block(keys: Sequence[bytes], values: Sequence[bytes | None]) -> bytes:
    body = _encode((keys, values))
    return _HEAD.pack(BLOCK_FORM, crc32(body)) + body


def decode_block(value: bytes, key: bytes = b"") -> Entries:
    """Raises DataDamaged when the bytes are not those that were written."""
    body = value[_HEAD.size :]
    if len(value) >= _HEAD.size:
        form, checksum = _HEAD.unpack_from(value)
        if form == BLOCK_FORM and checksum == crc32(body):
            return _decode(body)
    raise DataDamaged(
        "A block of index rows is damaged: its checksum does not agree. "
        "Run `armillary doctor`, then restore a backup or index the container again.",
        block=key.hex(),
    )


# HOT: once per entry of every flush and merge: no Python code per entry, only per block. How many
# entries fill a page is guessed from the block before and corrected by encoding again.
def cut_blocks(
    keys: list[bytes], values: list[bytes | None], last_bound: bytes
) -> list[tuple[bytes, bytes]]:
    """(bound, value) of each block, in order. All keys are below `last_bound`."""
    blocks: list[tuple[bytes, bytes]] = []
    count, start, guess = len(keys), 0, GUESS_ENTRIES
    while start < count:
        end = min(count, start + guess)
        value = encode_block(keys[start:end], values[start:end])
        while len(value) > PAGE_BYTES and end > start + 1:
            end = start + max(1, (end - start) * AIM_BYTES // len(value))
            value = encode_block(keys[start:end], values[start:end])
        while end < count and len(value) < LEAST_BYTES:
            wider = min(
                count, start + max(end - start + 1, (end - start) * AIM_BYTES // len(value))
            )
            more = encode_block(keys[start:wider], values[start:wider])
            if len(more) > PAGE_BYTES:
                break
            end, value = wider, more
        guess = max(1, (end - start) * AIM_BYTES // len(value))
        bound = last_bound if end == count else bound_between(keys[end - 1], keys[end])
        blocks.append((bound, value))
        start = end
    return blocks
