"""Items in process on LMDB: point reads, durable creates with the index at once and deferred,
pages.

Deferred means: the create writes item, id, logical partition and log, and every 500 items an
indexer reads the log and writes their index entries sorted. It is built here from the store's own
parts, to decide by measurement whether the store should work that way (docs/decisions).

    python -m bench.store [--quick] [--reads] [--shape] [--save]
"""

import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from bench.report import Report, folder, item, rate
from msgspec.structs import replace

import armillary
from armillary.container import Container
from armillary.engine.base import Command, Durability, Handler, Writer
from armillary.store.commands import HANDLERS
from armillary.store.index.entries import Entries
from armillary.store.index.item_rows import index_rows
from armillary.store.index.plan_cache import entries_of, plan_of
from armillary.store.items.containers import ContainerStore
from armillary.store.items.preparation import Operation, Prepared, prepare
from armillary.store.items.requests import Context
from armillary.store.items.routing import key_in
from armillary.store.items.transaction import Work
from armillary.store.rows import layout
from armillary.store.rows.meta import unpack_meta
from armillary.store.rows.secondary import U64, split_log_key

GROUP = 32
TAIL = 500
EXISTING = 100_000
MILLION = 1_000_000
NO_INDEX = {"indexingMode": "none", "automatic": False}


def write_index(tx: Writer, data: tuple[Context, int]) -> int:
    """Index entries of the changes after an LSN, in key order. Answers the LSN reached."""
    context, lsn = data
    work = Work(tx, context)
    rows: dict[bytes, bytes] = {}
    for key, _ in list(
        tx.scan(layout.LOG + U64.pack(lsn + 1), layout.after(layout.LOG), limit=TAIL)
    ):
        lsn, rid = split_log_key(key)
        found = work.load(rid)
        plan = plan_of(context.policies, found.header.policy_version)
        rows |= index_rows(plan, entries_of(plan, found.text), rid, found.header).rows
    tx.put_many(sorted(rows.items()))
    return lsn


HANDLERS["bench.index"] = Handler(write_index)


def main() -> None:
    report = Report("store")
    small = "--quick" in sys.argv
    if "--reads" not in sys.argv:
        _creates(report, EXISTING // 10 if small else EXISTING)
    _reads(report, EXISTING // 10, "10^4", _thirteen)
    if "--shape" in sys.argv:  # only how much the shape of the items matters
        _reads(report, EXISTING // 10, "10^4")
        return
    _reads(report, EXISTING // 10, "10^4")
    _reads(report, EXISTING if small else MILLION, "10^5" if small else "10^6")
    _pages(report, EXISTING // 10 if small else EXISTING)


def _open(
    path: Path, durability: Durability = "full", indexing_policy: dict[str, Any] | None = None
) -> tuple[armillary.Account, Container]:
    account = armillary.open(path, durability=durability, housekeeping=False)
    database = account.create_database("bench")
    return account, database.create_container(
        "items", partition_key="/pk", indexing_policy=indexing_policy
    )


def _fill(container: Container, count: int, keys: int = 1000) -> None:
    chance = random.Random(1)
    for start in range(0, count, 1000):
        batch = [item(n, chance, keys) for n in range(start, min(start + 1000, count))]
        container.bulk([("create", (one,)) for one in batch])


# --- writes -------------------------------------------------------------------------------------


def _creates(report: Report, existing: int) -> None:
    for over in (0, existing):
        with folder() as path:
            account, container = _open(path / "data")
            _fill(container, over)
            store = container._store
            alone = _rate_of_creates(store, over, 1, 300, deferred=False)
            report.line(f"durable create over {over:,} items, alone", alone)
            at_once = _rate_of_creates(store, over + 10**6, GROUP, 3200, deferred=False)
            report.line(f"durable create over {over:,} items, groups of {GROUP}", at_once)
            account.close()
        with folder() as path:
            account, container = _open(path / "data")
            _fill(container, over)
            deferred = _rate_of_creates(container._store, over, GROUP, 3200, deferred=True)
            report.line(
                f"  the same, index deferred by {TAIL}",
                deferred,
                ratio_to_at_once=deferred / at_once,
            )
            account.close()


def _rate_of_creates(
    store: ContainerStore, first: int, group: int, count: int, *, deferred: bool
) -> float:
    chance = random.Random(first)
    items = [item(first + n, chance) for n in range(count)]
    state = store.refresh()
    owner = state.table.ranges[0]
    with store.engine.read(owner.space) as reader:
        indexed = unpack_meta(reader.meta).lsn
    waiting = 0
    started = time.perf_counter()
    for start in range(0, count, group):
        futures: list[Future[Any]] = []
        for one in items[start : start + group]:
            prepared = prepare(state, Operation("create", body=one), None, chance)
            futures.append(_submit(store, prepared, deferred))
        for future in futures:
            future.result()
        waiting += len(futures)
        if deferred and (waiting >= TAIL or start + group >= count):
            while waiting > 0:
                data = (store.context(state, owner), indexed)
                indexed = store.engine.run(owner.space, Command("bench.index", data))
                waiting -= TAIL
    return count / (time.perf_counter() - started)


def _submit(store: ContainerStore, prepared: Prepared, deferred: bool) -> Future[Any]:
    state = store.state
    epk, key = key_in(state, prepared.key)
    owner = state.table.find(epk)
    op = prepared.op
    if deferred:
        assert op.entries is not None
        bare = Entries([], [], op.entries.ux, op.entries.leaves, op.entries.shape, [])
        op = replace(op, entries=bare)
    data = (store.context(state, owner), key, [op])
    return store.engine.submit(owner.space, Command("items.write", data))


# --- reads --------------------------------------------------------------------------------------


def _reads(
    report: Report, count: int, name: str, make: Callable[[int], dict[str, Any]] | None = None
) -> None:
    """Without an index, and filled without waiting for the disk: a point read looks at neither.
    With one text for all, because a million items take minutes as it is; that is easier to decode
    than thirteen properties, so both are shown at the small size."""
    shape = "one text" if make is None else "13 properties"
    make = make or _plain
    with folder() as path:
        account, container = _open(path / "data", durability="relaxed", indexing_policy=NO_INDEX)
        for start in range(0, count, 1000):
            numbers = range(start, min(start + 1000, count))
            container.bulk([("create", (make(number),)) for number in numbers])
        known = [(one["id"], one["pk"]) for one in map(make, range(min(count, 50_000)))]
        chosen = random.Random(2).choices(known, k=4000)

        def as_bytes() -> int:
            for item_id, key in chosen:
                container.read_item_bytes(item_id, key)
            return len(chosen)

        def as_dict() -> int:
            for item_id, key in chosen:
                container.read_item(item_id, key)
            return len(chosen)

        report.line(f"point read as bytes, {name} items of 1 KB, {shape}", rate(as_bytes))
        report.line(f"point read as dict, {name} items of 1 KB, {shape}", rate(as_dict))
        account.close()


def _thirteen(number: int) -> dict[str, Any]:
    return item(number, random.Random(number))


def _plain(number: int) -> dict[str, Any]:
    return {"id": f"item-{number:09}", "pk": f"key-{number % 1000}", "text": "x" * 950}


def _pages(report: Report, count: int) -> None:
    with folder() as path:
        account, container = _open(path / "data")
        _fill(container, count, keys=1)
        first = container.read_page(partition_key="key-0", max_items=100)
        deep = first
        for _ in range(count // 200):
            deep = container.read_page(
                partition_key="key-0", max_items=100, continuation=deep.continuation
            )

        def page(continuation: str | None) -> int:
            container.read_page(partition_key="key-0", max_items=100, continuation=continuation)
            return 1

        start = rate(lambda: page(None))
        middle = rate(lambda: page(deep.continuation))
        report.line(f"page of 100 of a key with {count:,} items, first", start, unit="pages/s")
        report.line(
            "  the same, from the middle", middle, unit="pages/s", ratio_to_first=middle / start
        )
        account.close()


if __name__ == "__main__":
    main()
