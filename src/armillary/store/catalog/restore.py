"""An account as it was: the content of a copy takes the place of all that there is, while the
server goes on.

    reserve   new spaces, listed as orphans
    fill      the rows of each range, in pieces; counters go on above all that anybody has seen
    switch    one catalog transaction: the copy's databases and containers are in, ours are out
    drop      the spaces of what was there

A crash before the switch leaves everything as it was. Caches find out by themselves: the spaces
they know are gone. Range ids, rids and versions go on from the higher of the two accounts, because
what was handed out once is never handed out again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from armillary.engine.base import CATALOG_SPACE, Command, Engine, Handler, Row, SpaceGone, Writer
from armillary.limits import LSN_LEAP, RESTORE_PIECE_BYTES, RESTORE_PIECE_ROWS
from armillary.store.catalog import records as catalog
from armillary.store.catalog.controls import CONTROLS, read_controls, save_controls
from armillary.store.catalog.records import (
    CatalogMeta,
    ContainerRecord,
    decode_container,
    decode_meta,
)
from armillary.store.catalog.resource_keys import RESOURCE_COUNT
from armillary.store.moves.records import NEVER_ORPHANED
from armillary.store.rows import layout
from armillary.store.rows.meta import Meta, unpack_meta
from armillary.store.upkeep.leases import LEASE

if TYPE_CHECKING:
    from armillary.store.catalog.accounts import AccountStore

#: Rows of the catalog that are about now, not about what was copied.
KEPT: Final = frozenset({layout.META, catalog.SPACE, LEASE, CONTROLS, RESOURCE_COUNT})
END: Final = b"\xff" * 512
RESERVED_SECONDS: Final = 24 * 3600  # later, the clean-up takes what is being filled for lost


def restore(account: AccountStore, source: Engine) -> None:
    engine = account.engine
    rows = list(_catalog_rows(source))
    containers = _containers(rows)
    count = sum(len(record.ranges) + _children(record) for record in containers.values())
    now_s = engine.now_ms() // 1000
    spaces, restores = _run(engine, "restore.reserve", (count, now_s + RESERVED_SECONDS))
    numbers = iter(spaces)
    placed = {key: _placed(record, numbers) for key, record in containers.items()}
    for key, record in placed.items():
        live = _seen(account, record)
        for old, new in zip(containers[key].ranges, record.ranges, strict=True):
            _fill(source, old.space, engine, new.space, (restores + 1, *live))
    with source.read(CATALOG_SPACE) as reader:
        counted = decode_meta(reader.meta)
        number = reader.get(RESOURCE_COUNT) or b""
    brought = [(key, row) for key, row in rows if key not in containers]
    brought += [(key, msgspec.json.encode(record)) for key, record in placed.items()]
    doomed = _run(engine, "restore.switch", (brought, msgspec.json.encode(counted), number))
    for space in doomed:
        engine.drop_space(space)
    _run(engine, "catalog.forget_spaces", doomed)


def _catalog_rows(source: Engine) -> Iterator[Row]:
    with source.read(CATALOG_SPACE) as reader:
        for key, row in reader.scan(b"", END):
            if key[:1] not in KEPT:
                yield key, row


def _containers(rows: list[Row]) -> dict[bytes, ContainerRecord]:
    return {key: decode_container(row) for key, row in rows if key[:1] == catalog.CONTAINER}


def _children(record: ContainerRecord) -> int:
    return sum(len(move.children) for move in record.moves)


def _placed(record: ContainerRecord, numbers: Iterator[int]) -> ContainerRecord:
    """In new spaces. A split that was under way begins again: its runner is unknown here."""
    ranges = tuple(replace(one, space=next(numbers)) for one in record.ranges)
    moves = tuple(
        replace(
            move,
            children=tuple(replace(one, space=next(numbers)) for one in move.children),
            beat_ms=0,
        )
        for move in record.moves
    )
    return replace(record, ranges=ranges, moves=moves)


def _seen(account: AccountStore, record: ContainerRecord) -> tuple[int, int, int, int]:
    """LSN, rid, etag and session version that clients of the same container may know by now."""
    while True:
        with account.engine.read(CATALOG_SPACE) as reader:
            current = catalog.find_container(reader, record.database, record.id)
        if current is None or current.rid != record.rid:
            return 0, 0, 0, -1
        try:
            metas = [_meta(account.engine, one.space) for one in current.ranges]
        except SpaceGone:  # it has just split
            continue
        return (
            max(meta.lsn for meta in metas),
            max(meta.rids for meta in metas),
            max(meta.etags for meta in metas),
            max(meta.session for meta in metas),
        )


def _meta(engine: Engine, space: int) -> Meta:
    with engine.read(space) as reader:
        return unpack_meta(reader.meta)


def _fill(source: Engine, old: int, engine: Engine, new: int, leap: tuple[int, ...]) -> None:
    """One snapshot is not needed: a copy has no writer."""
    with source.read(old) as reader:
        engine.create_space(new, [(layout.META, reader.meta)])
    start = layout.META + b"\x00"
    while True:
        piece: list[Row] = []
        size_bytes = 0
        with source.read(old) as reader:
            for key, value in reader.scan(start, END, limit=RESTORE_PIECE_ROWS):
                piece.append((key, value))
                size_bytes += len(key) + len(value)
                if size_bytes >= RESTORE_PIECE_BYTES:
                    break
        if not piece:
            break
        engine.run(new, Command("restore.put", piece))
        start = piece[-1][0] + b"\x00"
    engine.run(new, Command("restore.leap", leap))


def _run(engine: Engine, name: str, data: Any) -> Any:
    return engine.run(CATALOG_SPACE, Command(name, data))


# --- commands -----------------------------------------------------------------------------------


def _reserve(tx: Writer, data: tuple[int, int]) -> tuple[Sequence[int], int]:
    count, until_s = data
    return catalog.new_spaces(tx, count, until_s), read_controls(tx).restores


def _put(tx: Writer, rows: list[Row]) -> None:
    tx.put_many(rows)


def _leap(tx: Writer, data: tuple[int, int, int, int, int]) -> None:
    """Above what the copy had, above what this container has by now, and, should it be deleted now,
    above what any earlier restore had: each gets a leap of its own."""
    restores, lsn, rids, etags, session = data
    row = tx.get(layout.META)
    assert row is not None
    meta = unpack_meta(row)
    meta.lsn = max(meta.lsn + restores * LSN_LEAP, lsn + 1)
    meta.rids = max(meta.rids + restores * LSN_LEAP, rids + 1)
    meta.etags = max(meta.etags + restores * LSN_LEAP, etags + 1)
    meta.session = max(meta.session + restores, session + 1)
    tx.put(layout.META, meta.pack())


def _switch(tx: Writer, data: tuple[list[Row], bytes, bytes]) -> list[int]:
    """Answers the spaces to drop."""
    brought, counted, number = data
    old_rows = [(key, row) for key, row in tx.scan(b"", END) if key[:1] not in KEPT]
    old = _containers(old_rows)
    doomed = [
        one.space
        for record in old.values()
        for one in (*record.ranges, *(child for move in record.moves for child in move.children))
    ]
    catalog.doom_spaces(tx, doomed)
    for key, _ in old_rows:
        tx.delete(key)
    live = {record.rid: record for record in old.values()}
    new = _containers(brought)
    controls = read_controls(tx)
    save_controls(tx, replace(controls, restores=controls.restores + 1))
    for key, row in brought:
        if key not in new:
            tx.put(key, row)
    for key, record in new.items():
        catalog.own_spaces(tx, [one.space for one in record.ranges])
        for move in record.moves:
            for child in move.children:
                tx.put(catalog.space_key(child.space), catalog.U32.pack(NEVER_ORPHANED))
        ours = _continued(record, live.get(record.rid), controls.restores + 1)
        tx.put(key, msgspec.json.encode(ours))
    if number > (tx.get(RESOURCE_COUNT) or b""):  # of one length, so that bytes order as numbers
        tx.put(RESOURCE_COUNT, number)
    _save_meta(tx, decode_meta(counted))
    return doomed


def _continued(
    record: ContainerRecord, live: ContainerRecord | None, restores: int
) -> ContainerRecord:
    version = record.version + restores
    epoch, ordinals = record.move_epoch + restores, record.ordinals
    if live is not None:
        version, ordinals = max(version, live.version + 1), max(ordinals, live.ordinals)
        epoch = max(epoch, live.move_epoch)
    moves = tuple(replace(move, epoch=epoch + 1 + at) for at, move in enumerate(record.moves))
    return replace(
        record,
        version=version,
        ordinals=ordinals,
        moves=moves,
        move_epoch=epoch + len(moves),
    )


def _save_meta(tx: Writer, copy: CatalogMeta) -> None:
    row = tx.get(layout.META)
    assert row is not None
    ours = decode_meta(row)
    new = replace(
        ours,
        version=max(ours.version, copy.version) + 1,
        databases=max(ours.databases, copy.databases),
        containers=max(ours.containers, copy.containers),
        offers=max(ours.offers, copy.offers),
        resources=copy.resources,
    )
    tx.put(layout.META, msgspec.json.encode(new))


HANDLERS: dict[str, Handler] = {
    "restore.reserve": Handler(_reserve),
    "restore.put": Handler(_put),
    "restore.leap": Handler(_leap),
    "restore.switch": Handler(_switch),
}
