"""Item operations on one container: route, run, and try again when the world has moved.

    prepare (no transaction) → route by hash → command to the owner's space → Done
         ▲                                            │ Fenced, SpaceGone: read the catalog again
         └────────────────────────────────────────────┘ Stale: look at the item again

`ContainerStore` is what every front end uses. It holds nothing but caches: any number of them, in
any number of processes, may work on one container.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from copy import copy
from random import Random
from typing import Any, NamedTuple, TypeAlias, TypeVar

from armillary.encoding.documents import BODY_BYTES, check_id
from armillary.encoding.etags import matches
from armillary.encoding.hashing import epk_key, locate
from armillary.encoding.partition_key import KeyValues, check_key
from armillary.engine.base import Command, Engine, Reader, SpaceGone
from armillary.errors import (
    DbError,
    Fenced,
    NotFound,
    NotModified,
    RangeGone,
    Stale,
)
from armillary.limits import FROZEN_WAIT_MS
from armillary.partition.ranges import Range
from armillary.partition.request_units import DEFAULT, Coefficients, at_strong, miss_ru
from armillary.store.catalog.state import ContainerState, KeyPlace, key_json, load_state, make_key
from armillary.store.items.batches import batch_key, batch_ops, check_batch
from armillary.store.items.patch import modified_paths
from armillary.store.items.preparation import (
    Operation,
    Prepared,
    Seen,
    prepare,
    prepare_patch,
    required,
    seen_text,
)
from armillary.store.items.reading import Stored, point_read, read_many
from armillary.store.items.requests import Context, Done, Failed, Key
from armillary.store.rows.fence import check_fence
from armillary.store.rows.meta import unpack_meta
from armillary.store.rows.secondary import id_part
from armillary.store.throughput.charges import ReadPrices
from armillary.store.throughput.gate import Gate
from armillary.store.throughput.meter import Meter
from armillary.store.upkeep.pieces import Settings

FROZEN_STEP_SECONDS = 0.005  # between two looks at a range that stands still
# Of re-routing or looking again before giving up: as many as fit the wait for a frozen range.
ROUNDS_MAX = round(FROZEN_WAIT_MS / 1000 / FROZEN_STEP_SECONDS)

T = TypeVar("T")
Cost: TypeAlias = Callable[[T, Coefficients], float]
"""What a read cost, by what it found, at the prices of the store."""
Submit: TypeAlias = Callable[[int, Command], Future[Any]]


class ContainerStore:
    def __init__(
        self,
        engine: Engine,
        database: str,
        name: str,
        *,
        random: Random,
        logical_bytes_max: int,
        meter: Meter | None = None,
        profile: Coefficients = DEFAULT,
        note_write: Callable[[str, str], None] = lambda database, container: None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.engine = engine
        self.database = database
        self.name = name
        self.random = random
        self.logical_bytes_max = logical_bytes_max
        self.meter = meter
        self.profile = profile
        """What everything done through this store costs: on the wire, in budgets and statistics."""
        self.read_prices = ReadPrices(profile)
        self._strong: ContainerStore | None = None
        self._note_write = note_write
        self._wait = wait
        self.known_state: ContainerState | None = None
        """What was last read from the catalog; `state` reads it when there is nothing."""
        self.functions: Callable[[Sequence[str]], Any] | None = None
        """Opens the user-defined functions of a query by name; set by who can run JavaScript."""

    @property
    def strong(self) -> "ContainerStore":
        """The same container at the prices of strong consistency, for requests at that level."""
        if self._strong is None:
            self._strong = copy(self)
            self._strong.profile = at_strong(self.profile)
            self._strong.read_prices = ReadPrices(self._strong.profile)
            self._strong._strong = self._strong
        self._strong.known_state = self.known_state
        return self._strong

    # --- state ----------------------------------------------------------------------------------

    @property
    def state(self) -> ContainerState:
        state = self.known_state
        if state is None:
            state = self.known_state = load_state(self.engine, self.database, self.name)
        return state

    def refresh(self) -> ContainerState:
        self.known_state = load_state(self.engine, self.database, self.name)
        return self.known_state

    def _catch_up(self, old: ContainerState, owner: Range) -> None:
        """After a fence: the catalog is newer than us, or newer than the space, or the range stands
        still for a moment while it splits or merges."""
        new = self.refresh()
        if new.record.version != old.record.version or new.record.rid != old.record.rid:
            return
        settings = Settings(
            new.container, owner.ordinal, owner.epoch, new.record.settings, new.record.policy
        )
        with suppress(SpaceGone):  # dropped since we looked: the next round finds out why
            with self.engine.read(owner.space) as reader:
                meta = unpack_meta(reader.meta)
            # A frozen range is asked by looking, not by commands: those would be in the way of the
            # one who is about to open it again.
            if meta.settings >= new.record.settings or not self.engine.run(
                owner.space, Command("items.adopt_settings", settings)
            ):
                self.note_write()  # should its runner be dead, another one has to be found
                self._wait(FROZEN_STEP_SECONDS)

    def note_write(self) -> None:
        """Background work should have a look soon."""
        self._note_write(self.database, self.name)

    def now_s(self) -> int:
        return self.engine.now_ms() // 1000

    def context(self, state: ContainerState, owner: Range) -> Context:
        self.note_write()
        return state.context(state.fences[owner.space], self.now_s(), self.logical_bytes_max)

    def retrying(self, epk: bytes, attempt: Callable[[ContainerState, Range], T]) -> T:
        for _ in range(ROUNDS_MAX):
            state = self.state
            owner = state.table.find(epk)
            try:
                return attempt(state, owner)
            except Stale:
                continue
            except (Fenced, SpaceGone):
                self._catch_up(state, owner)
        raise RangeGone

    def retrying_key(
        self, values: KeyValues, attempt: Callable[[ContainerState, Range, Key], T]
    ) -> T:
        """The same for one logical partition. The key is made anew in each round: a container that
        was deleted and made again under its name may hash in another way.
        """
        for _ in range(ROUNDS_MAX):
            state = self.state
            epk, key = key_in(state, values)
            owner = state.table.find(epk)
            try:
                return attempt(state, owner, key)
            except Stale:
                continue
            except (Fenced, SpaceGone):
                self._catch_up(state, owner)
        raise RangeGone

    def look(
        self,
        epk: bytes,
        read: Callable[[ContainerState, Range, Reader], T],
        *,
        cost: Cost[T] | None = None,
        operation: str = "read",
    ) -> T:
        """Run `read` on a snapshot of the physical partition that owns `epk`. With a `cost` it is a
        request of a user: admitted before, charged after."""

        def attempt(state: ContainerState, owner: Range) -> T:
            return self._looked(
                state, owner, b"", lambda reader: read(state, owner, reader), cost, operation
            )

        return self.retrying(epk, attempt)

    def look_at_key(
        self,
        values: KeyValues,
        read: Callable[[ContainerState, Key, Reader], T],
        *,
        cost: Cost[T] | None = None,
        operation: str = "read",
    ) -> T:
        """Run `read` on a snapshot of the physical partition that holds a logical one."""

        def attempt(state: ContainerState, owner: Range, key: Key) -> T:
            return self._looked(
                state, owner, key.json, lambda reader: read(state, key, reader), cost, operation
            )

        return self.retrying_key(values, attempt)

    def _looked(
        self,
        state: ContainerState,
        owner: Range,
        key: bytes,
        read: Callable[[Reader], T],
        cost: Cost[T] | None,
        operation: str,
    ) -> T:
        gate = self._gate(state, owner, key, operation)
        if cost is not None:
            gate.admit()
        with self.engine.read(owner.space) as reader:
            check_fence(reader.meta, state.fences[owner.space])
            found = read(reader)
        if cost is not None:
            gate.charge(cost(found, self.profile))
        return found

    def charge(self, epk: bytes, ru: float, *, operation: str) -> None:
        """A cost that is known only after the work: taken from the range that owns `epk`."""
        state = self.state
        self._gate(state, state.table.find(epk), b"", operation).charge(ru)

    # --- single operations ----------------------------------------------------------------------

    def run(self, operation: Operation, given: KeyValues | None) -> Done:
        """One create, upsert, replace, patch, delete or read."""
        if operation.kind == "patch":
            return self._patch(operation, required(given))
        if operation.kind == "read":
            return self._read(operation, required(given))
        return self._single(operation, given)

    def start(self, operation: Operation, given: KeyValues | None) -> "Sent":
        """The same for one create, upsert, replace or delete, without waiting: `finish` it when its
        future is done."""
        state = self.state
        prepared = prepare(state, operation, given, self.random)
        return self._submit(state, operation, prepared, self.submit_soon)

    def finish(self, sent: "Sent") -> Done | None:
        """None: the world has moved and nothing has happened; `run` it."""
        try:
            return self._received(sent)
        except (Fenced, SpaceGone):
            return None

    def _single(self, operation: Operation, given: KeyValues | None) -> Done:
        for _ in range(ROUNDS_MAX):
            state = self.state
            prepared = prepare(state, operation, given, self.random)
            sent = self._submit(state, operation, prepared)
            try:
                return self._received(sent)
            except (Fenced, SpaceGone):
                self._catch_up(state, sent.owner)
        raise RangeGone

    @property
    def submit_soon(self) -> Submit:
        """How an event loop submits, which does not wait: many together, if the engine can."""
        engine = self.engine
        soon: Submit = getattr(engine, "submit_soon", engine.submit)
        return soon

    def _submit(
        self,
        state: ContainerState,
        operation: Operation,
        prepared: Prepared,
        submit: Submit | None = None,
    ) -> "Sent":
        epk, key = key_in(state, prepared.key)
        owner = state.table.find(epk)
        gate = self._gate(state, owner, key.json, operation.kind)
        gate.admit()
        data = (self.context(state, owner), key, [prepared.op])
        submit = submit or self.engine.submit
        return Sent(submit(owner.space, Command("items.write", data)), owner, gate)

    def _received(self, sent: "Sent") -> Done:
        try:
            done: Done = sent.future.result()
        except DbError as error:
            raise sent.gate.failed(error) from None
        return sent.gate.passed(done, sent.patched_paths)

    def _gate(self, state: ContainerState, owner: Range, key: bytes, operation: str) -> Gate:
        return Gate(self.meter, state, owner, key, operation, self.profile)

    def _patch(self, operation: Operation, given: KeyValues) -> Done:
        check_id(operation.id)

        def attempt(state: ContainerState, owner: Range, key: Key) -> Done:
            gate = self._gate(state, owner, key.json, "patch")
            gate.admit()
            with self.engine.read(owner.space) as reader:
                check_fence(reader.meta, state.fences[owner.space])
                seen = self._see(state, reader, key, operation.id)
            op, _ = prepare_patch(state, operation, seen)
            data = (self.context(state, owner), key, [op])
            future = self.engine.submit(owner.space, Command("items.write", data))
            return self._received(Sent(future, owner, gate, modified_paths(operation.patch)))

        return self.retrying_key(given, attempt)

    def _see(self, state: ContainerState, reader: Reader, key: Key, item_id: str) -> Seen:
        wanted = [(key, item_id, id_part(item_id))]
        (stored,) = read_many(reader, wanted, state.definition.default_ttl, self.now_s())
        return Seen(None, 0) if stored is None else seen_text(stored.text, stored.lsn)

    # --- reads ----------------------------------------------------------------------------------

    def read(self, item_id: str, values: KeyValues) -> Stored:
        return Stored(self.read_placed(item_id, values).value)

    def read_placed(
        self,
        item_id: str,
        values: KeyValues,
        place: KeyPlace | None = None,
        *,
        if_none_match: str | None = None,
    ) -> "Placed":
        """A point read, and where it was answered. `place`: of the same key, if it is known.
        `if_none_match`: NotModified if the item is that version, at the price of a miss.
        HOT: numbers in bench/store.py."""
        part = id_part(check_id(item_id))
        for _ in range(ROUNDS_MAX):
            state = self.known_state or self.state
            definition = state.definition
            if place is not None and place.definition is definition.partition_key:
                _, epk, digest, row, key = place
            else:
                epk, digest = locate(
                    check_key(values, definition.partition_key), definition.partition_key
                )
                row, key = epk_key(epk, definition.partition_key), key_json(values)
            owner = state.table.find(epk)
            meter = self.meter
            ticket = None if meter is None else meter.admit(state, owner, "read")
            try:
                meta, value = point_read(
                    self.engine,
                    owner.space,
                    state.fences[owner.space],
                    row,
                    digest,
                    item_id,
                    part,
                    definition.default_ttl,
                )
            except (Fenced, SpaceGone):
                self._catch_up(state, owner)
                continue
            except NotFound as error:
                gate = Gate(meter, state, owner, key, "read", self.profile, ticket)
                raise gate.failed(error) from None
            if if_none_match is not None and matches(if_none_match, etag := Stored(value).etag):
                gate = Gate(meter, state, owner, key, "read", self.profile, ticket)
                ru = miss_ru(profile=self.profile)
                gate.charge(ru, status=304)
                raise NotModified(etag=etag, charge_ru=ru)
            ru = self.read_prices[BODY_BYTES.unpack_from(value)[0]]
            if meter is not None:
                meter.charge(state, owner, key, ru, "read", 200, ticket)
            return Placed(value, owner, meta, ru)
        raise RangeGone

    def _read(self, operation: Operation, given: KeyValues) -> Done:
        found = self.read_placed(operation.id, given, if_none_match=operation.if_none_match)
        stored = Stored(found.value)
        return Done("read", stored.text, stored.etag, stored.lsn, charge_ru=found.charge_ru)

    def read_many(self, wanted: Sequence[tuple[str, KeyValues]]) -> list[Stored | None]:
        """Items by (id, key), in the order asked for; one snapshot per physical partition."""
        results: list[Stored | None] = [None] * len(wanted)
        left = list(range(len(wanted)))
        for _ in range(ROUNDS_MAX):
            state = self.state
            by_owner: dict[Range, list[tuple[int, Key]]] = {}
            for index in left:
                epk, key = key_in(state, wanted[index][1])
                by_owner.setdefault(state.table.find(epk), []).append((index, key))
            left = []
            for owner, asked in by_owner.items():
                try:
                    found = self._read_owner(state, owner, [(k, wanted[i][0]) for i, k in asked])
                except (Fenced, SpaceGone):
                    left += (index for index, _ in asked)
                    self._catch_up(state, owner)
                    continue
                for (index, _), stored in zip(asked, found, strict=True):
                    results[index] = stored
            if not left:
                return results
        raise RangeGone

    def _read_owner(
        self, state: ContainerState, owner: Range, asked: list[tuple[Key, str]]
    ) -> list[Stored | None]:
        now_s = self.now_s()
        parts = [(key, item_id, id_part(check_id(item_id))) for key, item_id in asked]
        with self.engine.read(owner.space) as reader:
            check_fence(reader.meta, state.fences[owner.space])
            return read_many(reader, parts, state.definition.default_ttl, now_s)

    # --- batch and bulk -------------------------------------------------------------------------

    def batch(self, operations: Sequence[Operation], given: KeyValues) -> list[Done] | Failed:
        """All or nothing, in one logical partition. Facts: nosql-rest 6.5."""
        check_batch(operations)
        given = batch_key(self.state, operations, given, self.random)

        def attempt(state: ContainerState, owner: Range, key: Key) -> list[Done] | Failed:
            def see(item_id: str) -> Seen:
                with self.engine.read(owner.space) as reader:
                    check_fence(reader.meta, state.fences[owner.space])
                    return self._see(state, reader, key, item_id)

            gate = self._gate(state, owner, key.json, "batch")
            gate.admit()
            ops = batch_ops(state, operations, given, self.random, see)
            data = (self.context(state, owner), key, ops)
            result: list[Done] | Failed = self.engine.run(owner.space, Command("items.batch", data))
            return result if isinstance(result, Failed) else gate.passed_all(result)

        return self.retrying_key(given, attempt)

    def bulk(
        self, operations: Iterable[tuple[Operation, KeyValues | None]]
    ) -> list[Done | DbError]:
        """Each operation for itself, in any order of completion; answers in the order given."""
        pending: list[tuple[Operation, KeyValues | None, Sent | DbError | None]] = []
        state = self.state
        for operation, given in operations:
            try:
                if operation.kind in ("patch", "read"):
                    pending.append((operation, given, None))
                else:
                    prepared = prepare(state, operation, given, self.random)
                    pending.append((operation, given, self._submit(state, operation, prepared)))
            except SpaceGone:
                pending.append((operation, given, None))
            except DbError as error:
                pending.append((operation, given, error))
        return [self._settle(*one) for one in pending]

    def _settle(
        self,
        operation: Operation,
        given: KeyValues | None,
        outcome: "Sent | DbError | None",
    ) -> Done | DbError:
        if isinstance(outcome, DbError):
            return outcome
        try:
            if outcome is not None:
                with suppress(Fenced, SpaceGone):
                    return self._received(outcome)
            return self.run(operation, given)
        except DbError as error:
            return error


class Placed(NamedTuple):
    """A stored item, the range it was read in, and the meta row of the same snapshot."""

    value: bytes
    owner: Range
    meta: bytes
    charge_ru: float


class Sent(NamedTuple):
    """A write on its way."""

    future: Future[Any]
    owner: Range
    gate: Gate
    patched_paths: int = 0


def key_in(state: ContainerState, values: KeyValues) -> tuple[bytes, Key]:
    """(effective partition key, the logical partition) of a key value in this container."""
    definition = state.definition
    return make_key(check_key(values, definition.partition_key), definition)
