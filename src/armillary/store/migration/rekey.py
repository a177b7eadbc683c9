"""Another partition key for a container: a copy into a new one, while the old one is used.

    create   the target, with the source's settings and the new key; the feed's position is noted
    copy     every item, page by page
    follow   the change feed since that position                               ┐ again while
    compare  every item of the target: has the source still such an item,      │ something is
             and would it come here? If not, it goes                           ┘ found
    verify   the counts agree
    close    with a cut-over: the source is closed for writing, in every process; then once more
             follow and compare, and verify also compares a checksum per logical partition
    finish   the record of it all goes; the target is an ordinary container

The source is only read. Without a cut-over it stays open, and what is written to it after the last
look is not in the target. With one it stays closed; if the two sides differ, it is opened again.

A key is immutable, so this is the way from a fixed container to one that grows, and from a key that
turned out badly to a better one (partitioning 5). An item keeps its id; two items that differed
only in the old key would become one: the first stays, the others are reported, as are items that
the target refuses. A target item is known by the properties of the old key, which it still carries.

Every step saves how far it is, so a run that was killed goes on when it is asked for again. With an
all-versions feed the source says when something was deleted; without one, the comparison finds it.
Items get a new `_ts`, so a time to live starts again.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

import orjson

from armillary import steps
from armillary.encoding.documents import parse_body
from armillary.encoding.partition_key import KeyValues, coerce, key_of
from armillary.errors import BadInput, Conflict, DbError, NotFound, Throttled
from armillary.limits import REKEY_LEFT_MAX, REKEY_PAGE_ITEMS, REKEY_ROUNDS_MAX
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.definitions import parse_container
from armillary.store.catalog.records import ContainerRecord, Throughput
from armillary.store.catalog.state import key_json
from armillary.store.items import paging
from armillary.store.items.containers import ContainerStore
from armillary.store.items.positions import (
    Kind,
    Position,
    decode_position,
    encode_position,
    whole,
)
from armillary.store.items.preparation import Operation
from armillary.store.items.reading import Stored
from armillary.store.items.requests import Done
from armillary.store.migration import records as rekey_records
from armillary.store.migration.checksums import checksums, differences
from armillary.store.migration.records import Left, RekeyRecord
from armillary.store.reports.statistics import partitions
from armillary.store.upkeep.containers import sweep
from armillary.values import JSON, UNDEFINED

DONE: Final = "done"
COUNTED: Final = ("verify", "finish")
THROTTLED_MAX: Final = 10_000
T = TypeVar("T")
SYSTEM: Final = frozenset({"_rid", "_self", "_etag", "_ts", "_attachments", "_lsn"})
Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RekeyProgress:
    phase: str
    copied: int
    source_items: int
    keyless: int = 0
    """Copied items that have nothing at the path of the new key."""


@dataclass(frozen=True, slots=True)
class RekeyReport:
    """`verified`: the target has every item of the source but those in `left`, at a moment when the
    change feed had nothing new: by count, and after a cut-over by a checksum per logical partition.
    `closed`: the source takes no more writes. `keyless`: items without the new key."""

    source_items: int
    target_items: int
    copied: int
    changed: int
    removed: int
    left: tuple[Left, ...]
    verified: bool
    closed: bool = False
    keyless: int = 0
    logical_partitions: int = 0
    """Compared after a cut-over."""
    different: int = 0


def rekey(
    account: AccountStore,
    database: str,
    source: str,
    body: dict[str, JSON],
    *,
    throughput: Throughput | None = None,
    cut_over: bool = False,
    progress: Callable[[RekeyProgress], None] = lambda progress: None,
) -> RekeyReport:
    """Copy container `source` into the new container that `body` defines: its id, its partition key
    or synthetic key, and whatever shall differ from the source. Asked for again after it was cut
    short, it goes on. `cut_over`: close the source when the target has caught up."""
    run = begin(account, database, source, body, throughput=throughput, cut_over=cut_over)
    while run.record.phase != DONE:
        progress(run.advance())
    return run.report()


def begin(
    account: AccountStore,
    database: str,
    source: str,
    body: dict[str, JSON],
    *,
    throughput: Throughput | None = None,
    cut_over: bool = False,
) -> "Run":
    """The same in steps, for callers that do something between them. The catalog remembers
    how far it is, so each step may be taken by another process."""
    record = _begin(account, database, source, body)
    return Run(account, record, throughput, cut_over or record.closed)


def count_items(store: ContainerStore) -> int:
    return sum(one.items for one in partitions(store))


def _begin(account: AccountStore, database: str, source: str, body: dict[str, JSON]) -> RekeyRecord:
    record = account.read_container(database, source)
    inherited = {
        name: value
        for name, value in record.definition.items()
        if name not in ("partitionKey", "syntheticKey")
    }
    definition = parse_container(inherited | body)
    if definition.id == source:
        raise BadInput("The target is a container of its own: give it another name.")
    synthetic = definition.synthetic_key
    old_paths = parse_container(record.definition).partition_key.paths
    if synthetic is not None and synthetic.path in old_paths:
        raise BadInput(
            "The synthetic key would overwrite the property of the old partition key, "
            "by which items are told apart. Give it another path."
        )
    known = rekey_records.load(account.engine, database, definition.id)
    if known is None and record.closed == definition.id:
        # It was finished, but its caller did not hear of it.
        return RekeyRecord(
            database, source, definition.id, record.rid, {}, DONE, verified=True, closed=True
        )
    if known is not None and known.source_rid == record.rid and _goes_on(account, known):
        if known.definition != definition.document:
            raise Conflict("The container is being filled with another definition.")
        # What was counted before the pause says nothing about what happened in it.
        counted = known.phase in COUNTED
        return replace(known, phase="follow", rounds=0) if counted else known
    fresh = RekeyRecord(database, source, definition.id, record.rid, definition.document)
    if _find(account, database, definition.id) is not None:
        raise Conflict("The target exists already. It has to be a new container.")
    return rekey_records.save(account.engine, fresh)


def _goes_on(account: AccountStore, known: RekeyRecord) -> bool:
    """Whether the target is still the one that was being filled."""
    there = _find(account, known.database, known.target)
    if known.phase == "create":
        return there is None or there.definition == known.definition
    return there is not None and there.rid == known.target_rid


def _find(account: AccountStore, database: str, name: str) -> ContainerRecord | None:
    try:
        return account.read_container(database, name)
    except NotFound:
        return None


class Run:
    def __init__(
        self,
        account: AccountStore,
        record: RekeyRecord,
        throughput: Throughput | None,
        cut_over: bool,
    ) -> None:
        self.record = record
        self._cut_over = cut_over
        self.source = account.container(record.database, record.source)
        self.target = account.container(record.database, record.target)
        self._account = account
        self._throughput = throughput

    @property
    def may_pause(self) -> bool:
        """Not while both sides are being counted: what was counted before a pause says nothing
        about what happened in it."""
        return self.record.phase not in COUNTED

    def advance(self) -> RekeyProgress:
        """One step: a page of items, or of changes."""
        phase = self.record.phase
        self._step()
        steps.reached(f"rekey.{phase}")
        record = self.record
        return RekeyProgress(phase, record.copied, count_items(self.source), record.keyless)

    def _step(self) -> None:
        new = self._unthrottled(PHASES[self.record.phase])
        if new.phase == DONE:
            rekey_records.forget(self._account.engine, new)
            self.record = new
        else:
            self.record = rekey_records.save(self._account.engine, new)

    def report(self) -> RekeyReport:
        record = self.record
        return RekeyReport(
            count_items(self.source),
            count_items(self.target),
            record.copied,
            record.changed,
            record.removed,
            tuple(record.left),
            record.verified,
            record.closed,
            record.keyless,
            record.logical_partitions,
            record.different,
        )

    # --- phases ---------------------------------------------------------------------------------

    def _create(self) -> RekeyRecord:
        record = self.record
        made = _find(self._account, record.database, record.target)
        if made is None:
            made = self._account.create_container(
                record.database, record.definition, throughput=self._throughput
            )
        elif count_items(self.target):
            raise Conflict("The target exists already and has items.")
        feed = encode_position(paging.feed_now(self.source, self._feed_kind))
        return replace(record, phase="copy", target_rid=made.rid, feed=feed)

    def _copy(self) -> RekeyRecord:
        record = self.record
        at = None if record.position is None else decode_position(record.position, ["items"])
        page = paging.read_items(self.source, at, REKEY_PAGE_ITEMS)
        created, changed, left = self._bring(orjson.loads(one.text) for one in page.items)
        done = page.position is None
        return replace(
            self.record,
            phase="follow" if done else "copy",
            position=None if page.position is None else encode_position(page.position),
            copied=record.copied + created,
            changed=record.changed + changed,
            left=left,
            dirty=record.dirty or (done and self._feed_kind == "latest"),
        )

    def _follow(self) -> RekeyRecord:
        record = self.record
        position = decode_position(record.feed, ["latest", "versions"])
        try:
            page, at_end = paging.read_feed(self.source, position, REKEY_PAGE_ITEMS)
        except BadInput:
            # We slept for longer than the source keeps old versions, or it no longer keeps any.
            beginning = encode_position(whole("latest"))
            return replace(record, feed=beginning, dirty=True)
        assert page.position is not None
        items = [orjson.loads(one.text) for one in page.items if one.change != "delete"]
        created, changed, left = self._bring(items)
        short = record.short + 1 if len(page.items) < REKEY_PAGE_ITEMS // 2 else 0
        record = replace(
            self.record,
            short=short,
            feed=encode_position(page.position),
            changed=record.changed + created + changed,
            left=left,
            # A change may have moved an item to another new key; the old place is not in the feed.
            dirty=record.dirty or any(one.change != "create" for one in page.items),
        )
        # While the source is being written to there is always something new: then it is enough that
        # every range had little.
        nearly = not record.closed and short > len(self.source.state.table.ranges)
        if not at_end and not nearly:
            return record
        again = record.dirty and record.rounds < REKEY_ROUNDS_MAX
        phase = "compare" if again else "verify"
        return replace(record, phase=phase, position=None, short=0)

    def _compare(self) -> RekeyRecord:
        record = self.record
        at = None if record.position is None else decode_position(record.position, ["items"])
        page = paging.read_items(self.target, at, REKEY_PAGE_ITEMS)
        removed = self._remove_strangers([orjson.loads(one.text) for one in page.items])
        record = replace(record, removed=record.removed + removed)
        if page.position is not None:
            return replace(record, position=encode_position(page.position))
        # What had no place may have one now.
        wanted = [(one.id, coerce(one.key)) for one in record.left]
        found = self.source.read_many(wanted)
        self.record = replace(record, left=[])
        again = [orjson.loads(one.text) for one in found if one is not None]
        created, changed, left = self._bring(again)
        return replace(
            self.record,
            phase="follow",
            position=None,
            dirty=False,
            rounds=record.rounds + 1,
            changed=record.changed + created + changed,
            left=left,
        )

    def _verify(self) -> RekeyRecord:
        record = self.record
        sweep(self.source)
        sweep(self.target)
        expected = count_items(self.source) - len(record.left)
        verified = count_items(self.target) == expected
        if not verified and record.rounds < REKEY_ROUNDS_MAX:
            return replace(record, phase="follow", dirty=True)
        if self._cut_over and not record.closed:
            return replace(record, phase="close", rounds=0)
        if record.closed:
            record = self._compared()
            verified = verified and not record.different
            if not verified:
                self._account.close_container(record.database, record.source, None)
        return replace(record, phase="finish", verified=verified)

    def _close(self) -> RekeyRecord:
        """The last writes are in the feed when this returns, and no more follow."""
        record = self.record
        self._account.close_container(record.database, record.source, record.target)
        # A feed of latest versions has no deletes: a comparison finds those since the last one.
        dirty = record.dirty or self._feed_kind == "latest"
        return replace(record, phase="follow", closed=True, short=0, dirty=dirty)

    def _compared(self) -> RekeyRecord:
        left = {(one.id, orjson.dumps(one.key)) for one in self.record.left}

        def of_source() -> Iterator[tuple[bytes, Item]]:
            for item in self._items(self.source):
                key, id = self._identity(item)
                if (id, key_json(key)) not in left:
                    mapped = parse_body(self._mapped(item)).item
                    yield key_json(self._new_key(mapped)), mapped

        def of_target() -> Iterator[tuple[bytes, Item]]:
            for item in self._items(self.target):
                yield key_json(self._new_key(item)), _plain(item)

        wanted, there = checksums(of_source()), checksums(of_target())
        return replace(
            self.record, logical_partitions=len(there), different=differences(wanted, there)
        )

    def _items(self, store: ContainerStore) -> Iterator[Item]:
        position: Position | None = None
        while True:
            page = self._unthrottled(partial(_page, store, position))
            yield from (orjson.loads(one.text) for one in page.items)
            position = page.position
            if position is None:
                return

    def _finish(self) -> RekeyRecord:
        return replace(self.record, phase=DONE)

    # --- inside ---------------------------------------------------------------------------------

    @property
    def _feed_kind(self) -> Kind:
        return "versions" if self.source.refresh().definition.retention_s else "latest"

    def _identity(self, item: Item) -> tuple[KeyValues, str]:
        """(old key, id): what identified the item in the source."""
        return _key_in(self.source, item), str(item["id"])

    def _mapped(self, item: Item) -> Item:
        """The item as the target has it. A random suffix is drawn from the item's identity, so that
        it comes to the same place each time it is brought."""
        plain = _plain(item)
        synthetic = self.target.state.definition.synthetic_key
        if synthetic is None:
            return plain
        key, id = self._identity(item)
        random = Random(key_json(key) + id.encode())
        mapped: Item = synthetic.apply(plain, random, stored=UNDEFINED)
        return mapped

    def _new_key(self, item: Item) -> KeyValues:
        return _key_in(self.target, item)

    def _bring(self, items: Iterable[Item]) -> tuple[int, int, list[Left]]:
        """(created, changed, everything that had to be left so far)"""
        mapped: dict[tuple[KeyValues, str], Item] = {}
        failed: list[tuple[Item, DbError]] = []
        for item in items:
            try:
                mapped[self._identity(item)] = self._mapped(item)  # of several versions the last
            except DbError as error:
                failed.append((item, error))
        answers = self._write("create", mapped.values())
        taken = [one for one, answer in answers if isinstance(answer, Conflict)]
        changed, refused = self._replace(taken)
        failed += refused
        failed += (
            (item, answer)
            for item, answer in answers
            if isinstance(answer, DbError) and not isinstance(answer, Conflict)
        )
        created = sum(isinstance(answer, Done) for _, answer in answers)
        brought = (self._new_key(one) for one, answer in answers if isinstance(answer, Done))
        keyless = sum(all(value is UNDEFINED for value in key) for key in brought)
        self.record = replace(self.record, keyless=self.record.keyless + keyless)
        return created, changed, self._left(failed)

    def _replace(self, items: list[Item]) -> tuple[int, list[tuple[Item, DbError]]]:
        """There are items of these ids and new keys: ours from before, or others'."""
        there = self.target.read_many([(str(one["id"]), self._new_key(one)) for one in items])
        different: list[Item] = []
        failed: list[tuple[Item, DbError]] = []
        for item, stored in zip(items, there, strict=True):
            known: Item | None = None if stored is None else orjson.loads(stored.text)
            if known is not None and self._identity(known) != self._identity(item):
                other = orjson.loads(key_json(self._identity(known)[0]))
                text = f"The item of the old key {other} has this id and new key already."
                failed.append((item, Conflict(text)))
            elif known is None or _plain(known) != parse_body(item).item:
                different.append(item)
        answers = self._write("upsert", different)
        failed += ((item, answer) for item, answer in answers if isinstance(answer, DbError))
        return sum(isinstance(answer, Done) for _, answer in answers), failed

    def _write(self, kind: str, items: Iterable[Item]) -> list[tuple[Item, Done | DbError]]:
        bodies = list(items)
        answers = self.target.bulk((Operation(kind, body=item), None) for item in bodies)
        for _ in range(THROTTLED_MAX):
            late = [n for n, one in enumerate(answers) if isinstance(one, Throttled)]
            if not late:
                break
            self._wait_for(answers[late[0]])
            again = self.target.bulk((Operation(kind, body=bodies[n]), None) for n in late)
            for n, answer in zip(late, again, strict=True):
                answers[n] = answer
        return list(zip(bodies, answers, strict=True))

    def _unthrottled(self, work: Callable[["Run"], T]) -> T:
        """Both containers have request units like any other, and this may take as long as it must:
        the application comes first."""
        for _ in range(THROTTLED_MAX):
            try:
                return work(self)
            except Throttled as error:
                self._wait_for(error)
        return work(self)

    def _wait_for(self, error: Any) -> None:
        self.target.pause(max(1, error.facts.get("retry_after_ms") or 1) / 1000)

    def _left(self, failed: list[tuple[Item, DbError]]) -> list[Left]:
        known = {(one.id, orjson.dumps(one.key)): one for one in self.record.left}
        for item, error in failed:
            key, id = self._identity(item)
            values = orjson.loads(key_json(key))
            known[id, orjson.dumps(values)] = Left(id, values, str(error))
        if len(known) > REKEY_LEFT_MAX:
            examples = ", ".join(f"{one.id} of {one.key}" for one in list(known.values())[:3])
            raise BadInput(
                f"More than {REKEY_LEFT_MAX} items have no place under the new key, such as "
                f"{examples}: {next(iter(known.values())).why} Choose another key."
            )
        return list(known.values())

    def _remove_strangers(self, items: list[Item]) -> int:
        """Delete items of the target whose origin is gone or has another new key by now."""
        origins = [self._identity(item) for item in items]
        found = self.source.read_many([(id, key) for key, id in origins])
        removed = 0
        for item, origin in zip(items, found, strict=True):
            key = self._new_key(item)
            if origin is not None and self._new_key(self._mapped(orjson.loads(origin.text))) == key:
                continue
            try:
                self.target.run(Operation("delete", id=str(item["id"])), key)
                removed += 1
            except NotFound:
                continue  # expired meanwhile
        return removed


def _page(store: ContainerStore, position: Position | None, run: Run) -> paging.Paged[Stored]:
    return paging.read_items(store, position, REKEY_PAGE_ITEMS)


def _plain(item: Item) -> Item:
    return {name: value for name, value in item.items() if name not in SYSTEM}


PHASES: dict[str, Callable[[Run], RekeyRecord]] = {
    "create": Run._create,
    "copy": Run._copy,
    "follow": Run._follow,
    "compare": Run._compare,
    "verify": Run._verify,
    "close": Run._close,
    "finish": Run._finish,
}


def _key_in(container: ContainerStore, item: Item) -> KeyValues:
    state = container.state
    return key_of(item, state.definition.partition_key, state.model.key)
