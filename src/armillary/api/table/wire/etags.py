"""Timestamp and ETag of an entity, from the etag of its item.

    item    00000000-002a-0000-0007-5f8898c50000     counter 0x2a, range 7, second 0x5f8898c5
    entity  Timestamp 2020-10-15T18:42:29.1991193Z   the second, and 7 digits of counter and range
            ETag W/"datetime'2020-10-15T18%3A42%3A29.1991193Z'"

The protocol derives an ETag from the Timestamp (clients do it themselves under nometadata), so both
have to change with every write, by whichever API. The store counts writes per range and has
seconds; the count takes the place of the digits of the second. Within a range they rise until the
count passes a multiple of 10 million.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from armillary.encoding.edm.values import TICKS_PER_SECOND, UNIX_TICKS, ticks_text

RANGE_STEP: Final = 3_141_593  # keeps the digits of two ranges apart in the second of a split
_FORM: Final = re.compile(r"""W/"datetime'([^'"]{1,80})'"|W/"[^"]{0,200}\"""")


def ticks_of(etag: str) -> int:
    """Of the text of an item's etag, with or without quotes."""
    digits = etag.strip('"').replace("-", "")
    counter, ordinal, second = int(digits[:12], 16), int(digits[12:20], 16), int(digits[20:28], 16)
    fraction = (counter + ordinal * RANGE_STEP) % TICKS_PER_SECOND
    return UNIX_TICKS + second * TICKS_PER_SECOND + fraction


@lru_cache(maxsize=4096)
def timestamp_of(etag: str) -> str:
    return ticks_text(ticks_of(etag))


def weak_etag(timestamp: str) -> str:
    return f"W/\"datetime'{timestamp.replace(':', '%3A')}'\""


def etag_of(etag: str) -> str:
    """The ETag of an entity, from the etag of its item."""
    return weak_etag(timestamp_of(etag))


def is_condition(text: str) -> bool:
    """Whether an If-Match has a form that some ETag could have."""
    return text == "*" or _FORM.fullmatch(text) is not None


def same_etag(condition: str, etag: str) -> bool:
    """Whether a condition names the version with this item etag."""
    found = _FORM.fullmatch(condition)
    return found is not None and found[1] is not None and unquote(found[1]) == timestamp_of(etag)
