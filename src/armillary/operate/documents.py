"""Documents of a MongoDB collection for import and export: Extended JSON in files, or BSON as
`mongodump` writes it; the stored form in the container."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import orjson
from bson.objectid import ObjectId

from armillary.encoding.bson.extended import document_from, to_extended
from armillary.encoding.bson.stored import RECORD, from_item
from armillary.encoding.bson.values import Document, decode_exactly, encode
from armillary.errors import BadInput
from armillary.limits import MONGO_DOCUMENT_BYTES_MAX
from armillary.operate.ports import Items, ShownItems
from armillary.store.catalog.collections import CollectionShape


class Documents(ShownItems):
    """The documents of a collection's container, as MongoDB's tools know them. The records of
    retryable writes are left out."""

    hidden: frozenset[str] = frozenset()
    """What an export leaves out: users name their fields as they like."""

    def __init__(self, items: Items, shape: CollectionShape, now_s: Callable[[], int]) -> None:
        super().__init__(items)
        self._shape = shape
        self._now_s = now_s

    def shown(self, item: dict[str, Any]) -> dict[str, Any] | None:
        return None if item["id"].startswith(RECORD) else to_extended(from_item(item))

    def stored(self, shown: dict[str, Any]) -> dict[str, Any]:
        return self.item_of(document_from(shown))

    def item_of(self, document: Document) -> dict[str, Any]:
        return item_of(self._shape, document, self._now_s())


def item_of(shape: CollectionShape, document: Document, now_s: int) -> dict[str, Any]:
    """A document of a file as it is stored; it gets an `_id` if it has none."""
    if "_id" not in document:
        document = {"_id": ObjectId(), **document}
    return shape.item(document, now_s)


# --- BSON files -----------------------------------------------------------------------------------


def read_bson(source: Path) -> Iterator[dict[str, Any] | BadInput]:
    """Documents back to back. What follows a broken length can't be read."""
    try:
        zipped = source.suffix == ".gz"
        with cast(IO[bytes], gzip.open(source)) if zipped else source.open("rb") as file:
            while head := file.read(4):
                size = int.from_bytes(head, "little")
                if len(head) < 4 or not 5 <= size <= MONGO_DOCUMENT_BYTES_MAX:
                    raise BadInput(f"{source} is not a file of BSON documents.")
                data = head + file.read(size - 4)
                if len(data) < size:
                    raise BadInput(f"{source} ends inside a document.")
                try:
                    yield to_extended(decode_exactly(data))
                except BadInput as error:
                    yield error
    except (OSError, EOFError) as error:
        raise BadInput(f"The file {source} can't be read: {error}.") from error


def write_bson(lines: Path, target: Path) -> None:
    zipped = target.name.removesuffix(".part").endswith(".gz")
    with (
        lines.open("rb") as source,
        cast(IO[bytes], gzip.open(target, "wb")) if zipped else target.open("wb") as file,
    ):
        for line in source:
            file.write(encode(document_from(orjson.loads(line))))
