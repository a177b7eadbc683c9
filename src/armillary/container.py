"""A container in process: the operations on its items.

Names and shapes follow the official Python SDK where it has them: items go in as dicts (or JSON
bytes) and come out as dicts, batches are lists of `(kind, arguments, options)`. Errors are those of
`armillary.errors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias, TypedDict, Unpack

import orjson

from armillary import change_feed
from armillary.change_feed import FeedMode, FeedPage, FeedRange, FeedStart
from armillary.encoding.documents import EPK_AT, EPK_LENGTH_AT, Source
from armillary.encoding.partition_key import KeyValues, coerce
from armillary.errors import BadInput, BatchFailed, DbError, NotFound
from armillary.keys import SyntheticKey
from armillary.limits import PAGE_ITEMS_DEFAULT
from armillary.partition.provisioning.merging import MergePlan
from armillary.partition.provisioning.partitions import LIMITS, ContainerKind, PartitionLimits
from armillary.partition.usage.consumption import PartitionHeat, find_hot
from armillary.partition.usage.heat import HotRange
from armillary.query.run.sql import QueryPage, run_query
from armillary.scripts.lazy import LazyRuntime
from armillary.scripts.scripts import Scripts
from armillary.store.items import paging
from armillary.store.items.batches import batch_error
from armillary.store.items.bulk import few_collections
from armillary.store.items.containers import ContainerStore
from armillary.store.items.positions import Kind, decode_position, encode_position
from armillary.store.items.preparation import Operation, Predicate
from armillary.store.items.requests import Done, Failed
from armillary.store.moves import merges
from armillary.store.moves import runner as moves
from armillary.store.reports import heat as heat_report
from armillary.store.reports import statistics
from armillary.store.reports.statistics import LogicalPartitionStatistics, PartitionStatistics
from armillary.store.reports.usage import UsageReport, usage_report
from armillary.store.throughput import provisioned as throughput
from armillary.store.throughput.autoscale import Autoscale, autoscale, container_levels
from armillary.store.throughput.offers import OfferRecord
from armillary.store.upkeep.containers import delete_by_key
from armillary.values import JSON

Item: TypeAlias = dict[str, JSON]
Patch: TypeAlias = Sequence[Mapping[str, JSON]]


class _Omitted(Enum):
    """Not given, which is something else than None: None is the partition key value null."""

    OMITTED = "omitted"


OMITTED: Final = _Omitted.OMITTED


class NamedTriggers(TypedDict, total=False):
    """Triggers that run with a write, in its transaction."""

    pre_trigger: str
    post_trigger: str


@dataclass(frozen=True, slots=True)
class ItemPage:
    items: list[Item]
    continuation: str | None


class Container:
    def __init__(
        self,
        store: ContainerStore,
        limits: PartitionLimits = LIMITS,
        scripts: LazyRuntime | None = None,
    ) -> None:
        self._store = store
        self._limits = limits
        self._runtime = scripts or LazyRuntime()
        self._runtime.serve_queries(store)

    @property
    def id(self) -> str:
        return self._store.name

    @property
    def kind(self) -> ContainerKind:
        """Fixed: it has one physical partition and never grows."""
        return "fixed" if self._store.refresh().is_fixed else "unlimited"

    def properties(self) -> dict[str, JSON]:
        """The definition as it goes out, with every default filled in."""
        record = self._store.refresh().record
        system = {
            "_rid": record.rid,
            "_self": self._store.state.self_link,
            "_etag": f'"{record.etag}"',
            "_ts": record.ts,
        }
        return record.definition | system

    @property
    def scripts(self) -> Scripts:
        """Stored procedures, triggers and functions: keep them and run them."""
        return Scripts(self._store, self._runtime)

    # --- single items ---------------------------------------------------------------------------

    def create_item(
        self, body: Source, *, partition_key: Any = OMITTED, **triggers: Unpack[NamedTriggers]
    ) -> Item:
        """A new item. Conflict if its logical partition has the id already."""
        return self._write(Operation("create", body=body), partition_key, **triggers)

    def upsert_item(
        self,
        body: Source,
        *,
        partition_key: Any = OMITTED,
        if_match: str | None = None,
        **triggers: Unpack[NamedTriggers],
    ) -> Item:
        """Create the item, or replace the one with its id."""
        operation = Operation("upsert", body=body, if_match=if_match)
        return self._write(operation, partition_key, **triggers)

    def replace_item(
        self,
        id: str,
        body: Source,
        *,
        partition_key: Any = OMITTED,
        if_match: str | None = None,
        **triggers: Unpack[NamedTriggers],
    ) -> Item:
        """Replace the item `id`. The body may carry another id, which renames it."""
        operation = Operation("replace", id=id, body=body, if_match=if_match)
        return self._write(operation, partition_key, **triggers)

    def patch_item(
        self,
        id: str,
        partition_key: Any,
        operations: Patch,
        *,
        condition: Predicate | None = None,
        if_match: str | None = None,
    ) -> Item:
        """Change parts of an item, all or nothing: add, set, replace, remove, incr, move. With a
        `condition`, only if it is true for the item."""
        operation = Operation(
            "patch", id=id, patch=tuple(operations), condition=condition, if_match=if_match
        )
        return self._write(operation, partition_key)

    def delete_item(
        self,
        id: str,
        partition_key: Any,
        *,
        if_match: str | None = None,
        **triggers: Unpack[NamedTriggers],
    ) -> None:
        operation = Operation("delete", id=id, if_match=if_match)
        if triggers:
            self._triggered(operation, coerce(partition_key), **triggers)
        else:
            self._store.run(operation, coerce(partition_key))

    def read_item(
        self, id: str, partition_key: Any = OMITTED, *, known: Mapping[str, JSON] | None = None
    ) -> Item:
        """The item. On a container with a synthetic key, `known` properties may stand for the key:
        a key that they determine is one point read; an unknown suffix costs one per candidate."""
        if known is not None:
            return self._read_known(id, known)
        item: Item = orjson.loads(self.read_item_bytes(id, partition_key))
        return item

    def read_item_bytes(self, id: str, partition_key: Any) -> bytes:
        """The item's JSON as it lies in the store."""
        if type(partition_key) is str:
            value = self._store.read_placed(id, (partition_key,))[0]
        elif partition_key is OMITTED:
            raise BadInput("PartitionKey value must be supplied for this operation.")
        else:
            value = self._store.read_placed(id, coerce(partition_key))[0]
        return value[EPK_AT + value[EPK_LENGTH_AT] :]

    def _read_known(self, id: str, known: Mapping[str, JSON]) -> Item:
        candidates = self._synthetic_key().candidates(known)
        found = self.read_many([(id, key) for key in candidates])
        if not found:
            raise NotFound
        return found[0]

    # --- many items -----------------------------------------------------------------------------

    def read_many(self, items: Iterable[tuple[str, Any]]) -> list[Item]:
        """The items there are of these (id, partition key) pairs, in their order."""
        wanted = [(id, coerce(key)) for id, key in items]
        found = self._store.read_many(wanted)
        return [orjson.loads(one.text) for one in found if one is not None]

    def read_group(self, known: Mapping[str, JSON]) -> Iterator[Item]:
        """All items of a synthetic key's group: every suffix that the known stem may have."""
        for key in self._synthetic_key().group(known):
            yield from self.read_all_items(partition_key=key)

    def read_all_items(
        self, *, partition_key: Any = OMITTED, page_size: int = PAGE_ITEMS_DEFAULT
    ) -> Iterator[Item]:
        """Every item of the container, or of one logical partition."""
        continuation: str | None = None
        while True:
            page = self.read_page(
                partition_key=partition_key, max_items=page_size, continuation=continuation
            )
            yield from page.items
            if page.continuation is None:
                return
            continuation = page.continuation

    def read_page(
        self,
        *,
        partition_key: Any = OMITTED,
        max_items: int = PAGE_ITEMS_DEFAULT,
        continuation: str | None = None,
    ) -> ItemPage:
        """One page; go on with its continuation until that is None. A page may be empty."""
        limit = paging.check_page_size(max_items, PAGE_ITEMS_DEFAULT)
        kind: Kind = "items" if partition_key is OMITTED else "key"
        position = None if continuation is None else decode_position(continuation, [kind])
        if partition_key is OMITTED:
            page = paging.read_items(self._store, position, limit)
        else:
            key = coerce(partition_key)
            page = paging.read_items_of_key(self._store, key, position, limit)
        following = encode_position(page.position) if page.position is not None else None
        return ItemPage([orjson.loads(one.text) for one in page.items], following)

    def delete_all_items_by_partition_key(self, partition_key: Any) -> int:
        """Delete a whole logical partition. How many items it had."""
        return delete_by_key(self._store, coerce(partition_key))

    def execute_item_batch(
        self, operations: Sequence[Sequence[Any]], partition_key: Any
    ) -> list[Item | None]:
        """All or nothing in one logical partition: up to 100 operations such as
        `("create", (item,))`, `("replace", (id, item), {"if_match": etag})`,
        `("patch", (id, operations), {"condition": predicate})`, `("read", (id,))`.
        When one fails nothing happens, and BatchFailed says which and why."""
        asked = [_operation(*one) for one in operations]
        result = self._store.batch(asked, coerce(partition_key))
        if isinstance(result, Failed):
            error = batch_error(result)
            raise BatchFailed(
                f"Operation {result.position} of the batch failed, so nothing was changed: {error}",
                position=result.position,
                operations=len(asked),
            ) from error
        return [orjson.loads(done.text) if done.text else None for done in result]

    def bulk(
        self, operations: Iterable[Sequence[Any]], partition_key: Any = OMITTED
    ) -> list[Item | DbError | None]:
        """Many independent operations, quickly. Each stands for itself: its answer is the item,
        None for a delete, or the error. Operations that need a key besides their body (delete,
        read, patch) take it from their options: `("delete", (id,), {"partition_key": "ada"})`."""
        wrong: list[BadInput | None] = []

        def asked() -> Iterator[tuple[Operation, KeyValues | None]]:
            for one in operations:
                made = _bulk_operation(one, partition_key)
                wrong.append(made if isinstance(made, BadInput) else None)
                if not isinstance(made, BadInput):
                    yield made

        with few_collections:
            done = self._store.start_bulk(asked(), wants_items=True)
            return [_answer(next(done) if one is None else one) for one in wrong]

    def upsert_all(self, items: Iterable[Source]) -> list[DbError | None]:
        """Many upserts, quickly; for each the error that refused it, or None. As `bulk`, without
        the items as they are stored."""
        with few_collections:
            return list(self.start_upserts(items))

    def start_upserts(self, items: Iterable[Source]) -> Iterator[DbError | None]:
        """The same without waiting: all are on their way when this returns, and the answers are
        there as they come."""
        asked = ((Operation("upsert", body=one), None) for one in items)
        done = self._store.start_bulk(asked, wants_text=False)
        return (one if isinstance(one, DbError) else None for one in done)

    # --- queries --------------------------------------------------------------------------------

    def query(
        self,
        query: str,
        parameters: Mapping[str, JSON] | Sequence[Mapping[str, JSON]] | None = None,
        *,
        partition_key: Any = OMITTED,
        page_size: int = -1,
    ) -> Iterator[JSON]:
        """The rows of a query over the container, or over one partition key (or the beginning of a
        hierarchical one). Parameters are `{"@name": value}`, or a list of `{"name", "value"}`."""
        continuation: str | None = None
        while True:
            page = self.query_page(
                query,
                parameters,
                partition_key=partition_key,
                max_items=page_size,
                continuation=continuation,
            )
            yield from page.rows
            if page.continuation is None:
                return
            continuation = page.continuation

    def query_page(
        self,
        query: str,
        parameters: Mapping[str, JSON] | Sequence[Mapping[str, JSON]] | None = None,
        *,
        partition_key: Any = OMITTED,
        max_items: int = PAGE_ITEMS_DEFAULT,
        continuation: str | None = None,
    ) -> QueryPage:
        """One page, with its plan, its charge and what it did; go on with its continuation until
        that is None. A page may be empty."""
        return run_query(
            self._store,
            query,
            _parameters(parameters),
            partition_key=None if partition_key is OMITTED else coerce(partition_key),
            continuation=continuation,
            max_items=max_items,
        )

    # --- the change feed ------------------------------------------------------------------------

    def read_change_feed(
        self,
        *,
        continuation: str | None = None,
        start: FeedStart = "beginning",
        mode: FeedMode = "latest",
        partition_key: Any = OMITTED,
        feed_range: FeedRange | None = None,
        max_items: int = PAGE_ITEMS_DEFAULT,
    ) -> FeedPage:
        """One page of changes. Go on with its continuation, for ever; `at_end` says that there was
        nothing newer. In mode "all_versions" each entry is `{"current", "metadata"}`."""
        key = None if partition_key is OMITTED else coerce(partition_key)
        return change_feed.read_page(
            self._store, continuation, start, mode, key, feed_range, max_items
        )

    def feed_ranges(self) -> list[FeedRange]:
        """One for each physical partition."""
        return change_feed.feed_ranges(self._store)

    # --- how it is spread -----------------------------------------------------------------------

    def partitions(self) -> list[PartitionStatistics]:
        """The physical partitions, with their items and bytes."""
        return statistics.partitions(self._store)

    def logical_partitions(self, top: int = 20) -> list[LogicalPartitionStatistics]:
        """The largest partition key values."""
        return statistics.logical_partitions(self._store, top)

    def heat(self) -> dict[str, PartitionHeat]:
        """Request units, refusals, latency and top keys of each physical partition lately; empty
        unless the account was opened with `enforce` on or report."""
        meter = self._store.meter
        if meter is None:
            return {}
        return {str(ordinal): one for ordinal, one in meter.heat(self._store.refresh()).items()}

    def usage(self) -> UsageReport:
        """Heaviest keys, what queries have to ask, refusals, dearest requests; as `heat`, without
        most of its numbers unless the account was opened with `enforce` on or report."""
        return usage_report(self._store)

    def heat_report(self) -> dict[str, JSON]:
        """All that a picture of the container shows, as `GET …/heat` of a server tells it."""
        return heat_report.as_json(heat_report.heat_report(self._store, self._limits))

    def read_throughput(self) -> OfferRecord:
        """What is provisioned for this container alone; NotFound when it shares its database's."""
        return throughput.read_offer(self._store.engine, self._store.refresh().record.rid)

    def replace_throughput(self, ru: int) -> OfferRecord:
        """Ask for other RU/s (autoscale: another maximum). Above what the physical partitions can
        serve they are split first, in the background or by `Account.settle`; until then the answer
        has a `pending` operation, and another change is refused.
        """
        offer = throughput.change_throughput(self._store, ru, of=self._limits)
        self._store.note_write()
        return offer

    def redistribute_throughput(self, shares: Mapping[str | int, float]) -> OfferRecord:
        """RU/s for some physical partitions by themselves; the others keep what they have, and the
        container's total becomes the sum. One above its limit (up to twice of it) splits first, as
        in `replace_throughput`. Until `distribute_evenly` the total can't be changed.
        """
        wanted = {int(partition): ru for partition, ru in shares.items()}
        offer = throughput.redistribute_throughput(self._store, wanted, of=self._limits)
        self._store.note_write()
        return offer

    def distribute_evenly(self) -> OfferRecord:
        """Each physical partition gets an equal part of the same total again."""
        return throughput.evenly_distribute(self._store)

    def read_autoscale(self) -> Autoscale:
        """Where an autoscale container is between a tenth of its maximum and the maximum, and what
        its hours are billed. BadInput when its throughput is set by hand."""
        offer = self.read_throughput()
        if offer.kind != "autoscale":
            raise BadInput("The throughput of this container is manual, not autoscale.")
        return autoscale(self._store.engine, offer, container_levels(self._store, offer))

    def hot_partitions(self) -> list[HotRange]:
        """Physical partitions at the end of their budget while the others are not, over the last
        hour, and what can be done about it; empty without metering, as `heat`."""
        meter = self._store.meter
        return [] if meter is None else find_hot(meter.heat(self._store.refresh()))

    def plan_merge(self) -> MergePlan:
        """What `merge_partitions` would do now, without doing it. Empty when there is nothing to
        gain, or when the physical partitions have too much throughput or data for it."""
        return merges.what_if(self._store, of=self._limits)

    def merge_partitions(self) -> MergePlan:
        """Merge neighbours until there are as few physical partitions as throughput and data need.
        Reads and writes go on. More throughput or other settings meanwhile cancel what is left."""
        return merges.merge(self._store, of=self._limits)

    def split(self, partition: str | int) -> None:
        """Split a physical partition in two at half of its bytes, now. Reads and writes go on."""
        moves.begin_split(self._store, int(partition)).run()

    def merge(self, partitions: Sequence[str | int]) -> None:
        """Merge neighbouring physical partitions into one, now. Reads and writes go on."""
        moves.begin_merge(self._store, [int(one) for one in partitions]).run()

    # --- inside ---------------------------------------------------------------------------------

    def _write(
        self, operation: Operation, partition_key: Any, **triggers: Unpack[NamedTriggers]
    ) -> Item:
        given = None if partition_key is OMITTED else coerce(partition_key)
        if triggers:
            text = self._triggered(operation, given, **triggers)
        else:
            text = self._store.run(operation, given).text
        item: Item = orjson.loads(text)
        return item

    def _triggered(
        self, operation: Operation, key: KeyValues | None, **triggers: Unpack[NamedTriggers]
    ) -> bytes:
        pre, post = triggers.get("pre_trigger"), triggers.get("post_trigger")
        return self.scripts.write(operation, key, pre, post)[1]

    def _synthetic_key(self) -> SyntheticKey:
        key = self._store.state.definition.synthetic_key
        if key is None:
            raise BadInput("The container has no synthetic key; give the partition key instead.")
        return key


def _parameters(
    given: Mapping[str, JSON] | Sequence[Mapping[str, JSON]] | None,
) -> Mapping[str, JSON]:
    if given is None or isinstance(given, Mapping):
        return given or {}
    try:
        return {one["name"]: one["value"] for one in given}
    except (KeyError, TypeError) as error:
        raise BadInput('Parameters are objects with "name" and "value".') from error


_ARGUMENTS: Final = {
    "create": ("body",),
    "upsert": ("body",),
    "replace": ("id", "body"),
    "patch": ("id", "patch"),
    "delete": ("id",),
    "read": ("id",),
}
_BODY_ONLY: Final = frozenset({"create", "upsert"})
_OPTIONS: Final = frozenset({"if_match", "if_none_match", "condition"})


def _operation(
    kind: str, arguments: Sequence[Any], options: Mapping[str, Any] | None = None
) -> Operation:
    names = _ARGUMENTS.get(kind)
    if names is None:
        raise BadInput(f"Unknown operation '{kind}'; there are {', '.join(_ARGUMENTS)}.")
    if len(arguments) != len(names):
        raise BadInput(f"The operation '{kind}' takes ({', '.join(names)}).")
    unknown = set(options or ()) - _OPTIONS
    if unknown:
        raise BadInput(f"Unknown options of '{kind}': {', '.join(sorted(unknown))}.")
    given = dict(zip(names, arguments, strict=True))
    if "patch" in given:
        given["patch"] = tuple(given["patch"])
    return Operation(kind, **given, **(options or {}))


def _bulk_operation(one: Sequence[Any], key: Any) -> tuple[Operation, KeyValues | None] | BadInput:
    kind, arguments, *rest = one
    if not rest and key is OMITTED and kind in _BODY_ONLY and len(arguments) == 1:
        return Operation(kind, body=arguments[0]), None  # nearly all of a large bulk
    options = dict(rest[0]) if rest else {}
    key = options.pop("partition_key", key)
    try:
        return _operation(kind, arguments, options), None if key is OMITTED else coerce(key)
    except BadInput as error:
        return error


def _answer(done: Done | DbError | Item) -> Item | DbError | None:
    if isinstance(done, dict | DbError):
        return done
    item: Item | None = orjson.loads(done.text) if done.text else None
    return item
