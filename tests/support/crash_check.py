"""Does the store hold what it promised? Everything a look from outside and inside can say.

`check` opens the account as any program would, after the process before it was killed, and answers
one line per broken promise; none when all is well. Then it tells the ledger what had happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support.crash_ledger import Ledger
from tests.support.workload import State
from tests.support.workload_actions import DATABASE, observe

from armillary.account import Account, open_account
from armillary.container import Container
from armillary.engine.base import CATALOG_SPACE
from armillary.engine.lmdb.engine import LmdbEngine
from armillary.store.catalog import accounts
from armillary.store.catalog import records as catalog
from armillary.store.moves.takeovers import resume
from armillary.store.upkeep.housekeeper import keep_house
from armillary.store.upkeep.recount import problems

DAY_MS = 86_400_000
PROBE = {"id": "probe", "pk": "probe"}


def check(address: str | Path, ledger: Ledger) -> tuple[list[str], int]:
    """The broken promises; and how many actions happened without an acknowledgement."""
    with open_account(address, housekeeping=False) as account:
        _finish_moves(account)
        observed = observe(account)
        found = [*ledger.differences(observed), *_inside(account)]
        found += [f"after housekeeping: {line}" for line in _kept(account)]
        found += _usable(account)
        if observe(account) != observed:
            found.append("looking, housekeeping and a probe changed what is there")
    return found, ledger.settle(observed)


def _finish_moves(account: Account) -> None:
    """Splits and merges that were cut short are taken over. Until then a frozen range waits."""
    for name in account.database(DATABASE).containers():
        for move in resume(account._store.container(DATABASE, name), silent_ms=-DAY_MS):
            move.run()


def _inside(account: Account) -> Iterator[str]:
    for container in _containers(account):
        yield from recounted(account, container)
        yield from _fed(container)
        yield from _read_back(container)


def _containers(account: Account) -> list[Container]:
    database = account.database(DATABASE)
    return [database.container(name) for name in database.containers()]


def recounted(account: Account, container: Container, database: str = DATABASE) -> Iterator[str]:
    """Every row that follows from the items, and every total, in every physical partition."""
    store = account._store.container(database, container.id)
    # Spaces whose settings a crash has left behind catch up when they are first used.
    for one in store.state.table.ranges:
        store.look(one.start, lambda state, owner, reader: None)
    state = store.refresh()
    for one in state.table.ranges:
        with account._engine.read(one.space) as reader:
            for line in problems(reader, state.policies):
                yield f"{container.id}, range {one.ordinal}: {line}"


def _fed(container: Container) -> Iterator[str]:
    """The change feed from the beginning has each live item once, as it is."""
    fed: Counter[str] = Counter()
    contents: dict[str, object] = {}
    page = container.read_change_feed(max_items=40)
    while True:
        for item in page.items:
            del item["_lsn"]
            fed[str(item["_rid"])] += 1
            contents[str(item["_rid"])] = item
        if page.at_end:
            break
        page = container.read_change_feed(continuation=page.continuation, max_items=40)
    live = {str(item["_rid"]): item for item in container.read_all_items()}
    if contents != live:
        wrong = [rid for rid in live.keys() | contents.keys() if contents.get(rid) != live.get(rid)]
        yield f"{container.id}: the feed and the items differ in {sorted(wrong)}"
    yield from (f"{container.id}: {rid} is fed {n} times" for rid, n in fed.items() if n > 1)


def _read_back(container: Container) -> Iterator[str]:
    items = list(container.read_all_items())
    for item in items:
        if container.read_item(str(item["id"]), item["pk"]) != item:
            yield f"{container.id}: a point read of {item['id']} differs from the scan"
    counted = sum(one.items for one in container.partitions())
    if counted != len(items):
        yield f"{container.id}: the statistics say {counted} items, there are {len(items)}"


def _kept(account: Account) -> Iterator[str]:
    """Housekeeping removes what a crash has left, and finishes the indexes."""
    grace = accounts.ORPHAN_SECONDS
    accounts.ORPHAN_SECONDS = -1_000_000  # every process that could still be at it is dead
    try:
        keep_house(account._store)
    finally:
        accounts.ORPHAN_SECONDS = grace
    yield from _owned(account)
    for container in _containers(account):
        yield from recounted(account, container)


def _owned(account: Account) -> Iterator[str]:
    """Every space has an owner, and every owner its spaces."""
    owned = {CATALOG_SPACE}
    for record in account._store.list_containers(DATABASE):
        owned |= {one.space for one in record.ranges}
    there = set(account._engine.spaces())
    if there != owned:
        yield f"spaces without an owner {there - owned}, owners without a space {owned - there}"
    with account._engine.read(CATALOG_SPACE) as reader:
        listed = catalog.orphans(reader, 2**32)
    if listed:
        yield f"the catalog still lists spaces without an owner: {listed}"
    engine = account._engine
    if isinstance(engine, LmdbEngine):
        pages, last = engine._spaces.pages_used(), engine._environment.lmdb.info()["last_pgno"]
        if pages > last + 1:
            yield f"{pages} pages are in use, the file has {last + 1}"


def _usable(account: Account) -> Iterator[str]:
    """Writes work again."""
    for container in _containers(account):
        container.create_item(PROBE)
        container.execute_item_batch(
            [("replace", ("probe", PROBE)), ("delete", ("probe",))], "probe"
        )
        if any(item["id"] == "probe" for item in container.read_all_items(partition_key="probe")):
            yield f"{container.id}: a deleted item is still there"


def states_of(address: str | Path) -> dict[str, State]:
    with open_account(address, housekeeping=False) as account:
        return observe(account)
