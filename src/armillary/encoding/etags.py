"""Entity tags: sixteen bytes in the header of an item, a GUID-like text on the wire.

    counter(6)     range ordinal(4)   _ts(4)    0000
    00000000002a · 00000007         · 5f8898c5 · 0000   →   00000000-002a-0000-0007-5f8898c50000

Unique for ever without a random number: the counter is the physical partition's, the ordinal names
that partition. Clients only compare tags; the last group, hex `_ts` and four zeros, is what the
service shows. Quotes belong to the tag in JSON and in headers, and are added there, not here.
Facts: nosql-rest 2.4, 6.3.
"""

import struct
from typing import Final

ETAG_BYTES: Final = 16

_pack: Final = struct.Struct(">HIIIH").pack  # the 48-bit counter as 16 + 32


def etag_bytes(counter: int, range_ordinal: int, ts: int) -> bytes:
    """counter < 2^48, range_ordinal < 2^32, ts (seconds) < 2^32; struct.error beyond."""
    return _pack(counter >> 32, counter & 0xFFFF_FFFF, range_ordinal, ts, 0)


def etag_text(tag: bytes) -> str:
    digits = tag.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def format_etag(counter: int, range_ordinal: int, ts: int) -> str:
    return etag_text(etag_bytes(counter, range_ordinal, ts))


def matches(condition: str, etag: str) -> bool:
    """Does `If-Match` or `If-None-Match` name this tag? With or without quotes; `*` is any."""
    wanted = condition.strip()
    return wanted == "*" or wanted.strip('"') == etag.strip('"')
