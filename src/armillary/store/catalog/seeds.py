"""Which files of items a container was filled with: one row of the catalog per container.

    seeded  rid of the container → the names of the files

A file is put in once. Without the row a crash in the middle would leave half of it, and a restart
would bring back items that somebody deleted.
"""

import msgspec

from armillary.encoding.records import decoder
from armillary.encoding.rids import rid_bytes
from armillary.engine.base import CATALOG_SPACE, Command, Engine, Handler, Writer

SEEDED = b"\xc1"
_decode_names = decoder(list[str])


def seeded(engine: Engine, container_rid: str) -> list[str]:
    with engine.read(CATALOG_SPACE) as reader:
        row = reader.get(SEEDED + rid_bytes(container_rid))
    return [] if row is None else _decode_names(row)


def note_seeded(engine: Engine, container_rid: str, name: str) -> None:
    engine.run(CATALOG_SPACE, Command("seeds.note", (rid_bytes(container_rid), name)))


def _note(tx: Writer, data: tuple[bytes, str]) -> None:
    rid, name = data
    row = tx.get(SEEDED + rid)
    names = [] if row is None else _decode_names(row)
    if name not in names:
        tx.put(SEEDED + rid, msgspec.json.encode([*names, name]))


HANDLERS: dict[str, Handler] = {"seeds.note": Handler(_note)}
