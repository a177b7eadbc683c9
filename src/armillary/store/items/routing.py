"""The way to the physical partition of a key: what is known of a container, and what happens when
that is out of date.

    route by hash → work in the owner's space
         ▲                  │ Fenced, SpaceGone: read the catalog again
         └──────────────────┘ Stale: look at the item again

`RoutedStore` holds nothing but caches: any number of them, in any number of processes, may work on
one container. `ContainerStore` has the operations.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from random import Random
from typing import Any, Self, TypeAlias, TypeVar

from armillary.encoding.partition_key import KeyValues
from armillary.engine.base import Command, Engine, Reader, SpaceGone
from armillary.engine.replicas import Behind
from armillary.errors import (
    ContainerClosed,
    Fenced,
    RangeGone,
    Stale,
)
from armillary.limits import FROZEN_WAIT_MS
from armillary.partition.ranges import Range
from armillary.partition.request_units import DEFAULT, Coefficients, at_strong
from armillary.store.catalog.state import ContainerState, load_state
from armillary.store.items.requests import Context, Key
from armillary.store.rows.fence import check_fence
from armillary.store.rows.meta import unpack_meta
from armillary.store.throughput.charges import ReadPrices
from armillary.store.throughput.gate import Gate
from armillary.store.throughput.meter import Meter
from armillary.store.upkeep.pieces import Settings

FROZEN_STEP_SECONDS = 0.005  # between two looks at a frozen range
# Of re-routing or looking again before giving up: as many as fit the wait for a frozen range.
ROUNDS_MAX = round(FROZEN_WAIT_MS / 1000 / FROZEN_STEP_SECONDS)

T = TypeVar("T")
Cost: TypeAlias = Callable[[T, Coefficients], float]
"""What a read cost, by what it found, at the prices of the store."""


class RoutedStore:
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
        self._strong: Self | None = None
        self._elsewhere: dict[int, Self] = {}
        self._note_write = note_write
        self._contexts: tuple[ContainerState | None, int, dict[int, Context]] = None, 0, {}
        """By space, of one second: commands that follow each other have the same one."""
        self._wait = wait
        self._now_s: int | None = None
        self.known_state: ContainerState | None = None
        """What was last read from the catalog; `state` reads it when there is nothing."""
        self.functions: Callable[[Sequence[str]], Any] | None = None
        """Opens the user-defined functions of a query by name; set by who can run JavaScript."""

    @property
    def strong(self) -> Self:
        """The same container at the prices of strong consistency, for requests at that level."""
        if self._strong is None:
            self._strong = copy(self)
            self._strong.profile = at_strong(self.profile)
            self._strong.read_prices = ReadPrices(self._strong.profile)
            self._strong._strong = self._strong
        self._strong.known_state = self.known_state
        return self._strong

    def at(self, engine: Engine) -> Self:
        """The same container as another copy of the data has it, for reads. Where it would have to
        wait or to write it raises `Behind`."""
        found = self._elsewhere.get(id(engine))
        if found is None:
            found = copy(self)
            found.engine = engine
            found._strong, found.known_state = None, None
            found._elsewhere, found._wait = {}, _do_not_wait
            found._note_write = lambda database, container: None
            self._elsewhere[id(engine)] = found
        return found

    def as_of(self, now_s: int) -> Self:
        """The same container for reads by another clock: what has expired since that moment is
        there."""
        found = copy(self)
        found._now_s = now_s
        return found

    # --- state ----------------------------------------------------------------------------------

    @property
    def state(self) -> ContainerState:
        state = self.known_state
        if state is None:
            state = self.known_state = load_state(self.engine, self.database, self.name)
        return state

    def forget_state(self) -> None:
        """The next who asks for it reads the catalog."""
        self.known_state = None
        if self._strong is not None:
            self._strong.known_state = None

    def refresh(self) -> ContainerState:
        self.known_state = load_state(self.engine, self.database, self.name)
        return self.known_state

    def catch_up(self, old: ContainerState, owner: Range) -> None:
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
            if meta.settings < new.record.settings:
                self._wait(0.0)  # for the writer, if we may
                if self.engine.run(owner.space, Command("items.adopt_settings", settings)):
                    return
            self.note_write()  # should its runner be dead, another one has to be found
            self._wait(FROZEN_STEP_SECONDS)

    def note_write(self) -> None:
        """Background work should have a look soon."""
        self._note_write(self.database, self.name)

    def pause(self, seconds: float) -> None:
        self._wait(seconds)

    def now_s(self) -> int:
        return self.engine.now_ms() // 1000 if self._now_s is None else self._now_s

    def context(self, state: ContainerState, owner: Range) -> Context:
        """What a write of a user needs to know."""
        # By the catalog: it may be open again, and then the fence sends the caller round once more.
        if state.record.closed and self.refresh().record.closed:
            raise ContainerClosed(
                f"The container {self.name} is closed for writing: its items have moved to "
                f"{state.record.closed}."
            )
        return self.upkeep_context(state, owner)

    def upkeep_context(self, state: ContainerState, owner: Range) -> Context:
        """The same for expiry and indexing, which go on when users may no longer write."""
        # HOT: once per write; `note_write` and `now_s` written out.
        self._note_write(self.database, self.name)
        now_s = self.engine.now_ms() // 1000 if self._now_s is None else self._now_s
        space = owner.space
        of, at_s, known = self._contexts
        if of is not state or at_s != now_s:
            known = {}
            self._contexts = state, now_s, known
        context = known.get(space)
        if context is None:
            context = state.context(state.fences[space], now_s, self.logical_bytes_max)
            known[space] = context
        return context

    def retrying(self, epk: bytes, attempt: Callable[[ContainerState, Range], T]) -> T:
        for _ in range(ROUNDS_MAX):
            state = self.state
            owner = state.table.find(epk)
            try:
                return attempt(state, owner)
            except Stale:
                continue
            except (Fenced, SpaceGone):
                self.catch_up(state, owner)
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
                self.catch_up(state, owner)
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

    def _gate(self, state: ContainerState, owner: Range, key: bytes, operation: str) -> Gate:
        return Gate(self.meter, state, owner, key, operation, self.profile)


def _do_not_wait(seconds: float) -> None:
    raise Behind


def key_in(state: ContainerState, values: KeyValues) -> tuple[bytes, Key]:
    """(effective partition key, the logical partition) of a key value in this container."""
    return state.key(values)
