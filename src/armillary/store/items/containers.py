"""Item operations on one container.

    prepare (no transaction) → route by hash (`routing.py`) → command to the owner's space → Done

`ContainerStore` is what every front end uses.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple, TypeAlias, cast

import msgspec
import orjson

from armillary.budget import Budget, checked
from armillary.encoding.documents import (
    BODY_BYTES,
    DIGEST_SLICE,
    LSN,
    POLICY,
    body_text,
    check_id,
    json_offset,
)
from armillary.encoding.etags import matches
from armillary.encoding.partition_key import KeyValues
from armillary.engine.base import Command, SpaceGone
from armillary.errors import (
    DbError,
    Fenced,
    NotFound,
    NotModified,
    RangeGone,
    Stale,
)
from armillary.partition.ranges import Range
from armillary.partition.request_units import miss_ru
from armillary.store.catalog.state import ContainerState, Spot
from armillary.store.items.batches import batch_key, batch_ops, check_batch
from armillary.store.items.bulk import Answer, Bulk, few_collections
from armillary.store.items.patch import check_operations
from armillary.store.items.preparation import (
    Operation,
    Prepared,
    Seen,
    prepare,
    prepare_patch,
    required,
)
from armillary.store.items.reading import Placed, Stored, is_live, read_many
from armillary.store.items.requests import Done, Failed, Key
from armillary.store.items.routing import ROUNDS_MAX, RoutedStore, key_in
from armillary.store.rows.fence import check_fence
from armillary.store.rows.layout import DOC, ID
from armillary.store.rows.secondary import ID_CUT_BYTES, cut_id, id_part, is_cut
from armillary.store.throughput.gate import Gate
from armillary.store.throughput.meter import Ticket
from armillary.values import JSON

ROUNDS: Final = range(ROUNDS_MAX)
Submit: TypeAlias = Callable[[int, Command], Future[Any]]
Begun: TypeAlias = tuple[Ticket | None, tuple[bytes, bytes | None, bytes | None]]
"""A point read that is admitted, and what the engine read for it."""


class ContainerStore(RoutedStore):
    # --- single operations ----------------------------------------------------------------------

    def run(self, operation: Operation, given: KeyValues | None) -> Done:
        """One create, upsert, replace, patch, delete or read."""
        if operation.kind == "patch":
            return self._patch(operation, required(given))
        if operation.kind == "read":
            return self._read(operation, required(given))
        return self._single(operation, given)

    def start(
        self, operation: Operation, given: KeyValues | None, ticket: Ticket | None = None
    ) -> "Sent":
        """The same for one write, without waiting: `finish` it when its future is done. `ticket`:
        of one that is admitted already. A patch reads the item first, and raises Fenced or
        SpaceGone when its range has moved."""
        state = self.known_state or self.state
        if operation.kind == "patch":
            epk, key = state.key(required(given))
            owner = state.table.find(epk)
            soon = self.engine.submit_soon
            return self._submit_patch(state, owner, key, operation, soon, ticket)
        prepared = prepare(state, operation, given, self.random)
        return self._submit(state, operation, prepared, self.engine.submit_soon, ticket)

    def finish(self, sent: "Sent") -> Done | None:
        """None: a fence mismatch, and nothing has happened; `run` it."""
        try:
            return self._received(sent)
        except (Fenced, SpaceGone, Stale):
            return None

    def _single(self, operation: Operation, given: KeyValues | None) -> Done:
        for _ in range(ROUNDS_MAX):
            state = self.state
            prepared = prepare(state, operation, given, self.random)
            sent = self._submit(state, operation, prepared)
            try:
                return self._received(sent)
            except (Fenced, SpaceGone):
                self.catch_up(state, sent.owner)
        raise RangeGone

    def _submit(
        self,
        state: ContainerState,
        operation: Operation,
        prepared: Prepared,
        submit: Submit | None = None,
        ticket: Ticket | None = None,
    ) -> "Sent":
        epk, key = key_in(state, prepared.key)
        owner = state.table.find(epk)
        gate = Gate(self.meter, state, owner, key.json, operation.kind, self.profile, ticket)
        if ticket is None:
            gate.admit()
        data = (self.context(state, owner), key, [prepared.op])
        submit = submit or self.engine.submit_now
        return Sent(submit(owner.space, Command("items.write", data)), owner, gate)

    def _received(self, sent: "Sent | Added") -> Done:
        try:
            done: Done = sent.future.result()
        except DbError as error:
            raise sent.gate.failed(error) from None
        return sent.gate.passed(done, sent.patched_paths)

    def _patch(self, operation: Operation, given: KeyValues) -> Done:
        def attempt(state: ContainerState, owner: Range, key: Key) -> Done:
            sent = self._submit_patch(state, owner, key, operation, self.engine.submit_now)
            return self._received(sent)

        return self.retrying_key(given, attempt)

    def _submit_patch(
        self,
        state: ContainerState,
        owner: Range,
        key: Key,
        operation: Operation,
        submit: Submit,
        ticket: Ticket | None = None,
    ) -> "Sent":
        """The item as it is now, and the replace that the patch comes to."""
        check_id(operation.id)
        gate = Gate(self.meter, state, owner, key.json, "patch", self.profile, ticket)
        if ticket is None:
            gate.admit()
        patched = prepare_patch(state, operation, self._see(state, owner, key, operation))
        if patched.op.kind == "fail":
            check_operations(operation.patch)  # a patch of wrong form is wrong on every item
        data = (self.context(state, owner), key, [patched.op])
        future = submit(owner.space, Command("items.write", data))
        return Sent(future, owner, gate, patched.paths)

    def _see(self, state: ContainerState, owner: Range, key: Key, operation: Operation) -> Seen:
        """The item of a patch as it is now; its system properties only where a condition may ask
        for them. Raises Fenced or SpaceGone when its range has moved."""
        part = id_part(operation.id)
        meta, _, value = self.engine.read_via(owner.space, ID + key.epk_key + part, DOC)
        fence = state.fences[owner.space]
        if not meta.startswith(fence):
            check_fence(meta, fence)
        default_ttl = state.definition.default_ttl
        if (
            value is None
            or value[DIGEST_SLICE] != key.digest
            or (default_ttl and not is_live(value, default_ttl, self.now_s()))
        ):
            return Seen(None, 0)
        text = body_text(value) if operation.condition is None else value[json_offset(value) :]
        item = orjson.loads(text)
        if is_cut(part) and item["id"] != operation.id:
            return Seen(None, 0)
        return Seen(item, LSN.unpack_from(value)[0], POLICY.unpack_from(value)[0])

    # --- reads ----------------------------------------------------------------------------------

    def read(self, item_id: str, values: KeyValues) -> Stored:
        return Stored(self.read_placed(item_id, values)[0])

    def read_placed(
        self, item_id: str, values: KeyValues, if_none_match: str | None = None
    ) -> Placed:
        """A point read, and where it was answered. `if_none_match`: NotModified if the item is
        that version, at the price of a miss."""
        raw = check_id(item_id).encode()
        for _ in ROUNDS:
            state = self.known_state or self.state
            spot = state.spots.get(values) or state.spot(values)
            try:
                return self.read_at(spot, raw, if_none_match)
            except (Fenced, SpaceGone):
                self.catch_up(state, spot[1])
        raise RangeGone

    def read_at(
        self,
        spot: Spot,
        raw: bytes,
        if_none_match: str | None = None,
        final: bool = True,
        begun: "Begun | None" = None,
    ) -> Placed:
        """The point read of every path: admitted, read in one snapshot, charged. `raw`: the id.
        Raises Fenced or SpaceGone when the spot is no longer where it was. Not `final`: the caller
        asks again if it fails, so a failure is neither counted nor charged. `begun`: it is admitted
        and read already. HOT: numbers in bench/store.py and bench/http_cost.py."""
        state, owner, prefix, digest, key, fence = spot
        meter = self.meter
        if begun is not None:
            ticket, (meta, _, value) = begun
        else:
            ticket = None if meter is None else meter.admit(state, owner, "read", note=final)
            row = prefix + raw if len(raw) <= ID_CUT_BYTES else prefix[:-1] + cut_id(raw)
            meta, _, value = self.engine.read_via(owner.space, row, DOC)
        if not meta.startswith(fence):
            check_fence(meta, fence)
        default_ttl = state.definition.default_ttl
        if (
            value is None
            or value[DIGEST_SLICE] != digest
            or (default_ttl and not is_live(value, default_ttl, self.now_s()))
            or (len(raw) > ID_CUT_BYTES and orjson.loads(Stored(value).text)["id"].encode() != raw)
        ):
            gate = Gate(meter, state, owner, key, "read", self.profile, ticket)
            raise gate.failed(NotFound()) if final else NotFound
        if if_none_match is not None and matches(if_none_match, etag := Stored(value).etag):
            ru = miss_ru(profile=self.profile)
            gate = Gate(meter, state, owner, key, "read", self.profile, ticket)
            gate.charge(ru, status=304)
            raise NotModified(etag=etag, charge_ru=ru)
        ru = self.read_prices[BODY_BYTES.unpack_from(value)[0]]
        if meter is not None:
            meter.charge(state, owner, key, ru, "read", 200, ticket)
        return value, owner, meta, ru

    def _read(self, operation: Operation, given: KeyValues) -> Done:
        condition = operation.if_none_match
        value, _, _, ru = self.read_placed(operation.id, given, if_none_match=condition)
        stored = Stored(value)
        return Done("read", stored.text, stored.etag, stored.lsn, charge_ru=ru)

    def read_many(
        self, wanted: Sequence[tuple[str, KeyValues]], budget: Budget | None = None
    ) -> list[Stored | None]:
        """Items by (id, key), in the order asked for; one snapshot per physical partition."""
        within = checked(budget)
        results: list[Stored | None] = [None] * len(wanted)
        left = list(range(len(wanted)))
        for _ in range(ROUNDS_MAX):
            state = self.state
            by_owner: dict[Range, list[tuple[int, Key]]] = {}
            within.spend(len(left))
            for index in left:
                epk, key = key_in(state, wanted[index][1])
                by_owner.setdefault(state.table.find(epk), []).append((index, key))
            left = []
            for owner, asked in by_owner.items():
                within.check()
                try:
                    found = self._read_owner(state, owner, [(k, wanted[i][0]) for i, k in asked])
                except (Fenced, SpaceGone):
                    left += (index for index, _ in asked)
                    self.catch_up(state, owner)
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

    def batch(
        self, operations: Sequence[Operation], given: KeyValues, budget: Budget | None = None
    ) -> list[Done] | Failed:
        """All or nothing, in one logical partition; past the `budget` nothing. Facts: nosql-rest
        6.5."""
        within = checked(budget)
        check_batch(operations)
        given = batch_key(self.state, operations, given, self.random)

        def attempt(state: ContainerState, owner: Range, key: Key) -> list[Done] | Failed:
            def see(operation: Operation) -> Seen:
                return self._see(state, owner, key, operation)

            gate = self._gate(state, owner, key.json, "batch")
            gate.admit()
            ops = batch_ops(state, operations, given, self.random, see, within)
            data = (self.context(state, owner), key, ops)
            future = self.engine.submit_now(owner.space, Command("items.batch", data))
            result: list[Done] | Failed = future.result()
            if isinstance(result, Failed):
                return gate.failed_batch(result)
            return gate.passed_all(result)

        return self.retrying_key(given, attempt)

    def bulk(
        self,
        operations: Iterable[tuple[Operation, KeyValues | None]],
        *,
        wants_text: bool = True,
        budget: Budget | None = None,
    ) -> list[Done | DbError]:
        """Each operation for itself, in any order of completion; answers in the order given.
        Without `wants_text` they need not have the JSON of what was written. Past the `budget` each
        operation that was not sent yet is answered by its error."""
        with few_collections:
            answers = self.start_bulk(operations, wants_text=wants_text, budget=budget)
            return list(cast(Iterator[Done | DbError], answers))

    def start_bulk(
        self,
        operations: Iterable[tuple[Operation, KeyValues | None]],
        *,
        wants_text: bool = True,
        wants_items: bool = False,
        budget: Budget | None = None,
    ) -> Iterator[Done | DbError | dict[str, JSON]]:
        """All are sent when this returns; the answers are there as they come. With `wants_items`
        most new items are answered by themselves: who would parse their text need not."""
        asked: list[tuple[Operation, KeyValues | None]] = []
        outcomes: list[DbError | Added | None] = []
        state = self.state
        bulk = Bulk(self.engine, lambda owner: self.context(state, owner), wants_text)
        for operation, given in operations:
            asked.append((operation, given))
            outcomes.append(None)
            if operation.kind in ("patch", "read"):
                continue
            try:
                if budget is not None:
                    budget.check()
                prepared = prepare(state, operation, given, self.random)
                epk, key = key_in(state, prepared.key)
                owner = state.table.find(epk)
                gate = self._gate(state, owner, key.json, operation.kind)
                gate.admit()
                item = prepared.item if wants_items else None
                outcomes[-1] = Added(bulk.add(owner, key, prepared.op), gate, item)
            except DbError as error:
                outcomes[-1] = error
        bulk.send()
        priced = wants_text or self.meter is not None
        return (
            self._settle(*one, outcome, priced, budget)
            for one, outcome in zip(asked, outcomes, strict=True)
        )

    def _settle(
        self,
        operation: Operation,
        given: KeyValues | None,
        outcome: "Added | DbError | None",
        priced: bool,
        budget: Budget | None,
    ) -> Done | DbError | dict[str, JSON]:
        if isinstance(outcome, DbError):
            return outcome
        try:
            if outcome is not None:
                try:
                    if not priced:
                        return outcome.future.result()
                    if outcome.item is not None:
                        item = outcome.future.finish(outcome.item)
                        if item is not None:
                            if self.meter is not None:
                                self._received(outcome)
                            return item
                    return self._received(outcome)
                except (Fenced, SpaceGone):
                    pass
            if budget is not None:
                budget.check()
            return self.run(operation, given)
        except DbError as error:
            return error


class Added(NamedTuple):
    """A write that travels with others."""

    future: Answer
    gate: Gate
    item: dict[str, JSON] | None
    """As it was sent, to be finished by its answer."""
    patched_paths: int = 0


class Sent(msgspec.Struct, frozen=True):
    """A write on its way."""

    future: Future[Any]
    owner: Range
    gate: Gate
    patched_paths: int = 0
