"""New items that are all alike: nothing but their text, id, time to live and range entries.

Their command carries lists of bytes, one per property, instead of an operation per item: a list
of bytes is packed and read ten times as fast, and the writer looks at nothing that is not there.
Items with unique keys, composite or other indexes, or a cut id go as operations.
"""

from typing import NamedTuple, TypeAlias

from armillary.store.index.entries import Entries
from armillary.store.items.requests import Context, Failed, Key, Op


class NewItems(NamedTuple):
    """By position, all lists of one length."""

    id_parts: list[bytes]
    texts: list[bytes]
    ix: list[list[bytes]]
    """Range entries of each, as in `Entries`."""
    shapes: list[bytes]
    ttls: list[int]
    """In seconds; 0: none of its own."""


InsertData: TypeAlias = tuple[Context, Key, NewItems]
"""All of them are inserted, or none."""
InsertAnswer: TypeAlias = tuple[Failed | None]
"""What they cost is known before."""


def creates(items: NewItems) -> list[Op]:
    """The same as operations."""
    return [
        Op(
            "create",
            part[1:].decode(),
            part,
            text=text,
            new_id=part[1:].decode(),
            new_id_part=part,
            ttl=ttl,
            entries=Entries(ix=ix, shape=shape),
        )
        for part, text, ix, shape, ttl in zip(*items, strict=True)
    ]
