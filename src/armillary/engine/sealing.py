"""A checksum on rows of chosen kinds, put on and taken off by the engine.

    sealed   the value with the high bit of its first two bytes set, then the crc32 of that (4)

Values of such kinds begin with two bytes below 80 (a document: its form and its flags), so that
rows from before there were checksums are recognised and read as they are. Two bits, so that one
that fell over is noticed too.

The sum stands there with its lowest byte first, so that the crc32 of a whole sealed row is always
the same number: a reader checks a row with one call and copies nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from zlib import crc32

from armillary.errors import DataDamaged

MARK: Final = 0x80
SUM_BYTES: Final = 4
_WHOLE: Final = 0x2144DF1C  # the crc32 of any bytes that are followed by their own
#: The first two bytes of usual values when sealed, and before.
_PLAIN_HEADS: Final = {
    bytes((one | MARK, other | MARK)): bytes((one, other)) for one in range(8) for other in range(8)
}


def seal(value: bytes) -> bytes:
    marked = bytes((value[0] | MARK, value[1] | MARK)) + value[2:]
    return marked + crc32(marked).to_bytes(SUM_BYTES, "little")


# HOT: once per item that is read, 1 µs for 1 KB, half of it the checksum itself.
def unseal(value: bytes, key: bytes) -> bytes:
    """The value as it was written. Raises DataDamaged when it is not that any more."""
    head = _PLAIN_HEADS.get(value[:2])
    if head is None:
        first, second = value[0], value[1]
        if first < MARK and second < MARK:
            return value  # of format 1
        head = bytes((first & ~MARK, second & ~MARK))
    if crc32(value) != _WHOLE:
        raise DataDamaged(
            f"The stored row {key.hex()} is damaged: its checksum does not agree. "
            "Run `armillary doctor`, then restore a backup.",
            row=key.hex(),
        )
    return head + value[2:-SUM_BYTES]


# HOT: the documents of a page, of a hop. What is unusual is left to `unseal`.
def unseal_many(values: Sequence[bytes | None], keys: Sequence[bytes]) -> list[bytes | None]:
    """The same for many; None where there is none."""
    heads, end = _PLAIN_HEADS, -SUM_BYTES
    return [
        heads[value[:2]] + value[2:end]
        if value and crc32(value) == _WHOLE and value[:2] in heads
        else (unseal(value, key) if value else value)
        for value, key in zip(values, keys, strict=True)
    ]


# HOT: once per short query, with all of its items.
def are_sealed(values: Sequence[bytes]) -> bool:
    """Whether each is sealed and whole: without its last `SUM_BYTES` it is what was written, but
    for the marks in its first two bytes."""
    return [*map(crc32, values)] == [_WHOLE] * len(values) and (
        not values or min([value[0] for value in values]) >= MARK
    )
