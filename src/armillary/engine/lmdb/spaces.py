"""Where each space lies in the map.

    main database     "armillary"      → format of this layout (and so the database is never empty)
                      "d" space(4)     → form(1) number(4)     directory
                      "f" slot(4)      → ""                    slots without a space
                      "t" prefix(4)    → ""                    dropped prefixes not yet cleaned
                      "n"              → next prefix(4)
                      "redo"           → mark of the redo log (redo_log.py)
                      "redo at"        → number(8) of the transaction that has set it
    "own" slot        one sub-database per space: quick to drop (0.2 GB in 13 ms)
    "shared"          every further space: its keys begin with its prefix(4)

A slot goes from space to space and is emptied, never deleted, because deleting a sub-database
closes a handle that reading threads may be using, and a handle of another process would wait there
for a stranger to move in. So a handle is good for ever, and what can go stale is only our idea of
*who* lives in it. The meta row of a space therefore carries the space's number in front of its
value (the *tag*); it is read first in every transaction, so a stale idea is found out at once, for
nothing.

Handles are opened in write transactions only: LMDB allows just one transaction at a time to open
any, and py-lmdb forgets the ones opened in a read transaction that it keeps for reuse.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import lmdb

from armillary.engine.base import CATALOG_SPACE, META_KEY, Row, SpaceGone
from armillary.engine.lmdb.environment import Environment, put_mark
from armillary.engine.lmdb.format import FORMAT_WITHOUT_RUNS
from armillary.engine.lmdb.place import NUMBER, TAG_BYTES, Place, tag_of
from armillary.engine.lmdb.redo_log import MARK_KEY
from armillary.engine.lmdb.write import write_changes
from armillary.engine.runs.area import Area
from armillary.engine.runs.blocks import BLOCK
from armillary.engine.runs.merging import is_due
from armillary.errors import Conflict, FormatMismatch
from armillary.limits import SPACES_OWN_DATABASE_MAX

LAYOUT_KEY, LAYOUT, LAYOUT_WITHOUT_RUNS = b"armillary", b"2", b"1"
DIRECTORY, FREE, TRASH, NEXT_PREFIX = b"d", b"f", b"t", b"n"
OWN, SHARED = b"o", b"s"
SHARED_NAME = b"shared"
__all__ = ["TAG_BYTES", "Place", "Spaces", "own_name", "tag_of"]

PURGE_ROWS = 2_000  # of a dropped prefix, in one commit: about 10 ms
#: Pages of long values that are dropped in one go: LMDB looks for each of them, 0.25 µs a page.
DROP_PAGES = 32_768


def own_name(slot: int) -> bytes:
    return b"own%d" % slot  # no bytes of a number: LMDB ends names at a zero byte


class HandleMissing(Exception):
    """Of a space that another process has put into a new sub-database. Control flow."""


class Spaces:
    """The directory, and this process's handles. `places` may be stale: check the tag."""

    def __init__(
        self,
        environment: Environment,
        own_max: int = SPACES_OWN_DATABASE_MAX,
        packed: bytes | None = None,
        sealed: bytes = b"",
    ) -> None:
        """`packed` are the kinds of rows that lie in runs, `sealed` those with a checksum; None:
        both as the folder has them."""
        self._environment = environment
        self._own_max = own_max
        self.packed = bytes(sorted(packed or b""))
        self.sealed = bytes(sorted(sealed))
        self._as_recorded = packed is None
        self._handles: dict[bytes, Any] = {}
        self.places: dict[int, Place] = {}
        self._prepare()

    def _prepare(self) -> None:
        transaction = self._environment.read()
        layout = transaction.get(LAYOUT_KEY)
        transaction.abort()
        if self._environment.folder.format == FORMAT_WITHOUT_RUNS:
            # A copy that is only read: it keeps the form it was written in.
            self.packed = self.sealed = b""
            expected = LAYOUT_WITHOUT_RUNS
        else:
            if self._as_recorded and layout is not None and layout[:1] == LAYOUT:
                self.packed, _, self.sealed = layout[1:].partition(META_KEY)
            expected = LAYOUT + self.packed + META_KEY + self.sealed
        if layout is None or layout == LAYOUT_WITHOUT_RUNS != expected:
            with self._environment.write() as writing:
                writing.put(LAYOUT_KEY, expected)
                put_mark(writing)
                self._environment.lmdb.open_db(SHARED_NAME, txn=writing)
                writing.commit()
        elif layout != expected:
            raise FormatMismatch(
                f"The data has the inner layout {layout!r}; expected {expected!r}."
            )

    def all(self) -> list[int]:
        transaction = self._environment.read()
        try:
            return [NUMBER.unpack_from(key, 1)[0] for key, _ in _rows_under(transaction, DIRECTORY)]
        finally:
            transaction.abort()

    def locate(self, space: int) -> Place:
        """Look the space up, and remember it. Raises SpaceGone."""
        transaction = self._environment.read()
        entry = transaction.get(DIRECTORY + tag_of(space))
        transaction.abort()
        if entry is None:
            self.places.pop(space, None)
            raise SpaceGone(space)
        place = self._place(space, entry)
        self.places[space] = place
        return place

    def locate_in(
        self, transaction: lmdb.Transaction[bytes], space: int, *, opens: bool = True
    ) -> Place:
        """The same inside a write transaction, which may be undone: nothing is remembered. In a
        snapshot it `opens` no handle, and raises HandleMissing where it would have to."""
        entry = transaction.get(DIRECTORY + tag_of(space))
        if entry is None:
            raise SpaceGone(space)
        name, prefix = _where(entry)
        db = self._handles.get(name)
        if db is None and not opens:
            raise HandleMissing(space)
        if db is None:
            db = self._environment.lmdb.open_db(name, txn=transaction, create=False)
        return self._placed(space, db, prefix)

    def replay(self, transaction: lmdb.Transaction[bytes]) -> None:
        """Put what is left in the redo log into its spaces."""
        spaces: dict[int, dict[bytes, bytes | None]] = {}
        for parts in self._environment.redo.left(transaction.get(MARK_KEY)):
            for space, keys, values in parts:
                spaces.setdefault(space, {}).update(zip(keys, values, strict=True))
        for space, changes in spaces.items():
            place = self.locate_in(transaction, space)
            write_changes(transaction, place, changes, rest=True)

    def create(self, space: int, rows: Iterable[Row]) -> None:
        own = self._make_room()
        with self._environment.write() as transaction:
            directory_key = DIRECTORY + tag_of(space)
            if transaction.get(directory_key) is not None:
                raise Conflict(f"The space {space} exists.", space=space)
            entry = self._claim(transaction, own)
            name, prefix = _where(entry)
            place = self._placed(space, self._handles[name], prefix)
            changes: dict[bytes, bytes | None] = dict(rows)
            if META_KEY not in changes:
                raise ValueError("a new space needs its meta row")
            write_changes(transaction, place, changes, new=True)
            transaction.put(directory_key, entry)
            transaction.commit()

    def shrink(self, space: int) -> bool:
        """Delete some rows of a space that is to be dropped, its meta row first, so that no reader
        sees it half empty. False: it is small enough to be dropped in one go.
        """
        self.places.pop(space, None)
        with self._environment.write() as transaction:
            try:
                place = self.locate_in(transaction, space)
            except SpaceGone:
                return False
            if place.prefix or transaction.stat(place.db)["overflow_pages"] <= DROP_PAGES:
                return False
            transaction.delete(place.meta_key, db=place.db)
            cursor = transaction.cursor(place.db)
            # Blocks of runs first: each is a page of its own, which is what makes a drop slow.
            found, deleted = cursor.set_range(BLOCK) or cursor.first(), 0
            while found and deleted < PURGE_ROWS:
                found = cursor.delete()
                deleted += 1
            transaction.commit()
        return deleted > 0

    def drop(self, space: int) -> int | None:
        """Remove the space. The prefix that is left to `purge`, if any."""
        self.places.pop(space, None)
        with self._environment.write() as transaction:
            try:
                place = self.locate_in(transaction, space)
            except SpaceGone:
                return None
            directory_key, prefix = DIRECTORY + place.tag, place.prefix
            entry = transaction.pop(directory_key)
            if prefix:
                transaction.delete(place.meta_key, db=place.db)
                transaction.put(TRASH + prefix, b"")
            else:
                assert entry is not None
                transaction.drop(place.db, delete=False)
                transaction.put(FREE + entry.removeprefix(OWN), b"")
            transaction.commit()
        return NUMBER.unpack(prefix)[0] if prefix else None

    def due(self) -> list[int]:
        """Spaces whose runs have to be merged, or whose rows are not in runs yet."""
        if not self.packed:
            return []
        found: list[int] = []
        for space in self.all():
            try:
                place = self.locate(space)
            except SpaceGone:
                continue
            transaction = self._environment.read(place.db)
            try:
                if place.packed and is_due(Area(transaction, place.db, place.prefix).directory()):
                    found.append(space)
            finally:
                transaction.abort()
        return found

    def trash(self) -> list[int]:
        """Prefixes whose cleaning was cut short."""
        transaction = self._environment.read()
        try:
            return [NUMBER.unpack_from(key, 1)[0] for key, _ in _rows_under(transaction, TRASH)]
        finally:
            transaction.abort()

    def purge(self, number: int) -> bool:
        """Delete some rows of a dropped prefix. True if there may be more."""
        prefix = NUMBER.pack(number)
        self._open_handles()
        with self._environment.write() as transaction:
            db = self._handles[SHARED_NAME]
            cursor = transaction.cursor(db)
            found = cursor.set_range(prefix)
            deleted = 0
            while found and deleted < PURGE_ROWS and cursor.key().startswith(prefix):
                found = cursor.delete()
                deleted += 1
            more = deleted == PURGE_ROWS
            if not more:
                transaction.delete(TRASH + prefix)
            transaction.commit()
        return more

    def pages_used(self) -> int:
        """Pages that hold rows. The rest of the map, up to its end, is free."""
        self._open_handles()
        transaction = self._environment.read()
        try:
            states = [transaction.stat(db) for db in (None, *self._handles.values())]
        finally:
            transaction.abort()
        return 2 + sum(
            state["branch_pages"] + state["leaf_pages"] + state["overflow_pages"]
            for state in states
        )

    def _place(self, space: int, entry: bytes) -> Place:
        name, prefix = _where(entry)
        if name not in self._handles:
            self._open_handles()
        return self._placed(space, self._handles[name], prefix)

    def _placed(self, space: int, db: Any, prefix: bytes) -> Place:
        packed, sealed = self.packed, self.sealed
        if space == CATALOG_SPACE:
            packed = sealed = b""
        return Place(db, prefix, prefix + META_KEY, tag_of(space), packed, sealed)

    def _open_handles(self) -> None:
        """Every sub-database there is: the wait for the writer is then one, not one per space."""
        with self._environment.write() as transaction:
            names = [SHARED_NAME]
            for _, entry in _rows_under(transaction, DIRECTORY):
                names += [_where(entry)[0]] if entry[:1] == OWN else []
            names += [own_name(NUMBER.unpack_from(key, 1)[0]) for key, _ in _free(transaction)]
            opened = {
                name: self._environment.lmdb.open_db(name, txn=transaction, create=False)
                for name in names
                if name not in self._handles
            }
            transaction.commit()
        self._handles.update(opened)

    def _make_room(self) -> bool:
        """See to it that a free slot exists whose handle is open. False if all may be taken."""
        self._open_handles()
        with self._environment.write() as transaction:
            if _free(transaction):
                return True
            entries = [entry for _, entry in _rows_under(transaction, DIRECTORY)]
            taken = {NUMBER.unpack_from(entry, 1)[0] for entry in entries if entry[:1] == OWN}
            if len(taken) >= self._own_max:
                return False
            slot = next(number for number in range(len(taken) + 1) if number not in taken)
            name = own_name(slot)
            db = self._environment.lmdb.open_db(name, txn=transaction)
            transaction.put(FREE + NUMBER.pack(slot), b"")
            transaction.commit()
        self._handles[name] = db
        return True

    def _claim(self, transaction: lmdb.Transaction[bytes], own: bool) -> bytes:
        """A free directory entry. Another process may have taken the slot we made; then
        the space is a shared one.
        """
        for key, _ in _free(transaction) if own else []:
            if own_name(NUMBER.unpack_from(key, 1)[0]) in self._handles:
                transaction.delete(key)
                return OWN + key.removeprefix(FREE)
        prefix = transaction.get(NEXT_PREFIX) or NUMBER.pack(1)
        transaction.put(NEXT_PREFIX, NUMBER.pack(NUMBER.unpack(prefix)[0] + 1))
        return SHARED + prefix


def _where(entry: bytes) -> tuple[bytes, bytes]:
    """The name of the sub-database, and the prefix inside it."""
    if entry[:1] == OWN:
        return own_name(NUMBER.unpack_from(entry, 1)[0]), b""
    return SHARED_NAME, entry[1:]


def _rows_under(transaction: lmdb.Transaction[bytes], kind: bytes) -> list[Row]:
    """Rows of the main database of one kind: the letter and a number."""
    cursor = transaction.cursor()
    rows: list[Row] = []
    found = cursor.set_range(kind)
    while found and cursor.key()[:1] == kind and len(cursor.key()) == 1 + NUMBER.size:
        rows.append(cursor.item())
        found = cursor.next()
    return rows


def _free(transaction: lmdb.Transaction[bytes]) -> list[Row]:
    return _rows_under(transaction, FREE)
