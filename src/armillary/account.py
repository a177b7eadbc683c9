"""The account in process: `armillary.open(…)` gives one, and from it databases and containers.

    account = armillary.open("./data")  # or ":memory:", or "postgresql://…"
    shop = account.create_database("shop")
    orders = shop.create_container("orders", partition_key="/customerId")
    orders.create_item({"id": "1", "customerId": "ada", "total": 12.5})
    orders.read_item("1", partition_key="ada")

Everything may be called from several threads, and several processes may open one folder.
`container.py` has the operations on items; this module has what holds them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from armillary.clock import Clock, new_random
from armillary.container import Container
from armillary.engine.address import parse_address
from armillary.engine.base import Durability
from armillary.engine.opening import open_engine
from armillary.errors import BadInput, Conflict, NotFound
from armillary.keys import SyntheticKey
from armillary.limits import (
    CLASSIC_BYTES_MAX,
    LOGICAL_BYTES_MAX,
    PARTITION_BYTES_MAX,
    PARTITION_RU_MAX,
)
from armillary.partition.budgets.ledger import Ledger
from armillary.partition.provisioning.offers import requested
from armillary.partition.provisioning.partitions import PartitionLimits
from armillary.partition.request_units import PROFILES
from armillary.query.sql.computed import check_computed
from armillary.scripts.lazy import LazyRuntime
from armillary.store.catalog.accounts import AccountStore
from armillary.store.commands import CODECS_PATH, HANDLERS, HANDLERS_PATH
from armillary.store.migration import rekey as rekeying
from armillary.store.migration.rekey import RekeyProgress, RekeyReport
from armillary.store.opening import open_store
from armillary.store.rows.layout import PACKED, SEALED
from armillary.store.throughput.meter import Enforce
from armillary.store.upkeep.housekeeper import Housekeeper, settle
from armillary.values import JSON

T = TypeVar("T")


Writer: TypeAlias = Literal["thread", "process"]


def open_account(
    address: str | Path,
    *,
    durability: Durability = "full",
    clock: Clock | None = None,
    seed: int | None = None,
    partition_bytes: int | None = None,
    partition_ru: int = PARTITION_RU_MAX,
    logical_bytes: int | None = None,
    enforce: Enforce = "off",
    burst: bool = False,
    serverless: bool = False,
    profile: str = "default",
    housekeeping: bool = True,
    writer: Writer = "thread",
) -> Account:
    """Open an account, making it if it is new.

    `address` is a folder, `":memory:"`, or a `postgresql://` URL. `durability="relaxed"` is quicker
    and loses the last writes when the machine dies; use it for throw-away data. `clock` and `seed`
    make a run repeatable.

    `partition_bytes` and `partition_ru` are what a physical partition holds and serves before it
    splits, `logical_bytes` the size limit of one partition key value (50 GB and 20 GB; 10 GB both
    under the profile "classic"); lower them to watch splits on a laptop. With `enforce="on"`
    requests above the provisioned throughput are refused, as in the cloud; a `serverless` account
    has no provisioned throughput, each physical partition serves half of `partition_ru`. With
    `housekeeping` a background thread splits partitions and removes expired items; without it, call
    `settle` when you want that done.

    `writer="process"` writes a folder in a process of its own, so that `bulk` prepares on one core
    and writes on another. It takes a moment to start, and the main module of the program has to be
    one that can be imported (`if __name__ == "__main__":`).
    """
    if writer not in get_args(Writer):
        raise BadInput(f"The writer is a thread or a process, not {writer!r}.")
    if writer == "process" and clock is not None:
        raise BadInput("A writer process has the clock of the system.")
    if profile not in PROFILES:
        raise BadInput(f"The profile is {' or '.join(PROFILES)}, not {profile!r}.")
    classic = CLASSIC_BYTES_MAX if profile == "classic" else None
    limits = PartitionLimits(
        partition_bytes or classic or PARTITION_BYTES_MAX,
        partition_ru,
        logical_bytes or classic or LOGICAL_BYTES_MAX,
    )
    engine = open_engine(
        address,
        HANDLERS,
        durability=durability,
        clock=clock,
        packed=PACKED,
        sealed=SEALED,
        writer_process=(HANDLERS_PATH, CODECS_PATH) if writer == "process" else None,
    )
    try:
        where = parse_address(address)
        store, ledger = open_store(
            engine,
            where,
            random=new_random(seed),
            limits=limits,
            enforce=enforce,
            metered=enforce != "off",
            burst=burst,
            serverless=serverless,
            profile=profile,
            stopwatch=perf_counter if clock is None else None,
            wait=time.sleep if clock is None or not where.is_local else clock.sleep,
        )
        return Account(store, housekeeping, ledger)
    except BaseException:
        engine.close()
        raise


class Account:
    """Databases by name. Close it, or use it in a `with` block."""

    def __init__(
        self, store: AccountStore, housekeeping: bool, ledger: Ledger | None = None
    ) -> None:
        self._store = store
        self._engine = store.engine
        self._scripts = LazyRuntime()
        self._housekeeper = Housekeeper(store, ledger=ledger) if housekeeping else None

    @property
    def store(self) -> AccountStore:
        """What the protocols stand on: to put an API over an account in process."""
        return self._store

    def settle(self) -> None:
        """Do now what is done in the background: splits, scaling, expiry, upkeep of indexes. What
        another process is doing is waited for."""
        settle(self._store)

    def create_database(
        self, id: str, *, throughput: int | None = None, autoscale_max: int | None = None
    ) -> Database:
        """With throughput of its own, its containers share it unless they bring theirs."""
        self._store.create_database(id, requested(throughput, autoscale_max))
        return Database(self._store, id, self._scripts)

    def create_database_if_not_exists(self, id: str) -> Database:
        try:
            return self.database(id)
        except NotFound:
            pass
        try:
            return self.create_database(id)
        except Conflict as refusal:
            return _there_now(lambda: self.database(id), refusal)

    def database(self, id: str) -> Database:
        """The database of that name; NotFound if there is none."""
        self._store.read_database(id)
        return Database(self._store, id, self._scripts)

    def databases(self) -> list[str]:
        return [one.id for one in self._store.list_databases()]

    def delete_database(self, id: str) -> None:
        self._store.delete_database(id)

    def backup(self, folder: str | Path) -> None:
        """A consistent copy into a new folder while reads and writes go on. Open it to restore."""
        self._engine.backup(Path(folder))

    def close(self) -> None:
        self._scripts.close()
        if self._housekeeper is not None:
            self._housekeeper.close()
            self._housekeeper = None
        if self._store.meter is not None:
            self._store.meter.close()
        self._engine.close()

    def __enter__(self) -> Account:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Database:
    """Containers by name."""

    def __init__(self, store: AccountStore, id: str, scripts: LazyRuntime | None = None) -> None:
        self._store = store
        self._scripts = scripts
        self.id = id

    def create_container(
        self,
        id: str,
        partition_key: str | Sequence[str] | dict[str, JSON] | None = None,
        *,
        indexing_policy: dict[str, JSON] | None = None,
        unique_keys: Sequence[Sequence[str]] = (),
        default_ttl: int | None = None,
        synthetic_key: SyntheticKey | dict[str, JSON] | None = None,
        change_feed_retention_minutes: int | None = None,
        computed_properties: Sequence[dict[str, JSON]] = (),
        throughput: int | None = None,
        autoscale_max: int | None = None,
        physical_partitions: int | None = None,
        fixed: bool = False,
        api: str = "nosql",
    ) -> Container:
        """A new container.

        `partition_key` is a path (`"/customerId"`), several for a hierarchical key, or a whole
        definition `{"paths", "kind", "version"}`. With a `synthetic_key` it may be left out. A
        container without any key is a fixed one: one physical partition that never grows. So is one
        with a key that was asked for as `fixed` with less than 1,000 RU/s of its own, as containers
        of 2018 were; with more it behaves as any other. `api` ("nosql", "table", "mongo",
        "gremlin") says what its values mean, for ever.
        """
        body: dict[str, Any] = {"id": id} | keys_of(partition_key, synthetic_key)
        if indexing_policy is not None:
            body["indexingPolicy"] = indexing_policy
        if unique_keys:
            body["uniqueKeyPolicy"] = {"uniqueKeys": [{"paths": list(one)} for one in unique_keys]}
        if default_ttl is not None:
            body["defaultTtl"] = default_ttl
        if change_feed_retention_minutes is not None:
            body["changeFeedPolicy"] = {"retentionDuration": change_feed_retention_minutes}
        if computed_properties:
            body["computedProperties"] = list(computed_properties)
            check_computed(body)
        self._store.create_container(
            self.id,
            body,
            throughput=requested(throughput, autoscale_max),
            physical_partitions=physical_partitions,
            fixed=fixed,
            api=api,
        )
        return self._container(id)

    def create_container_if_not_exists(
        self, id: str, partition_key: str | Sequence[str] | dict[str, JSON], **options: Any
    ) -> Container:
        try:
            return self.container(id)
        except NotFound:
            pass
        try:
            return self.create_container(id, partition_key, **options)
        except Conflict as refusal:
            return _there_now(lambda: self.container(id), refusal)

    def container(self, id: str) -> Container:
        """The container of that name; NotFound if there is none."""
        self._store.read_container(self.id, id)
        return self._container(id)

    def containers(self) -> list[str]:
        return [one.id for one in self._store.list_containers(self.id)]

    def replace_container(self, id: str, **changes: JSON) -> Container:
        """Change `indexingPolicy`, `defaultTtl`, `changeFeedPolicy` and the like; None removes one.
        The indexes are built again before this returns."""
        body = dict(self._store.read_container(self.id, id).definition)
        for name, value in changes.items():
            if value is None:
                body.pop(name, None)
            else:
                body[name] = value
        check_computed(body)
        self._store.replace_container(self.id, body)
        return self._container(id)

    def rekey(
        self,
        source: str,
        target: str,
        partition_key: str | Sequence[str] | dict[str, JSON] | None = None,
        *,
        synthetic_key: SyntheticKey | dict[str, JSON] | None = None,
        throughput: int | None = None,
        autoscale_max: int | None = None,
        cut_over: bool = False,
        progress: Callable[[RekeyProgress], None] = lambda progress: None,
        **changes: JSON,
    ) -> RekeyReport:
        """Copy the container `source` into a new one, `target`, with another partition key, while
        the source is used. `changes` replace settings that the target takes over from the source,
        such as `indexingPolicy`. After a crash the same call goes on where it was. Items that find
        no place, because another one has their id and new key, are in the report's `left`.

        `cut_over`: when the target has caught up, the source is closed for writing, the last
        changes are brought over and both sides compared; it stays closed (`reopen_container`)
        unless they differ. Without it, what is written to the source after the last look is not in
        the target.
        """
        body: dict[str, JSON] = {"id": target, **changes}
        body |= keys_of(partition_key, synthetic_key)
        return rekeying.rekey(
            self._store,
            self.id,
            source,
            body,
            throughput=requested(throughput, autoscale_max),
            cut_over=cut_over,
            progress=progress,
        )

    def reopen_container(self, id: str) -> None:
        """Let a container be written to again that a `rekey` with `cut_over` has closed."""
        self._store.close_container(self.id, id, None)

    def delete_container(self, id: str) -> None:
        self._store.delete_container(self.id, id)

    def _container(self, id: str) -> Container:
        store = self._store.container(self.id, id)
        return Container(store, self._store.limits, self._scripts)


def _there_now(read: Callable[[], T], refusal: Conflict) -> T:
    """Somebody else was quicker; or the account is full, which is what the caller must hear."""
    try:
        return read()
    except NotFound:
        raise refusal from None


def keys_of(
    partition_key: str | Sequence[str] | dict[str, JSON] | None,
    synthetic_key: SyntheticKey | dict[str, JSON] | None,
) -> dict[str, JSON]:
    """The part of a container's definition that says how items are spread."""
    body: dict[str, Any] = {}
    if isinstance(synthetic_key, SyntheticKey):
        synthetic_key = synthetic_key.to_json()
    if synthetic_key is not None:
        body["syntheticKey"] = synthetic_key
        partition_key = partition_key or synthetic_key.get("path")
    if partition_key is not None:
        body["partitionKey"] = _key_definition(partition_key)
    return body


def _key_definition(key: str | Sequence[str] | dict[str, JSON]) -> dict[str, JSON]:
    if isinstance(key, dict):
        return key
    if isinstance(key, str):
        return {"paths": [key], "kind": "Hash", "version": 2}
    if not key:
        raise BadInput("A hierarchical partition key needs at least one path.")
    return {"paths": list(key), "kind": "MultiHash", "version": 2}
