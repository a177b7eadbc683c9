"""A checksum on rows of chosen kinds, put on and taken off by the engine.

    sealed   the value with the two high bits of its first two bytes set, then the MurmurHash3 of
             that (16)
    before   the value with the high bit of its first two bytes set, then the CRC32 of that (4)

Values of such kinds begin with two bytes below 40 (a document: its form and its flags), so that
rows from before there were checksums are recognised and read as they are. Two bytes, so that a bit
that fell over is noticed too.

A MurmurHash3 of 128 bits takes a third of the time of a CRC32, and is compared whole: a reader cuts
a row once, and the rest of it has to end it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from zlib import crc32

from mmh3 import mmh3_x64_128_digest as murmur_128

from armillary.engine.base import ENGINE_BITS
from armillary.errors import DataDamaged

MARK: Final = ENGINE_BITS
SUM_BYTES: Final = 16
CRC_MARK: Final = 0x80
CRC_BYTES: Final = 4
_BEFORE_SUM: Final = slice(-SUM_BYTES)
_SUM: Final = slice(-SUM_BYTES, None)
_CRC_WHOLE: Final = 0x2144DF1C  # the crc32 of any bytes that are followed by their own
#: The first two bytes of usual values when sealed, and before.
_PLAIN_HEADS: Final = {
    bytes((one | MARK, other | MARK)): bytes((one, other)) for one in range(8) for other in range(8)
}
#: Of documents without flags, which nearly all are.
_USUAL_PLAIN: Final = b"\x01\x00"
_USUAL_SEALED: Final = bytes(one | MARK for one in _USUAL_PLAIN)


def seal(value: bytes) -> bytes:
    marked = bytes((value[0] | MARK, value[1] | MARK)) + value[2:]
    return marked + murmur_128(marked)


def unseal(value: bytes, key: bytes) -> bytes:
    """The value as it was written. Raises DataDamaged when it is not that any more."""
    head, cut = _PLAIN_HEADS.get(value[:2]), value[:-SUM_BYTES]
    if head is not None and value.endswith(murmur_128(cut)):
        return head + cut[2:]
    return _unseal_unusual(value, key)


# HOT: once per point read.
def cut_seal(value: bytes, key: bytes) -> bytes:
    """The same, but for the marks in its first two bytes: one copy less."""
    cut = value[_BEFORE_SUM]
    return cut if value[_SUM] == murmur_128(cut) else unseal(value, key)


def _unseal_unusual(value: bytes, key: bytes) -> bytes:
    first, second = value[0], value[1]
    if first < CRC_MARK and second < CRC_MARK:
        return value  # of format 1
    mark, head = first & second & MARK, bytes((first & ~MARK, second & ~MARK))
    if first & MARK == second & MARK:
        if mark == CRC_MARK and crc32(value) == _CRC_WHOLE:
            return head + value[2:-CRC_BYTES]
        if mark == MARK and value.endswith(murmur_128(value[:-SUM_BYTES])):
            return head + value[2:-SUM_BYTES]
    raise DataDamaged(
        f"The stored row {key.hex()} is damaged: its checksum does not agree. "
        "Run `armillary doctor`, then restore a backup.",
        row=key.hex(),
    )


# HOT: the documents of a page, of a hop. What is unusual is left to `unseal`.
def unseal_many(values: Sequence[bytes | None], keys: Sequence[bytes]) -> list[bytes | None]:
    """The same for many; None where there is none."""
    sealed, plain, end = _USUAL_SEALED, _USUAL_PLAIN, -SUM_BYTES
    return [
        plain + value[2:end]
        if value and value[:2] == sealed and value[end:] == murmur_128(value[:end])
        else (unseal(value, key) if value else value)
        for value, key in zip(values, keys, strict=True)
    ]


# HOT: once per short query, with all of its items.
def cut_sealed(values: Sequence[bytes]) -> list[bytes] | None:
    """What was written, but for the marks in the first two bytes of each; None: not all of them are
    sealed and whole, and `unseal` says why."""
    cut = [value[:-SUM_BYTES] for value in values]
    return cut if all(map(bytes.endswith, values, map(murmur_128, cut))) else None


# HOT: once per item of a long scan; a row as it is stored is let go at once, so that its memory is
# the next one's.
def cut_rows(
    rows: Iterable[tuple[bytes, bytes]], odd: dict[bytes, bytes]
) -> list[tuple[bytes, bytes]]:
    """The same with their keys, one after another. Those that are not sealed and whole are as they
    are stored, and in `odd`: `unseal` says why."""
    end, keep = -SUM_BYTES, odd.setdefault
    return [
        (key, cut if value[end:] == murmur_128(cut := value[:end]) else keep(key, value))
        for key, value in rows
    ]
