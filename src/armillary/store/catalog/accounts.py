"""Databases and containers: making, changing and removing them, each step safe to be cut short.

    create container   reserve spaces (listed as orphans) → make them → one catalog row owns them
    delete container   one catalog row goes, its spaces are listed as orphans → drop them
    replace container  compare-and-set of the row → each space's fence follows → indexes are built
    again

What a crash leaves behind is in the list of orphaned spaces; `clean_up` drops those.
"""

import itertools
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any, Final

import msgspec

from armillary.budget import Budget
from armillary.encoding.documents import check_name
from armillary.encoding.etags import matches
from armillary.encoding.hashing import even_bounds
from armillary.encoding.models import MODEL_OF_API
from armillary.encoding.partition_key import check_new_paths
from armillary.encoding.rids import rid_bytes
from armillary.engine.base import CATALOG_SPACE, Command, Engine, Reader, SpaceGone
from armillary.errors import (
    BadInput,
    Conflict,
    NotFound,
    PreconditionFailed,
    SharedContainersFull,
    Stale,
    TooManyResources,
)
from armillary.limits import (
    DATABASES_AND_CONTAINERS,
    LEASE_MS,
    PHYSICAL_PARTITIONS_MAX,
    SHARED_CONTAINERS_MAX,
)
from armillary.partition.provisioning.offers import (
    check_serverless,
    check_throughput,
    minimum_throughput,
)
from armillary.partition.provisioning.partitions import (
    LIMITS,
    ContainerKind,
    PartitionLimits,
    container_kind,
    may_split,
    partitions_at_creation,
    throughput_max,
)
from armillary.partition.ranges import even_ranges
from armillary.partition.request_units import DEFAULT, Coefficients
from armillary.store.catalog import records as catalog
from armillary.store.catalog.definitions import (
    ContainerDefinition,
    check_replacement,
    parse_container,
)
from armillary.store.catalog.graphs import graph_key
from armillary.store.catalog.policies import check_policies, inherited
from armillary.store.catalog.records import (
    ContainerRecord,
    DatabaseRecord,
    Throughput,
    chosen_spaces,
    decode_container,
    decode_database,
    range_record,
)
from armillary.store.items.containers import ContainerStore
from armillary.store.items.routing import ROUNDS_MAX
from armillary.store.rows.layout import META
from armillary.store.rows.meta import Meta
from armillary.store.throughput.meter import Meter
from armillary.store.throughput.offers import find_offer
from armillary.store.upkeep.activity import Activity
from armillary.store.upkeep.containers import reindex
from armillary.store.upkeep.leases import Round

THROUGHPUT_DEFAULT: Final[Throughput] = ("manual", 400)
ORPHAN_SECONDS = 60  # an orphaned space of this age was left behind by a crash


class AccountStore:
    def __init__(
        self,
        engine: Engine,
        *,
        random: Random,
        limits: PartitionLimits = LIMITS,
        classic: bool = False,
        profile: Coefficients = DEFAULT,
        serverless: bool = False,
        meter: Meter | None = None,
        resources_max: int = DATABASES_AND_CONTAINERS,
        wait: Callable[[float], None] = time.sleep,
        range_wait: Callable[[float], None] = time.sleep,
        lease_ms: int = LEASE_MS,
    ) -> None:
        """`wait` passes the time while waiting for another process, `lease_ms` is how long such
        a one is waited for when it is silent; `range_wait` is how requests wait for a range that
        is frozen."""
        self.engine = engine
        self.limits = limits
        self.classic = classic
        self.profile = profile
        self.serverless = serverless
        self.meter = meter
        self.resources_max = resources_max
        self.activity = Activity()
        self.wait = wait
        self._range_wait = range_wait
        self.unsplittable: dict[int, int] = {}
        """Spaces that are full of one key, and their bytes when that was seen."""
        self.no_room: dict[int, int] = {}
        """Spaces of partitions for whose split the disk had no room, and when to try again."""
        self._random = random
        self._lease_ms = lease_ms
        self._rounds = itertools.count(1)
        # Not from `random`: two processes with one seed are still two.
        self.owner = f"{os.getpid()}-{secrets.token_hex(4)}"
        catalog.ensure_catalog(engine)
        self.clean_up()
        if engine.unclean_open:
            self.leap()
        engine.follow_failovers(self.leap)  # another database may take over at any time

    def container(self, database: str, name: str) -> ContainerStore:
        return ContainerStore(
            self.engine,
            database,
            name,
            random=self._random,
            logical_bytes_max=self.limits.logical_bytes,
            meter=self.meter,
            profile=self.profile,
            note_write=self.activity.note,
            wait=self._range_wait,
        )

    # --- databases ------------------------------------------------------------------------------

    def create_database(self, name: str, throughput: Throughput | None = None) -> DatabaseRecord:
        """With `throughput`, its containers share it unless they have their own."""
        check_name(name)
        self._check_throughput(throughput, "database")
        self._check_room(is_there=lambda reader: catalog.find_database(reader, name) is not None)
        row = self._run("catalog.create_database", (name, throughput, self._now_s()))
        return decode_database(row)

    def _check_room(self, is_there: Callable[[Reader], bool]) -> None:
        """What exists is a conflict, however many there are."""
        with self.engine.read(CATALOG_SPACE) as reader:
            count = catalog.count_resources(reader)
            if count < self.resources_max or is_there(reader):
                return
        raise TooManyResources(
            f"The account has {count:,} databases and containers; {self.resources_max:,} are "
            "allowed. Delete some, or raise the setting api.resources_max."
        )

    def read_database(self, name: str) -> DatabaseRecord:
        with self.engine.read(CATALOG_SPACE) as reader:
            return catalog.get_database(reader, name)

    def list_databases(self, budget: Budget | None = None) -> list[DatabaseRecord]:
        with self.engine.read(CATALOG_SPACE) as reader:
            return sorted(catalog.list_databases(reader, budget), key=lambda one: one.number)

    def delete_database(self, name: str) -> None:
        self._drop(self._run("catalog.delete_database", name))

    # --- containers -----------------------------------------------------------------------------

    def create_container(
        self,
        database: str,
        body: Any,
        *,
        throughput: Throughput | None = None,
        physical_partitions: int | None = None,
        fixed: bool = False,
        api: str = "nosql",
    ) -> ContainerRecord:
        """Without `throughput` it shares the database's, or gets the smallest of its own. The
        number of physical partitions follows from the throughput unless it is given. `fixed`: asked
        for as one that never grows, which it then is below 1,000 RU/s. `api`: whose value model it
        has (`encoding/models.py`), for ever.
        """
        definition = parse_container(body)
        check_policies(definition.document)
        check_new_paths(definition.partition_key)
        if api == "gremlin":
            graph_key(definition.partition_key)
        self._check_throughput(throughput, "container")
        self._check_room(
            is_there=lambda reader: (
                catalog.find_container(reader, database, definition.id) is not None
            )
        )
        # The containers of 2018 were fixed or unlimited by what was asked for at creation.
        fixed = fixed or (self.classic and throughput is not None)
        throughput, count, kind = self._provision(database, definition, throughput, fixed)
        physical_partitions = count if physical_partitions is None else physical_partitions
        _check_partitions(kind, physical_partitions)
        now_s = self._now_s()
        spaces, rid = self._run(
            "catalog.reserve_spaces",
            (
                database,
                definition.id,
                physical_partitions,
                now_s,
                chosen_spaces(self.engine, physical_partitions),
            ),
        )
        # A deleted container of this name may still have its spaces, when its deleter is slow or
        # died. A process with an old route would go on writing there, and lose it.
        self._drop_orphans(before_s=1)
        bounds = even_bounds(definition.partition_key, physical_partitions)
        ranges = even_ranges(bounds, spaces)
        for one in ranges:
            meta = Meta(rid_bytes(rid), one.ordinal, start=one.start, end=one.end)
            self.engine.create_space(one.space, [(META, meta.pack())])
        record = ContainerRecord(
            id=definition.id,
            rid=rid,
            database=database,
            definition=definition.document,
            ranges=tuple(map(range_record, ranges)),
            policies={1: definition.policy(MODEL_OF_API[api]).decode()},
            ordinals=len(ranges),
            fixed=kind == "fixed" and not definition.partition_key.system_key,
            api=msgspec.UNSET if api == "nosql" else api,
        )
        try:
            data = (msgspec.json.encode(record), throughput, now_s)
            row = self._run("catalog.create_container", data)
        except (Conflict, NotFound, PreconditionFailed):
            # Refused, so the spaces are orphans. After any other error they may be the container's
            # own: if not, `clean_up` finds them.
            self._drop([one.space for one in ranges])
            raise
        return decode_container(row)

    def read_container(self, database: str, name: str) -> ContainerRecord:
        with self.engine.read(CATALOG_SPACE) as reader:
            record = catalog.find_container(reader, database, name)
        if record is None:
            raise NotFound
        return record

    def list_containers(self, database: str, budget: Budget | None = None) -> list[ContainerRecord]:
        with self.engine.read(CATALOG_SPACE) as reader:
            records = catalog.list_containers(reader, database, budget)
        return sorted(records, key=lambda one: rid_bytes(one.rid))  # in the order of creation

    def replace_container(
        self, database: str, body: Any, *, if_match: str | None = None, build: bool = True
    ) -> ContainerRecord:
        """New settings for a container, known to all its ranges when this returns. Index entries
        are built again before, or (without `build`) by the housekeeper."""
        asked = parse_container(body)
        check_policies(asked.document)
        for _ in range(ROUNDS_MAX):
            current = self.read_container(database, asked.id)
            new = parse_container(inherited(body, current.definition))
            if if_match is not None and not matches(if_match, current.etag):
                raise PreconditionFailed
            record = msgspec.json.encode(_with_definition(current, new))
            try:
                row = self._run("catalog.replace_container", (record, self._now_s()))
            except Stale:  # a split or merge changed the row; the definition is still ours to set
                continue
            store = self.container(database, new.id)
            reindex(store, lambda: build)
            if not build:
                store.note_write()
            return decode_container(row)
        raise Stale

    def close_container(self, database: str, name: str, successor: str | None) -> None:
        """Nothing more is written to a container, in any process, when this returns: `successor`
        has its items. None opens it again. The settings of a container are part of its fence, so a
        write that was on its way meets the new ones."""
        closed = msgspec.UNSET if successor is None else successor
        for _ in range(ROUNDS_MAX):
            current = self.read_container(database, name)
            if current.closed != closed:
                changed = replace(current, closed=closed, settings=current.settings + 1)
                data = (msgspec.json.encode(changed), self._now_s())
                try:
                    self._run("catalog.replace_container", data)
                except Stale:  # a split or merge changed the row
                    continue
            reindex(self.container(database, name), lambda: False)
            return
        raise Stale

    def delete_container(self, database: str, name: str) -> None:
        self._drop(self._run("catalog.delete_container", (database, name)))

    # --- inside ---------------------------------------------------------------------------------

    def round(self) -> Round:
        """The leases for a round of background work."""
        owner = f"{self.owner}-{next(self._rounds)}"
        return Round(self.engine, owner, lease_ms=self._lease_ms)

    def clean_up(self, may: Callable[[], bool] = lambda: True) -> None:
        """Drop the spaces that a crash left without an owner."""
        self._drop_orphans(self._now_s() - ORPHAN_SECONDS, may)

    def _drop_orphans(self, before_s: int, may: Callable[[], bool] = lambda: True) -> None:
        with self.engine.read(CATALOG_SPACE) as reader:
            spaces = catalog.orphans(reader, before_s)
        if spaces and may():
            self._drop(spaces)

    def leap(self, run: Callable[[int, Command], Any] | None = None) -> int:
        """What clients know of this account may be newer than the account itself: go on above it.
        Gives the number of physical partitions."""
        run = run or self.engine.run
        count = 0
        for database in self.list_databases():
            for record in self.list_containers(database.id):
                for one in record.ranges:
                    with suppress(SpaceGone):
                        run(one.space, Command("items.leap", None))
                        count += 1
        self.engine.leapt()
        return count

    def _drop(self, spaces: list[int]) -> None:
        for space in spaces:
            self.engine.drop_space(space)
        self._run("catalog.forget_spaces", spaces)

    def _run(self, name: str, data: Any) -> Any:
        return self.engine.run(CATALOG_SPACE, Command(name, data))

    def _now_s(self) -> int:
        return self.engine.now_ms() // 1000

    def _provision(
        self,
        database: str,
        definition: ContainerDefinition,
        asked: Throughput | None,
        fixed: bool,
    ) -> tuple[Throughput | None, int, ContainerKind]:
        """(throughput of its own, physical partitions, what it behaves as)."""
        has_key = not definition.partition_key.system_key
        if self.serverless:
            return None, 1, container_kind(fixed=not has_key, has_key=has_key, ru=0)
        if asked is None:
            with self.engine.read(CATALOG_SPACE) as reader:
                owner = catalog.find_database(reader, database)
                offer = None if owner is None else find_offer(reader, owner.rid)
                sharing = 0
                if offer is not None:
                    sharing = sum(
                        find_offer(reader, one.rid) is None
                        for one in catalog.list_containers(reader, database)
                    )
            if offer is not None:
                if definition.partition_key.system_key:
                    raise BadInput("A container that shares throughput needs a partition key.")
                if sharing >= SHARED_CONTAINERS_MAX:
                    raise SharedContainersFull
                count = partitions_at_creation(offer.ru, offer.kind, shared=True, of=self.limits)
                return None, count, "unlimited"
            asked = THROUGHPUT_DEFAULT
        offer_kind, ru = asked
        kind = container_kind(fixed=fixed or not has_key, has_key=has_key, ru=ru)
        most = throughput_max(kind, of=self.limits)
        if ru > most:
            raise BadInput(f"A container without a partition key serves at most {most:,} RU/s.")
        if not may_split(kind):
            return asked, 1, kind
        count = partitions_at_creation(ru, offer_kind, classic=self.classic, of=self.limits)
        return asked, count, kind

    def _check_throughput(self, throughput: Throughput | None, kind: str) -> None:
        if self.serverless:
            check_serverless(throughput, kind)
        if throughput is not None:
            offer_kind, ru = throughput
            check_throughput(ru, offer_kind, minimum=minimum_throughput(offer_kind))


def _check_partitions(kind: ContainerKind, count: int) -> None:
    if not 1 <= count <= PHYSICAL_PARTITIONS_MAX:
        raise BadInput(
            f"A container can start with 1 to {PHYSICAL_PARTITIONS_MAX} physical partitions, "
            f"not {count}."
        )
    if not may_split(kind) and count > 1:
        raise BadInput(
            "A fixed container has one physical partition and never grows. "
            "Give it a partition key, and 1,000 RU/s or more."
        )


def _with_definition(current: ContainerRecord, new: ContainerDefinition) -> ContainerRecord:
    old = parse_container(current.definition)
    check_replacement(old, new)
    record = replace(current, definition=new.document, settings=current.settings + 1)
    policy = new.policy(current.model_name).decode()
    if current.policies[current.policy] == policy:
        return record
    version = current.policy + 1
    policies = current.policies | {version: policy}
    return replace(record, policy=version, policies=policies)
