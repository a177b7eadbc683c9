"""New items that are all alike: nothing but their text, their id and their range entries.

Their command carries lists of bytes, one per property, instead of an operation per item: a list
of bytes is packed and read ten times as fast, and the writer looks at nothing that is not there.
Items with a time to live, unique keys, composite or other indexes, or a cut id go as operations.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from armillary.store.index.entries import Entries
from armillary.store.items.requests import Context, Done, Failed, Key, Op


class NewItems(NamedTuple):
    """By position, all lists of one length."""

    id_parts: list[bytes]
    texts: list[bytes]
    ix: list[list[bytes]]
    """Range entries of each, as in `Entries`."""
    shapes: list[bytes]


InsertData: TypeAlias = tuple[Context, Key, Sequence[Op], NewItems]
"""The operations come first, in the same commit: all of it happens, or nothing."""
InsertAnswer: TypeAlias = tuple[list[Done], Failed | None]
"""Of the operations; what the items cost is known before. Positions count both."""


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
            entries=Entries(ix=ix, shape=shape),
        )
        for part, text, ix, shape in zip(*items, strict=True)
    ]
