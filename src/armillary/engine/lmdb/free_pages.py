"""Which pages of `data.mdb` are free, read from the file itself.

LMDB counts a page that a transaction takes and gives back as used up to its end, and never writes
it: a healthy file may be shorter than its last page, when the pages that it lacks are free. No
function of LMDB tells which are; so here is as much of its format (0.9, 64 bits) as that takes:

    page   0 number u64, 8 -, 10 flags u16, 12 end of the pointers u16, 16 pointers u16 …
    meta   a page; 16 magic u32, 80 root of the free list u64, 144 transaction u64
    node   0 size or page u16 u16, 4 flags u16, 6 size of the key u16, 8 key, data
    free   transaction → how many u64, the pages u64 …
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

MAGIC: Final = 0xBEEFC0DE
HEADER_BYTES: Final = 16
ROOT_AT, TRANSACTION_AT = 80, 144
BRANCH, LEAF = 0x01, 0x02
BIG_DATA: Final = 0x01  # a node whose data lies in pages of its own
NO_PAGE: Final = (1 << 64) - 1
DEPTH_MAX: Final = 32
_NODE: Final = struct.Struct("<HHHH")
_U16: Final = struct.Struct("<H")
_U64: Final = struct.Struct("<Q")


class Unreadable(Exception):
    """It is no such file, or it is being written meanwhile."""


def free_pages(file: Path, page_bytes: int) -> set[int]:
    """By the newer of the two meta pages. Raises Unreadable."""
    found: set[int] = set()
    with file.open("rb") as opened:

        def read(page: int, size: int = page_bytes) -> bytes:
            opened.seek(page * page_bytes)
            data = opened.read(size)
            if len(data) < size:
                raise Unreadable(f"page {page} is missing")
            return data

        def walk(page: int, depth: int) -> None:
            data = read(page)
            (flags,) = _U16.unpack_from(data, 10)
            (end,) = _U16.unpack_from(data, 12)
            if depth > DEPTH_MAX or not flags & (BRANCH | LEAF) or end > page_bytes:
                raise Unreadable(f"page {page} is not of the free list")
            for at in range(HEADER_BYTES, end, 2):
                (start,) = _U16.unpack_from(data, at)
                low, high, more, key_bytes = _NODE.unpack_from(data, start)
                if flags & BRANCH:
                    walk(low | high << 16 | more << 32, depth + 1)
                    continue
                value = data[start + _NODE.size + key_bytes :][: low | high << 16]
                if more & BIG_DATA:
                    (first,) = _U64.unpack_from(value)
                    value = read(first, HEADER_BYTES + (low | high << 16))[HEADER_BYTES:]
                (count,) = _U64.unpack_from(value)
                found.update(struct.unpack_from(f"<{count}Q", value, 8))

        try:
            metas = [read(page) for page in (0, 1)]
            if any(struct.unpack_from("<I", meta, HEADER_BYTES)[0] != MAGIC for meta in metas):
                raise Unreadable("no meta page")
            newer = max(metas, key=lambda meta: _U64.unpack_from(meta, TRANSACTION_AT))
            (root,) = _U64.unpack_from(newer, ROOT_AT)
            if root != NO_PAGE:
                walk(root, 0)
        except struct.error as error:
            raise Unreadable(str(error)) from error
    return found
