"""Many inserts of one command: documents of one logical partition go in batches, several batches
under way at once.

    documents ─▶ items, keys ─▶ batches ─┬─▶ one command of lists (`store/inserts`)    most of them
                                         └─▶ operations (`store/items/sent_batches`)   any other

The record of a retryable insert stands first in each batch, as `writes.py` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.data.writes import (
    Statement,
    duplicate,
    item_of,
    record_item,
    recorded,
    recording,
    refused,
    writing,
)
from armillary.api.mongo.errors import MongoError
from armillary.budget import Budget
from armillary.encoding.bson.values import Document
from armillary.encoding.partition_key import KeyValues
from armillary.errors import BadInput, Conflict, DbError, OutOfTime, TooLarge
from armillary.store.inserts.preparation import is_plain, ready
from armillary.store.inserts.sending import SentInsert, finish_insert, start_insert
from armillary.store.items.containers import Submit
from armillary.store.items.preparation import Operation
from armillary.store.items.requests import Failed, from_refusal
from armillary.store.items.sent_batches import SentBatch, finish_batch, run_batch, start_batch
from armillary.values import JSON

BATCH_ITEMS: Final = 1_000
OPERATIONS_MAX: Final = 400  # of a batch of operations, each of which holds the writer longer
BATCH_BYTES: Final = 1_000_000
LONE_MAX: Final = 200  # of a batch that may be committed in this process
UNDER_WAY_MAX: Final = 64  # batches of one command that wait for the writer at once

Sent: TypeAlias = SentInsert | SentBatch


class Insert(NamedTuple):
    at: int
    document: Document
    item: dict[str, JSON]
    key: KeyValues
    size: int


class Inserted(NamedTuple):
    done: int
    errors: list[tuple[int, MongoError]]
    charge_ru: float


def insert_all(
    collection: Collection,
    documents: Sequence[Document],
    *,
    ordered: bool,
    statement: Statements | None,
    sizes: Sequence[int],
    budget: Budget,
) -> Inserted:
    """Documents of one command. Those of one logical partition go in batches; an ordered insert
    stops at the first that fails. Past the `budget` no further batch is sent."""
    errors: list[tuple[int, MongoError]] = []
    pending: list[Insert] = []
    for index, document in enumerate(documents):
        budget.spend()
        try:
            item, key = item_of(collection, document), collection.key_of(document)
        except MongoError as error:
            errors.append((index, error))
            if ordered:
                break
            continue
        pending.append(Insert(index, document, item, key, sizes[index]))
    run = _Inserting(collection, statement, ordered, budget)
    if ordered:
        _insert_in_order(run, pending)
    else:
        run.all(_batches(collection, pending))
    if ordered and run.errors:
        errors = []
    errors = sorted([*run.errors, *errors], key=lambda one: one[0])
    return Inserted(run.count, errors[:1] if ordered else errors, run.charge_ru)


# HOT: once per document of an insert of many.
def one_batch(
    collection: Collection, documents: Sequence[Document], sizes: Sequence[int]
) -> list[Insert] | None:
    """All documents of a command as one batch. None: they are of several logical partitions. Raises
    what is wrong with any of them."""
    key = collection.key_of(documents[0])
    if collection.shard is not None and any(collection.key_of(one) != key for one in documents[1:]):
        return None
    items = [item_of(collection, one) for one in documents]
    places = range(len(documents))
    return [
        Insert(at, document, item, key, size)
        for at, document, item, size in zip(places, documents, items, sizes, strict=True)
    ]


def _batches(collection: Collection, pending: list[Insert]) -> list[list[Insert]]:
    most = BATCH_ITEMS if is_plain(collection.store.state) else OPERATIONS_MAX
    by_key: dict[KeyValues, list[list[Insert]]] = {}
    sizes: dict[KeyValues, int] = {}
    for one in pending:
        batches = by_key.setdefault(one.key, [[]])
        size = sizes.get(one.key, 0) + one.size
        if batches[-1] and (len(batches[-1]) >= most or size > BATCH_BYTES):
            batches.append([])
            size = one.size
        sizes[one.key] = size
        batches[-1].append(one)
    return [one for batches in by_key.values() for one in batches]


def _insert_in_order(run: _Inserting, pending: list[Insert]) -> None:
    """Runs of one key are batches of their own. A run over several keys is looked up first, so that
    nothing behind a duplicate is sent."""
    keys = {one.key for one in pending}
    if len(keys) <= 1:
        for batch in _batches(run.collection, pending):
            # An earlier attempt may have had longer batches.
            left = [one for one in batch if one.at not in run.known] if run.known else batch
            run.all([left] if left else [])
            if run.errors:
                return
        return
    store = run.collection.store
    found = store.read_many([(str(one.item["id"]), one.key) for one in pending], run.budget)
    seen: set[tuple[KeyValues, Any]] = set()
    stop = len(pending)
    for at, (one, stored) in enumerate(zip(pending, found, strict=True)):
        name = (one.key, one.item["id"])
        if stored is not None or name in seen:
            stop = at
            break
        seen.add(name)
    run.all(_batches(run.collection, pending[:stop]))
    if not run.errors and stop < len(pending):
        run.all([[pending[stop]]])
        if not run.errors:  # it was removed since, or an earlier attempt of this command wrote it
            _insert_in_order(run, [one for one in pending[stop + 1 :] if one.at not in run.known])


# --- one batch ------------------------------------------------------------------------------------

Statements: TypeAlias = Callable[[int], Statement]


def start_inserts(
    collection: Collection,
    batch: Sequence[Insert],
    statement: Statements | None,
    submit: Submit | None = None,
    budget: Budget | None = None,
) -> Sent:
    store, key = collection.store, batch[0].key
    state = store.state
    if state.definition is collection.definition and is_plain(state):
        items = [one.item for one in batch]
        if statement is not None:
            first, reply = _recorded_by(batch)
            record = record_item(collection.shape, first.document, statement(first.at), reply)
            items.insert(0, record)
        made = ready(state, items)
        if made is not None:
            return start_insert(store, state, made, key, submit, budget)
    operations = operations_of(collection, batch, statement)
    return start_batch(store, operations, key, submit, budget)


def finish_inserts(sent: Sent) -> float | Failed | None:
    """What it cost. None: nothing has happened; run it again."""
    return finish_insert(sent) if isinstance(sent, SentInsert) else finish_batch(sent)


def operations_of(
    collection: Collection, batch: Sequence[Insert], statement: Statements | None
) -> list[Operation]:
    made = [writing(collection, "create", one.document, one.item) for one in batch]
    if statement is None:
        return made
    first, reply = _recorded_by(batch)
    return [recording(collection, first.document, statement(first.at), reply), *made]


def _recorded_by(batch: Sequence[Insert]) -> tuple[Insert, Document]:
    """The insert whose statement names the record of a batch, and what the record says."""
    return batch[0], {"at": [one.at for one in batch]}


# --- all batches of a command ---------------------------------------------------------------------


class _Inserting:
    def __init__(
        self,
        collection: Collection,
        statement: Statements | None,
        ordered: bool,
        budget: Budget,
    ) -> None:
        self.collection = collection
        self.budget = budget
        self._ordered = ordered
        self.statement = statement
        self.count = 0
        self.charge_ru = 0.0
        self.errors: list[tuple[int, MongoError]] = []
        self.known: set[int] = set()
        """Documents that an earlier attempt wrote, by the records found so far."""

    def all(self, batches: list[list[Insert]]) -> None:
        """Several under way at once; each is one logical partition."""
        engine = self.collection.store.engine
        few = len(batches) == 1 and len(batches[0]) <= LONE_MAX
        submit = engine.submit_now if few else engine.submit
        for at in range(0, len(batches), UNDER_WAY_MAX):
            sent: list[tuple[list[Insert], Sent | DbError]] = []
            for batch in batches[at : at + UNDER_WAY_MAX]:
                try:
                    begun = start_inserts(
                        self.collection, batch, self.statement, submit, self.budget
                    )
                    sent.append((batch, begun))
                except DbError as error:
                    sent.append((batch, error))
            for batch, one in sent:
                self._finish(batch, one)

    def _finish(self, batch: list[Insert], sent: Sent | DbError) -> None:
        try:
            if isinstance(sent, DbError):
                raise sent
            outcome = finish_inserts(sent)
            if outcome is None:
                operations = operations_of(self.collection, batch, self.statement)
                store, key = self.collection.store, batch[0].key
                outcome = run_batch(store, operations, key, self.budget)
        except (TooLarge, BadInput) as error:
            if len(batch) == 1:
                self.errors.append((batch[0].at, refused(error)))
                return
            for one in batch:
                self.all([[one]])
                if self._ordered and self.errors:
                    return
            return
        except OutOfTime:  # of the command, not of these documents; what was written before stays
            raise
        except DbError as error:
            # What was written before stays: the client hears which documents were not.
            self.errors += [(one.at, refused(error)) for one in batch]
            return
        if not isinstance(outcome, Failed):
            self.count += len(batch)
            self.charge_ru += outcome
            return
        self._failed(batch, outcome)

    def _failed(self, batch: list[Insert], failed: Failed) -> None:
        shift = 0 if self.statement is None else 1
        refusal = from_refusal(failed.refusal)
        if self.statement is not None and failed.position == 0:
            earlier = recorded(self.collection, self.statement(batch[0].at), batch[0].key)
            if earlier is not None:  # a second attempt
                done = {int(one) for one in earlier["at"]}
                self.count += len(done)
                self.known |= done
                rest = [one for one in batch if one.at not in done]
                if rest:
                    self.all([rest])
                return
        at = failed.position - shift
        bad = batch[max(at, 0)]
        if isinstance(refusal, Conflict):
            error = duplicate(self.collection, bad.document, refusal)
        else:
            error = refused(refusal)
        if at > 0:  # nothing has happened: those before it once more, without it
            self.all([batch[:at]])
        self.errors.append((bad.at, error))
        rest = batch[at + 1 :]
        if rest and not self._ordered:
            self.all([rest])
