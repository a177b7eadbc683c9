"""What one run reads and writes: a snapshot of its physical partition with its own writes over it.

    read, query, page ──▶ overlay ──▶ snapshot          write ──▶ overlay, and a list of operations
                                                        commit ──▶ the list, as one command

The operations are those of the store, on a writer that keeps everything in memory, so that ids,
unique keys, sizes, time to live and indexes mean the same as anywhere else; at commit the writer
runs the same list on the real rows, if what was read is still true (`script_writes.py`). The
snapshot is opened by the first operation, or is that of the run before (`chain.py`). Nothing is
locked at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import orjson
from msgspec.structs import replace

from armillary.encoding.partition_key import KeyValues
from armillary.engine.base import Command, Reader
from armillary.engine.overlay import OverlayWriter
from armillary.errors import DbError, PartitionKeyMismatch, ScriptWrongKey, TooLarge
from armillary.limits import SCRIPT_WRITTEN_BYTES_MAX
from armillary.partition.ranges import Range
from armillary.partition.request_units import Coefficients, miss_ru, read_ru
from armillary.scripts.transactions.chain import Chain
from armillary.scripts.transactions.reservations import Reservations
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.items.operations import run_operation
from armillary.store.items.preparation import Operation, Seen, prepare, prepare_patch
from armillary.store.items.requests import Context, Done, Key, Op
from armillary.store.items.script_writes import COMMIT, Commit, Follows, Read, read_logical_lsn
from armillary.store.items.transaction import Found, Work
from armillary.store.rows import layout
from armillary.store.rows.secondary import id_part
from armillary.store.throughput.charges import charge_of
from armillary.values import JSON

T = TypeVar("T")


class Transaction:
    """One thread, one run. `close` it: it may hold a snapshot."""

    def __init__(
        self,
        store: ContainerStore,
        state: ContainerState,
        owner: Range,
        key: Key,
        values: KeyValues,
        reservations: Reservations,
        chain: Chain,
    ) -> None:
        self.store = store
        self.state = state
        self.owner = owner
        self.key = key
        self.values = values
        self._reservations = reservations
        self._fence = state.fences[owner.space]
        self._context: Context = store.context(state, owner)
        self._chain = chain
        self._after: Follows | None = None
        self._work: Work | None = None
        self._mark = 0
        self._lsn = 0
        self._ops: list[Op] = []
        self._reads: dict[bytes, Read] = {}
        self._scanned = False
        self._written_bytes = 0
        self.charge_ru = 0.0
        self.writes: list[Done] = []
        """In their order: what the run has written so far."""
        self.changes: list[tuple[str, str]] = []
        """The same for people: (created, replaced or deleted; id)."""

    # --- operations -----------------------------------------------------------------------------

    def run(self, operation: Operation) -> Done:
        """One create, upsert, replace, patch, delete or read. A refusal leaves the rest of the
        transaction as it was."""
        try:
            return self._run(operation)
        except PartitionKeyMismatch:
            raise ScriptWrongKey from None
        except DbError:
            self.charge_ru += miss_ru()
            raise

    def _run(self, operation: Operation) -> Done:
        work = self._open()
        if operation.kind == "patch":
            found = self._find(work, operation.id)
            seen = Seen(None if found is None else orjson.loads(found.text), None)
            op = prepare_patch(self.state, operation, seen).op
        else:
            op = prepare(self.state, operation, self.values, self.store.random).op
        for item_id in {op.id, op.new_id or op.id}:
            self._find(work, item_id)
        if op.kind == "read":
            done = run_operation(work, self.key, op)
            self.charge_ru += read_ru(done.old_bytes, profile=self._profile)
            return done
        self._written_bytes += len(op.text)
        if self._written_bytes > SCRIPT_WRITTEN_BYTES_MAX:
            raise TooLarge("The script writes more than one transaction may.")
        engine, space = self.store.engine, self.owner.space
        if op.kind not in ("delete", "fail"):
            etag = self._reservations.etag(engine, space, self._fence, work.ts)
            op = replace(op, etag=etag)
            if op.kind in ("create", "upsert"):
                op = replace(op, rid=self._reservations.rid(engine, space, self._fence))
        done = self._undone_if_it_fails(work, lambda: run_operation(work, self.key, op))
        if done.outcome != "created":
            op = replace(op, rid=b"")  # nothing was there to number
        self._ops.append(op)
        self.writes.append(done)
        self.changes.append((done.outcome, op.new_id or op.id))
        constraints = len(self.state.definition.document["uniqueKeyPolicy"]["uniqueKeys"])
        self.charge_ru += charge_of(done, constraints, profile=self._profile)
        return done

    def look(self, read: Callable[[ContainerState, Range, Reader], T]) -> T:
        """More than items by id: a query, or a page of the logical partition."""
        work = self._open()
        self._scanned = True
        work.finish()  # totals and counters, as a reader of this overlay expects them
        return read(self.state, self.owner, work.tx)

    def id_of_rid(self, number: bytes) -> str | None:
        """The id of an item of this logical partition."""
        work = self._open()
        value = work.tx.get(layout.DOC + number)
        if value is None:
            return None
        found = work.load(number)
        if found.header.digest != self.key.digest:
            return None
        item_id = _id(found)
        self._find(work, item_id)
        return item_id

    def abandon(self) -> None:
        """The run has failed: what it wrote goes."""
        self._ops, self.writes, self.changes = [], [], []
        if self._work is not None:
            tx = self._work.tx
            assert isinstance(tx, OverlayWriter)
            tx.undo_to(self._mark)
            self._work = Work(tx, self._context)

    def submit(self) -> Future[list[Done]] | None:
        """Everything, or the future fails with Stale. None: there is nothing to wait for, because
        nothing was written and what was read is committed."""
        work, ops, after = self._work, self._ops, self._after
        if work is None or (not ops and after is None):
            self.close()
            return None
        # The chain's overlay keeps the writes for those that follow; they are not undone here.
        follows = self._followed(work)
        data = Commit(
            self._context,
            self.key,
            ops,
            self._lsn,
            list(self._reads.values()),
            self._scanned,
            after,
            follows is not None or after is not None,
        )
        engine, space = self.store.engine, self.owner.space
        self._work = None
        try:
            commit: Future[list[Done]] = engine.submit(space, Command(COMMIT, data))
        except BaseException:
            self._chain.close()
            raise
        self._chain.add(commit, follows)
        return commit

    def close(self) -> None:
        """Idempotent. What was not submitted goes."""
        if self._work is None:
            return
        self.abandon()
        self._work = None
        if self._after is None:
            self._chain.close()  # nothing to follow: the next run reads what is committed by then

    # --- inside ---------------------------------------------------------------------------------

    @property
    def _profile(self) -> Coefficients:
        return self.store.profile

    def _open(self) -> Work:
        if self._work is None:
            overlay = self._chain.open(self.store.engine, self.owner.space, self._fence)
            self._after = self._chain.after
            self._mark = overlay.mark()
            self._lsn = read_logical_lsn(overlay, self.key)
            self._work = Work(overlay, self._context)
        return self._work

    def _followed(self, work: Work) -> Follows | None:
        """How the next run names this one; None when it can't follow."""
        if not self._chain.may_go_on():
            return None
        if not self._ops:
            return self._after
        work.finish()  # the next run sees totals as well
        for op in reversed(self._ops):
            rid = work.tx.get(layout.ID + self.key.epk_key + op.new_id_part) if op.etag else None
            if rid is not None and work.load(rid).header.etag == op.etag:
                return Follows(rid, op.etag)
        return None  # only deletes

    def _find(self, work: Work, item_id: str) -> Found | None:
        """The item as the run sees it; what the snapshot says of it is remembered."""
        part = id_part(item_id)
        found = work.find(self.key, item_id, part)
        if found is not None and work.is_expired(found):
            found = None
        if part not in self._reads:
            # Own writes have the transaction's LSN, but then the first look came before them.
            self._reads[part] = Read(item_id, part, 0 if found is None else found.header.lsn)
        return found

    def _undone_if_it_fails(self, work: Work, write: Callable[[], Done]) -> Done:
        before = work.saved()
        try:
            with work.tx.nested():
                return write()
        except BaseException:
            work.restore(before)
            raise


def _id(found: Found) -> str:
    item: dict[str, JSON] = orjson.loads(found.text)
    return str(item["id"])
