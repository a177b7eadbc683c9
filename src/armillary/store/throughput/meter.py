"""Request units at the door of every physical partition: admit, then charge what it really cost.

    admit   the budget of the range that owns the key: a share of the container's throughput, or of
    the
            database's when it is shared; a refusal is `Throttled` with the milliseconds to wait
    charge  the exact cost, after the work; also of refused and failed requests
    record  who used how much: partitions, keys, latency

Budgets live in a ledger that all processes share. What a container has provisioned is read from the
catalog at most once a second. With `enforce="off"` nothing is refused; costs are recorded all the
same.

Between `admit` and `charge` a request holds a `Ticket`, so that the second of them need not ask the
clock nor look for the budget again.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Literal, NoReturn, TypeAlias

import orjson

from armillary.clock import MayNotWait
from armillary.engine.base import CATALOG_SPACE, Engine
from armillary.errors import DbError, MetadataThrottled, Throttled, Unavailable
from armillary.limits import METADATA_RU
from armillary.partition.budgets.ledger import Allowance, Held, Ledger
from armillary.partition.provisioning.partitions import LIMITS, PartitionLimits, has_burst
from armillary.partition.ranges import Range
from armillary.partition.usage.consumption import PartitionHeat
from armillary.partition.usage.counters import WHOLE
from armillary.partition.usage.inheritance import with_inherited
from armillary.partition.usage.statistics import LocalStatistics, Statistics
from armillary.store.catalog.records import find_database
from armillary.store.catalog.state import ContainerState
from armillary.store.moves.descent import descendants_in, place_in
from armillary.store.throughput.offers import OfferRecord, find_offer

Enforce: TypeAlias = Literal["on", "off", "report"]

ALLOWANCES_MAX = 10_000  # remembered at once
PROVISIONS_MAX = 1_000  # the same, of containers
FLUSH_MS = 5_000
QUERY_TEXT_KEPT = 400  # characters of a query in the statistics
OFFER_SECONDS = 1  # TTL of the offer cache
KNOWN_SECONDS = 3  # the same by an event loop, which can't look

#: The second and the catalog version in which an allowance was looked up, and what this process
#: holds of it. None: unlimited; nothing.
Known: TypeAlias = tuple[int, int, Allowance | None, Held | None]
#: When a request was admitted (clock in ms, stopwatch in seconds), and by which budget.
Ticket: TypeAlias = tuple[int, float, Known | None]

_UNLIMITED: Final[Known] = (0, 0, None, None)
#: The budget of the account's metadata. Neither a space nor a shared budget has this number.
METADATA: Final = Allowance(1 << 61, METADATA_RU)

log = logging.getLogger("armillary.throughput")


@dataclass(frozen=True, slots=True)
class _Provision:
    """An offer as it was at some second, and who owns it."""

    second: int
    offer: OfferRecord | None
    shared: bool


class Meter:
    def __init__(
        self,
        engine: Engine,
        ledger: Ledger,
        *,
        statistics: Statistics | None = None,
        enforce: Enforce = "on",
        burst: bool = False,
        serverless: bool = False,
        metadata: bool = False,
        limits: PartitionLimits = LIMITS,
        stopwatch: Callable[[], float] | None = None,
    ) -> None:
        """`serverless`: what a range may spend follows from its limit alone. `metadata`: requests
        about databases and containers have a budget too. `stopwatch` measures latencies, in
        seconds; without one, the engine's clock does, which counts whole milliseconds."""
        self._engine = engine
        self._now_ms = engine.now_ms
        self._stopwatch = stopwatch or (lambda: engine.now_ms() / 1000)
        self._ledger = ledger
        self._statistics = LocalStatistics() if statistics is None else statistics
        self._recorder = self._statistics.recorder
        self._record = self._recorder.record
        self._enforce = enforce
        #: How an event loop admits.
        self.admit_here = self.admit_soon if ledger.waits else self.admit
        self._burst = burst
        self._serverless = serverless
        self._metadata = metadata and enforce != "off"
        self._limits = limits
        self._provisions: dict[str, _Provision] = {}
        self._allowances: dict[int, Known] = {}
        self._flushed_ms = engine.now_ms()
        self._told: set[str] = set()

    # HOT: admit and charge run once per request, without a call while a slice of the budget is at
    # hand; numbers in bench/split.py.

    def admit(
        self,
        state: ContainerState,
        owner: Range,
        operation: str,
        *,
        low: bool = False,
        note: bool = True,
    ) -> Ticket:
        """Raise Throttled when the range has nothing left in this second. `note`: count that; not
        for a caller that is refused again by the general path."""
        now_ms = self._now_ms()
        if self._enforce == "off":
            return now_ms, self._stopwatch(), _UNLIMITED
        second = now_ms // 1000
        known = self._allowances.get(owner.space)
        if known is None or known[0] != second or known[1] != state.record.version:
            known = self._known(state, owner, now_ms)
        _, _, allowance, held = known
        if held is not None and held.left > 0.0 and held.second == second and not low:
            held.high_second = second
        elif allowance is not None:
            wait_ms = self._ledger.admit(allowance, now_ms, low=low)
            if wait_ms is not None:
                self._refuse(state, owner, operation, wait_ms, now_ms, note)
        return now_ms, self._stopwatch(), known

    def _refuse(
        self,
        state: ContainerState,
        owner: Range,
        operation: str,
        wait_ms: int,
        now_ms: int,
        note: bool,
    ) -> NoReturn:
        if state.record.rid not in self._told:
            self._tell(state)
        if note:
            self._recorder.record(owner.space, b"", 0.0, 429, 0.0, operation, now_ms)
        raise Throttled(retry_after_ms=wait_ms)

    def _tell(self, state: ContainerState) -> None:
        """Once for each container: the first 429 needs an explanation."""
        if len(self._told) >= ALLOWANCES_MAX:
            self._told.clear()
        self._told.add(state.record.rid)
        with self._engine.read(CATALOG_SPACE) as reader:
            offer = find_offer(reader, state.record.rid)
        name = f"{state.record.database}/{state.record.id}"
        has = "the throughput of its database" if offer is None else f"{offer.ru:,} RU/s"
        log.warning(
            "%s has used up %s and refuses requests (429): scale it (armillary containers scale), "
            "or serve with --enforce off; logged once",
            name,
            has,
        )

    def charge(
        self,
        state: ContainerState,
        owner: Range,
        key: bytes,
        ru: float,
        operation: str,
        status: int = 200,
        ticket: Ticket | None = None,
    ) -> None:
        """What it cost. Without a ticket: something that was not admitted by itself."""
        if ticket is None:
            now_ms, latency_ms, known = self._now_ms(), 0.0, None
        else:
            now_ms, began, known = ticket
            latency_ms = (self._stopwatch() - began) * 1000.0
            if latency_ms >= 0.5:
                now_ms = self._now_ms()  # the second in which it ended; a clock may be stopped
        if known is not _UNLIMITED and self._enforce != "off":
            # The one of the ticket, unless the throughput was changed meanwhile. Who was admitted
            # does not ask again: it may be an event loop, and the work is done.
            if known is not None:
                known = self._allowances.get(owner.space) or known
            else:
                known = self._known_at_last(state, owner, now_ms)
            _, _, allowance, held = known
            if held is not None and held.second == now_ms // 1000:
                held.lock.acquire()  # takes half as long as a with statement
                held.left = left = held.left - ru
                held.lock.release()
                if left < 0.0:
                    assert allowance is not None
                    self._ledger.charge(allowance, 0.0, now_ms)  # which settles a large debt
            elif allowance is not None:
                self._ledger.charge(allowance, ru, now_ms)
        self._record(owner.space, key, ru, status, latency_ms, operation, now_ms)
        if now_ms - self._flushed_ms >= FLUSH_MS:
            self._flushed_ms = now_ms
            self._statistics.show(now_ms)  # so that other processes see our top keys

    def serve_loop(self) -> None:
        """An event loop is going to admit: see to it that it rarely has to ask."""
        self._now_ms = self._engine.clock.now_ms  # nothing replaces it any more
        self._ledger.renew_ahead(self._now_ms)

    def admit_soon(
        self, state: ContainerState, owner: Range, operation: str, *, note: bool = True
    ) -> Ticket:
        """`admit` for an event loop where the ledger is a database. Raises MayNotWait when that
        would have to be asked, or the catalog: a thread may, and refuses where it must."""
        now_ms = self._now_ms()
        if self._enforce == "off":
            return now_ms, self._stopwatch(), _UNLIMITED
        known = self._allowances.get(owner.space)
        if known is None:
            raise MayNotWait
        looked_second, version, allowance, held = known
        second = now_ms // 1000
        if second - looked_second > KNOWN_SECONDS or version != state.record.version:
            raise MayNotWait
        if allowance is not None:
            if held is None or held.left <= 0.0 or held.second != second:
                raise MayNotWait
            held.high_second = second
        return now_ms, self._stopwatch(), known

    def budget_of(self, state: ContainerState, owner: Range, now_ms: int) -> Allowance | None:
        """The budget that requests are refused by. None: nothing is refused."""
        return self.allowance(state, owner, now_ms) if self._enforce == "on" else None

    def allowance(self, state: ContainerState, owner: Range, now_ms: int) -> Allowance | None:
        """The budget that a range draws on. None: unlimited."""
        return self._known(state, owner, now_ms)[2]

    def _known(self, state: ContainerState, owner: Range, now_ms: int) -> Known:
        """Believed for a second, as the offer is."""
        second, version = now_ms // 1000, state.record.version
        known = self._allowances.get(owner.space)
        if known is None or known[0] != second or known[1] != version:
            if len(self._allowances) >= ALLOWANCES_MAX:
                self._allowances.clear()
            allowance = self._allowance(state, owner, now_ms)
            held = None if allowance is None else self._ledger.held(allowance, now_ms)
            known = (second, version, allowance, held)
            self._allowances[owner.space] = known
        return known

    def _known_at_last(self, state: ContainerState, owner: Range, now_ms: int) -> Known:
        """For who comes after a commit: without the catalog, what was known before it."""
        try:
            return self._known(state, owner, now_ms)
        except DbError:
            return self._allowances.get(owner.space) or _UNLIMITED

    def _allowance(self, state: ContainerState, owner: Range, now_ms: int) -> Allowance | None:
        if self._serverless:
            return Allowance(owner.space, self._limits.serverless_ru)
        provision = self._provision(state, now_ms // 1000)
        offer = provision.offer
        if offer is None:
            return None
        if provision.shared:
            return self._shared(offer, owner)
        if offer.shares and owner.ordinal not in offer.shares:
            # It has split or merged since: we know of it, the offer we remember does not; or the
            # other way round, and the fence will tell. Then any share will do.
            self.forget(state)
            offer = self._provision(state, now_ms // 1000).offer or offer
        ordinals = [one.ordinal for one in state.table.ranges]
        shares = dict(offer.distribution(ordinals).shares)
        ru = shares.get(owner.ordinal, offer.ru / len(ordinals))
        return Allowance(owner.space, ru, self._burst and has_burst(ru))

    def heat(self, state: ContainerState) -> dict[int, PartitionHeat]:
        """How much was used lately, by all processes, by range id; what a range used before it was
        split or merged goes on in its descendants."""
        now_ms = self._engine.now_ms()
        ordinals = {one.space: one.ordinal for one in state.table.ranges}
        budgets: dict[int, float] = {}
        for owner in state.table.ranges:
            allowance = self.allowance(state, owner, now_ms)
            budgets[owner.ordinal] = 0.0 if allowance is None else allowance.ru
        former = {one.space: one.ordinal for one in state.record.former}
        wanted = dict.fromkeys(former, 0.0)
        wanted |= {space: budgets[ordinal] for space, ordinal in ordinals.items()}
        found = self._statistics.read(now_ms, wanted)
        own = {ordinals[space]: heat for space, heat in found.items() if space in ordinals}
        gone = {former[space]: heat for space, heat in found.items() if space in former}
        if not gone:
            return own
        return with_inherited(own, gone, descendants_in(state), place_in(state), budgets)

    def refusals(self, state: ContainerState) -> dict[int, int]:
        """429s by range id, of all processes, since they began, without those that were inherited:
        one number of `heat`, for who asks again and again."""
        ordinals = {one.space: one.ordinal for one in state.table.ranges}
        found = self._statistics.refusals(self._now_ms(), ordinals)
        return {ordinals[space]: count for space, count in found.items()}

    def note_query(self, state: ContainerState, text: str, ranges: int, ru: float) -> None:
        """A query whose first page cost `ru`, and how many physical partitions it has to ask.
        Counted under a number that no space has, with the query in the place of the key."""
        # To one digit: the same query is in few rows, whatever its answers weigh.
        row = orjson.dumps([ranges, float(f"{ru:.1g}"), text[:QUERY_TEXT_KEPT]])
        number = _queries_key(state)
        self._recorder.record(number, row, max(ru, 0.01), 200, 0.0, "query", self._now_ms())

    def queries(self, state: ContainerState) -> list[tuple[str, int, float]]:
        """(text, physical partitions asked, RU of its dearest page) of the dearest queries of the
        last minutes, by all processes."""
        number = _queries_key(state)
        heat = self._statistics.read(self._now_ms(), {number: 0.0}).get(number)
        found: dict[tuple[str, int], float] = {}
        for one in () if heat is None else heat.top_keys:
            ranges, ru, text = orjson.loads(one.key)
            found[text, ranges] = max(ru, found.get((text, ranges), 0.0))
        return sorted(
            ((text, ranges, ru) for (text, ranges), ru in found.items()),
            key=lambda row: (-row[1], -row[2]),
        )

    def keep_keys(self) -> None:
        """Statistics of keys and queries are about everything, not about the last minutes."""
        self._recorder.keep_keys()

    def admit_metadata(self, ru: float) -> None:
        """A request about databases, containers or throughput: one small budget for the account,
        paid at once because its price is known."""
        if not self._metadata:
            return
        now_ms = self._now_ms()
        wait_ms = self._ledger.admit(METADATA, now_ms)
        if wait_ms is not None:
            raise MetadataThrottled(retry_after_ms=wait_ms)
        self._ledger.charge(METADATA, ru, now_ms)

    def note_metadata(self, status: int) -> None:
        """A request about databases, containers or throughput. Counted under the catalog's space,
        which no container has."""
        self._recorder.record(CATALOG_SPACE, b"", 0.0, status, 0.0, "other", self._now_ms())

    def metadata(self) -> PartitionHeat | None:
        """Those requests, of all processes."""
        return self._statistics.read(self._now_ms(), {CATALOG_SPACE: 0.0}).get(CATALOG_SPACE)

    def close(self) -> None:
        if self._statistics.is_shared:
            self._recorder.flush(self._now_ms())
        self._recorder.close()
        self._ledger.close()

    def forget(self, state: ContainerState) -> None:
        """The throughput was changed here: look again at once."""
        self._provisions.pop(state.record.rid, None)
        for owner in state.table.ranges:
            self._allowances.pop(owner.space, None)

    def _provision(self, state: ContainerState, second: int) -> _Provision:
        known = self._provisions.get(state.record.rid)
        if known is not None and second < known.second + OFFER_SECONDS:
            return known
        try:
            with self._engine.read(CATALOG_SPACE) as reader:
                offer = find_offer(reader, state.record.rid)
                shared = offer is None
                if shared:
                    database = find_database(reader, state.record.database)
                    offer = None if database is None else find_offer(reader, database.rid)
        except Unavailable:
            if known is None:
                raise
            offer, shared = known.offer, known.shared  # as it last was
        fresh = _Provision(second, offer, shared)
        if len(self._provisions) >= PROVISIONS_MAX:
            self._provisions.clear()
        self._provisions[state.record.rid] = fresh
        return fresh

    def _shared(self, offer: OfferRecord, owner: Range) -> Allowance:
        """A shared database has budgets of its own, each covering a slice of the hashes; a range
        draws on the one that covers its beginning."""
        count = max(1, -(-offer.ru // self._limits.ru))
        share = min(count - 1, _position(owner.start) * count // (1 << 16))
        ru = offer.ru / count
        return Allowance(_shared_key(offer, share), ru, self._burst and has_burst(ru))


def _queries_key(state: ContainerState) -> int:
    """A number no space has, for what is counted of a container as a whole."""
    return WHOLE | int.from_bytes(blake2b(state.record.rid.encode(), digest_size=7).digest())


def _position(epk: bytes) -> int:
    """Where a hash lies between the first and the last, in 65,536 parts."""
    return min((1 << 16) - 1, int.from_bytes(epk[:2].ljust(2, b"\0"), "big") << 2)


def _shared_key(offer: OfferRecord, share: int) -> int:
    """A number no space has: spaces are counted from 1 in 31 bits."""
    owner = int.from_bytes(offer.owner.encode()[:6], "big")
    return 1 << 62 | owner << 12 | share
