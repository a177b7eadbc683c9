"""A checksum on rows of chosen kinds, put on and taken off by the engine.

    sealed   the value with the high bit of its first two bytes set, then crc32(value)(4)

Values of such kinds begin with two bytes below 80 (a document: its form and its flags), so that
rows from before there were checksums are told apart and read as they are. Two bits, so that one
that fell over is noticed too.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from armillary.errors import DataDamaged

MARK: Final = 0x80
_SUM_BYTES: Final = 4


def seal(value: bytes) -> bytes:
    head = bytes((value[0] | MARK, value[1] | MARK))
    return head + value[2:] + crc32(value).to_bytes(_SUM_BYTES, "big")


# HOT: once per item that is read.
def unseal(value: bytes, key: bytes) -> bytes:
    """The value as it was written. Raises DataDamaged when it is not that any more."""
    first, second = value[0], value[1]
    if first < MARK and second < MARK:
        return value  # of format 1
    body = bytes((first & 0x7F, second & 0x7F)) + value[2:-_SUM_BYTES]
    if first >= MARK <= second and crc32(body) == int.from_bytes(value[-_SUM_BYTES:], "big"):
        return body
    raise DataDamaged(
        f"The stored row {key.hex()} is damaged: its checksum does not agree. "
        "Run `armillary doctor`, then restore a backup.",
        row=key.hex(),
    )
