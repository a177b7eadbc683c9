"""Session tokens: what a client has seen of each range, as text and as a barrier.

    0:-1#62        range 0, version -1, LSN 62            0:-1#62,3:-1#17      several ranges

A read with a token from the future of a range is refused (404, 1002): the client asks elsewhere or
again. A version counts more than an LSN; it rises when ranges merge. A token of an ancestor speaks
for its children. Facts: nosql-rest 3.3.
"""

import re
from typing import Final, NamedTuple

from armillary.errors import BadInput, SessionNotAvailable
from armillary.partition.ranges import Range
from armillary.store.rows.meta import Meta

#: No number has more digits than 64 bits need.
PART: Final = re.compile(
    r"(\d{1,19}):(?:(-?\d{1,19})#)?(-?\d{1,19})(?:#\d{1,19}=-?\d{1,19})*", re.ASCII
)
SHOWN_CHARACTERS: Final = 200


class Seen(NamedTuple):
    version: int
    lsn: int


def seen_of(meta: Meta) -> Seen:
    return Seen(meta.session, meta.lsn)


def format_token(ordinal: int | str, version: int | str, lsn: int | str) -> str:
    return f"{ordinal}:{version}#{lsn}"


def parse_token(text: str) -> dict[int, Seen]:
    """By range id. The form without a version is what very old clients sent."""
    seen: dict[int, Seen] = {}
    for part in text.split(","):
        found = PART.fullmatch(part.strip())
        if found is None:
            shown = text[:SHOWN_CHARACTERS]
            raise BadInput(f"The session token provided '{shown}' is invalid.")
        ordinal, version, lsn = found.groups()
        one = Seen(-1 if version is None else int(version), int(lsn))
        seen[int(ordinal)] = max(one, seen.get(int(ordinal), one))
    return seen


def check_barrier(seen: dict[int, Seen], owner: Range, now: Seen) -> None:
    """Refuse to answer from a state older than the client's."""
    for ordinal in (owner.ordinal, *owner.parents):
        if ordinal in seen and seen[ordinal] > now:
            raise SessionNotAvailable
