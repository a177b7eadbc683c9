"""Every operation that a protocol asks of the store, queries or scripts takes a `Budget`, unless
its length is not the caller's to choose. Without this test the next operation would forget it, and
a client that has left, or asks for too much, would hold a thread for as long as it likes.

    SIGNATURES   what `api/` uses of the layers below: with a budget, or with a reason in SHORT
    CALLS        each call in `api/` of one with a budget hands it on
    BEHAVIOUR    each one with a budget ends by it, before it begins and in the middle; nothing of
                 it is half written
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple

import pytest
from tests.unit.test_layers import SOURCE

import armillary
from armillary.budget import Budget
from armillary.encoding.partition_key import coerce
from armillary.engine.base import CATALOG_SPACE
from armillary.errors import Abandoned, DbError, OutOfTime
from armillary.partition.ranges import EPK_MAX, EPK_MIN
from armillary.query.run import pages
from armillary.query.run.entries import count_of, runs_of
from armillary.query.run.metrics import QueryMetrics
from armillary.query.run.sql import plan_of, run_plan, run_query, run_range
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.records import list_containers, list_databases
from armillary.store.catalog.resources import ResourceStore
from armillary.store.inserts.preparation import ready
from armillary.store.inserts.sending import start_insert
from armillary.store.items import paging
from armillary.store.items.containers import ContainerStore
from armillary.store.items.positions import Position, Segment
from armillary.store.items.preparation import Operation
from armillary.store.items.requests import Done
from armillary.store.items.sent_batches import run_batch, start_batch
from armillary.store.reports import heat, partitions, statistics, usage
from armillary.store.snapshots import reading as snapshots
from armillary.store.throughput.offers import list_offers
from armillary.store.upkeep.containers import delete_by_key

API: Final = SOURCE / "api"
BELOW: Final = ("armillary.store.", "armillary.query.run.", "armillary.scripts.")
#: Something that reads or writes has one of these among its parameters.
WORKS_ON: Final = frozenset({"ContainerStore", "AccountStore", "Reader", "Engine"})
STORES: Final = (ContainerStore, AccountStore, ResourceStore)

ONE = "one item, resource or row"
PARTS = "one short look at each physical partition, of which there are few"
HOUSE = "work of the house, in pieces, whose client has an answer already"
INSIDE = "what operations are made of; the loop is the caller's"
NO_WORK = "reads and writes nothing"
SHORT: Final = {
    "ContainerStore.run": ONE,
    "ContainerStore.start": ONE,
    "ContainerStore.finish": ONE,
    "ContainerStore.read": ONE,
    "ContainerStore.read_at": ONE,
    "ContainerStore.read_placed": ONE,
    "ContainerStore.refresh": ONE,
    "ContainerStore.catch_up": ONE,
    "ContainerStore.look": INSIDE,
    "ContainerStore.look_at_key": INSIDE,
    "ContainerStore.retrying": INSIDE,
    "ContainerStore.retrying_key": INSIDE,
    "ContainerStore.as_of": NO_WORK,
    "ContainerStore.at": NO_WORK,
    "ContainerStore.charge": NO_WORK,
    "ContainerStore.context": NO_WORK,
    "ContainerStore.upkeep_context": NO_WORK,
    "ContainerStore.forget_state": NO_WORK,
    "ContainerStore.note_write": NO_WORK,
    "ContainerStore.now_s": NO_WORK,
    "ContainerStore.pause": NO_WORK,
    "AccountStore.create_database": ONE,
    "AccountStore.read_database": ONE,
    "AccountStore.delete_database": ONE,
    "AccountStore.create_container": ONE,
    "AccountStore.read_container": ONE,
    "AccountStore.replace_container": "its index is built in pieces, by the house",
    "AccountStore.close_container": ONE,
    "AccountStore.delete_container": ONE,
    "AccountStore.container": NO_WORK,
    "AccountStore.round": NO_WORK,
    "AccountStore.clean_up": HOUSE,
    "AccountStore.leap": HOUSE,
    "ResourceStore.create": ONE,
    "ResourceStore.read": ONE,
    "ResourceStore.replace": ONE,
    "ResourceStore.delete": ONE,
    "query.run.quick.rows_of": "as many rows as fit into QUICK_ROWS_MAX",
    "store.catalog.key_specs.replace_key_spec": ONE,
    "store.catalog.notes.list_notes": "its caller gives it a limit",
    "store.catalog.notes.put_notes": ONE,
    "store.catalog.notes.read_note": ONE,
    "store.catalog.notes.remove_notes": ONE,
    "store.catalog.records.ensure_catalog": ONE,
    "store.catalog.records.find_container": ONE,
    "store.catalog.records.find_database": ONE,
    "store.catalog.resources.find_by_rid": ONE,
    "store.catalog.resources.find_owner": ONE,
    "store.catalog.tables.make_table": ONE,
    "store.items.reading.read_values": INSIDE,
    "store.migration.rekey.begin": "begins it; its steps are short, and its client asks again",
    "store.moves.runner.begin_merge": HOUSE,
    "store.moves.runner.begin_split": HOUSE,
    "store.opening.open_store": NO_WORK,
    "store.reports.partitions.provisioned": ONE,
    "store.snapshots.reading.begin": ONE,
    "store.throughput.autoscale.autoscale": PARTS,
    "store.throughput.autoscale.container_levels": PARTS,
    "store.throughput.autoscale.database_levels": "the 25 containers of a shared database",
    "store.throughput.increment.set_increment": ONE,
    "store.throughput.offers.find_offer": ONE,
    "store.throughput.provisioned.announced": PARTS,
    "store.throughput.provisioned.change_throughput": PARTS,
    "store.throughput.provisioned.evenly_distribute": PARTS,
    "store.throughput.provisioned.migrate_kind": ONE,
    "store.throughput.provisioned.read_offer": ONE,
    "store.throughput.provisioned.redistribute_throughput": PARTS,
    "store.throughput.provisioned.run_scaling": HOUSE,
    "store.throughput.provisioned.stored_bytes": PARTS,
    "store.throughput.shared.change_shared_throughput": PARTS,
    "store.throughput.shared.shared_minimum": "the 25 containers of a shared database",
    "store.upkeep.containers.reindex": HOUSE,
}
#: Calls in `api/` that need not hand one on, by file and operation.
CONSTANT: Final = {
    ("mongo/data/writes.py", "run_batch"): "one operation and its record",
    ("nosql/scripts.py", "execute_procedure"): "a script has a clock of its own",
    ("nosql/scripts.py", "execute_write"): "a script has a clock of its own",
}


# --- signatures ----------------------------------------------------------------------------------


class Use(NamedTuple):
    """A name that a file of `api/` uses of the layers below."""

    name: str
    function: Callable[..., Any]


@cache
def uses(path: Path) -> list[tuple[ast.expr, Use]]:
    """Functions of the layers below that a file names, and where it does."""
    return list(_uses(path))


def _uses(path: Path) -> Iterator[tuple[ast.expr, Use]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known: dict[str, Callable[..., Any]] = {}
    modules: dict[str, ModuleType] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(BELOW):
            for alias in node.names:
                found = _member(node.module or "", alias.name)
                if isinstance(found, ModuleType):
                    modules[alias.asname or alias.name] = found
                elif isinstance(found, FunctionType):
                    known[alias.asname or alias.name] = found
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name in known:
                yield node, Use(name, known[name])
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in modules:
                found = getattr(modules[module], name)
                if isinstance(found, FunctionType):
                    yield node, Use(name, found)


def _member(module: str, name: str) -> Any:
    found = getattr(importlib.import_module(module), name, None)
    return importlib.import_module(f"{module}.{name}") if found is None else found


def full_name(function: Callable[..., Any]) -> str:
    return f"{function.__module__.removeprefix('armillary.')}.{function.__qualname__}"


def works(function: Callable[..., Any]) -> bool:
    kinds = (one.annotation for one in inspect.signature(function).parameters.values())
    return any((one if isinstance(one, str) else one.__name__) in WORKS_ON
               for one in kinds if isinstance(one, str | type))  # fmt: skip


def takes_budget(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(one.name == "budget" or one.kind is one.VAR_KEYWORD for one in parameters)


def operations(root: Path) -> dict[str, Callable[..., Any]]:
    """All that a protocol can ask for."""
    found = {
        full_name(use.function): use.function
        for path in root.rglob("*.py")
        for _, use in uses(path)
        if f"{use.function.__module__}.".startswith(BELOW) and works(use.function)
    }
    for store in STORES:
        for name, method in inspect.getmembers(store, inspect.isfunction):
            if not name.startswith("_"):
                found[f"{store.__name__}.{name}"] = method
    return found


def without_budget(found: dict[str, Callable[..., Any]]) -> list[str]:
    return sorted(
        name for name, one in found.items() if name not in SHORT and not takes_budget(one)
    )


def test_every_operation_takes_a_budget() -> None:
    assert without_budget(operations(API)) == []


def test_no_reason_is_left_over() -> None:
    found = operations(API)
    assert sorted(name for name in SHORT if name not in found or takes_budget(found[name])) == []


@pytest.mark.parametrize(
    "source",
    [
        "from armillary.store.items.sent_batches import finish_batch\n",
        "from armillary.store.throughput.offers import find_offer\n",
    ],
)
def test_what_is_only_imported_is_no_use(tmp_path: Path, source: str) -> None:
    (tmp_path / "x.py").write_text(source)
    assert uses(tmp_path / "x.py") == []


@pytest.mark.parametrize(
    "source",
    [
        "from armillary.store.upkeep.containers import sweep\nsweep(store)\n",
        "from armillary.store.upkeep import containers\ncontainers.sweep(store)\n",
        "def f():\n    from armillary.store.upkeep import containers as c\n    c.sweep(store)\n",
    ],
)
def test_a_planted_operation_without_a_budget_is_found(tmp_path: Path, source: str) -> None:
    (tmp_path / "x.py").write_text(source)
    assert without_budget(operations(tmp_path)) == ["store.upkeep.containers.sweep"]


# --- calls ---------------------------------------------------------------------------------------

METHODS: Final = frozenset(
    name
    for store in STORES
    for name, one in inspect.getmembers(store, inspect.isfunction)
    if takes_budget(one)
)


def forgetful_calls(root: Path) -> list[str]:
    return [
        f"{path.relative_to(root).as_posix()}:{line}: {name}"
        for path in sorted(root.rglob("*.py"))
        for line, name in _forgetful(path, path.relative_to(root).as_posix())
    ]


def _forgetful(path: Path, where: str) -> Iterator[tuple[int, str]]:
    named = {
        (node.lineno, node.col_offset): use.name
        for node, use in uses(path)
        if works(use.function) and takes_budget(use.function)
    }
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = named.get((node.func.lineno, node.func.col_offset))
        if name is None and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            name = node.func.attr
        if name is not None and (where, name) not in CONSTANT and not _hands_on(node):
            yield node.lineno, name


def _hands_on(call: ast.Call) -> bool:
    """By its own name, or as something that is called a budget."""
    given = [*call.args, *(one.value for one in call.keywords if one.arg == "budget")]
    return any(
        (isinstance(one, ast.Name | ast.Attribute) and ast.unparse(one).endswith("budget"))
        or ast.unparse(one) == "unbounded()"
        for one in given
    )  # fmt: skip


def test_every_call_hands_its_budget_on() -> None:
    assert forgetful_calls(API) == []


@pytest.mark.parametrize(
    ("call", "is_found"),
    [
        ("store.bulk(operations)", True),
        ("account.list_databases()", True),
        ("call.gateway.account.list_containers(name)", True),
        ("read_items(store, None, 10)", True),
        ("paging.read_feed(store, position, 10)", True),
        ("read_items(store, None, 10, budget=None)", True),
        ("read_items(store, None, 10, call.budget)", False),
        ("paging.read_feed(store, position, 10, budget)", False),
        ("store.bulk(operations, budget=self._budget)", False),
    ],
)
def test_a_planted_call_without_one_is_found(tmp_path: Path, call: str, is_found: bool) -> None:
    imports = (
        "from armillary.store.items import paging\n"
        "from armillary.store.items.paging import read_items\n"
    )
    (tmp_path / "x.py").write_text(f"{imports}found = {call}\n")
    assert bool(forgetful_calls(tmp_path)) is is_found


# --- behaviour -----------------------------------------------------------------------------------

ITEMS: Final = 700  # more than two looks of a budget
KEY: Final = coerce("long")


class World(NamedTuple):
    account: AccountStore
    store: ContainerStore
    collection: ContainerStore
    snapshot: snapshots.Snapshot


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with armillary.open(":memory:", housekeeping=False) as account:
        database = account.create_database("d")
        container = database.create_container("c", "/pk")
        items = [{"id": str(n), "pk": "long", "n": n} for n in range(ITEMS)]
        items += [{"id": str(n), "pk": f"k{n}", "n": n} for n in range(ITEMS)]
        assert not any(container.upsert_all(items))
        policy = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/x/?"}]}
        database.replace_container("c", indexingPolicy=policy)  # a second one: there is progress
        database.create_container("m", "/pk", api="mongo")
        store = account.store.container("d", "c")
        snapshot = snapshots.begin(store)
        assert not any(container.upsert_all(items))
        yield World(account.store, store, account.store.container("d", "m"), snapshot)


def state_of(store: ContainerStore) -> Any:
    return [(one.items, one.lsn, one.size_bytes) for one in statistics.partitions(store)]


def creates(count: int) -> list[Operation]:
    return [Operation("create", body={"id": f"new{n}", "pk": "long"}) for n in range(count)]


def _offers(world: World, budget: Budget) -> Any:
    with world.account.engine.read(CATALOG_SPACE) as reader:
        return list_offers(reader, budget)


def _databases(world: World, budget: Budget) -> Any:
    with world.account.engine.read(CATALOG_SPACE) as reader:
        return list_databases(reader, budget)


def _containers(world: World, budget: Budget) -> Any:
    with world.account.engine.read(CATALOG_SPACE) as reader:
        return list_containers(reader, "d", budget)


def _scripts(world: World, budget: Budget) -> Any:
    return ResourceStore(world.account.engine, "sproc", world.store.state.record.rid).list(budget)


def _insert(world: World, budget: Budget) -> Any:
    store = world.collection
    made = ready(store.state, [{"id": "new", "pk": "long"}])
    assert made is not None
    return start_insert(store, store.state, made, KEY, budget=budget).future.result()


def _metrics(world: World) -> QueryMetrics:
    return QueryMetrics(world.store.profile)


def _bulk(world: World, budget: Budget, start: bool = False) -> Any:
    """Each operation stands for itself: the budget is the answer of those that were not sent."""
    asked = [(one, KEY) for one in (*creates(3), Operation("read", "1"))]
    run = world.store.start_bulk if start else world.store.bulk
    found = list(run(asked, budget=budget))
    assert len({type(one) for one in found}) == 1
    error = found[0]
    assert isinstance(error, DbError)
    raise error


TEXT = "SELECT * FROM c WHERE c.n >= 0"
LONG_LISTS: Final = frozenset(
    {
        "ContainerStore.batch",
        "ContainerStore.read_many",
        "query.run.pages.run_plan",
        "query.run.sql.run_plan",
        "query.run.sql.run_query",
        "query.run.sql.run_range",
        "store.items.paging.read_items",
        "store.items.paging.read_items_of_key",
        "store.items.paging.read_feed",
        "store.items.sent_batches.run_batch",
        "store.items.sent_batches.start_batch",
        "store.reports.statistics.logical_partitions",
        "store.snapshots.reading.before",
    }
)
"""Those with a loop that is long here: they end in its middle, too."""

CASES: Final[dict[str, Callable[[World, Budget], Any]]] = {
    "ContainerStore.batch": lambda w, b: w.store.batch(creates(100), KEY, b),
    "ContainerStore.bulk": _bulk,
    "ContainerStore.start_bulk": lambda w, b: _bulk(w, b, start=True),
    "ContainerStore.read_many": lambda w, b: w.store.read_many(
        [(str(n), KEY) for n in range(ITEMS)], b
    ),
    "AccountStore.list_databases": lambda w, b: w.account.list_databases(b),
    "AccountStore.list_containers": lambda w, b: w.account.list_containers("d", b),
    "ResourceStore.list": _scripts,
    "query.run.entries.count_of": lambda w, b: count_of(w.store, None, None, _metrics(w), b),
    "query.run.entries.runs_of": lambda w, b: runs_of(w.store, ("n",), _metrics(w), b),
    "query.run.pages.run_plan": lambda w, b: pages.run_plan(w.store, plan_of(TEXT, {}), budget=b),
    "query.run.sql.run_plan": lambda w, b: run_plan(w.store, plan_of(TEXT, {}), budget=b),
    "query.run.sql.run_query": lambda w, b: run_query(w.store, TEXT, budget=b),
    "query.run.sql.run_range": lambda w, b: run_range(
        w.store, TEXT, start=EPK_MIN, end=EPK_MAX, budget=b
    ),
    "store.catalog.records.list_databases": _databases,
    "store.catalog.records.list_containers": _containers,
    "store.inserts.sending.start_insert": _insert,
    "store.items.paging.feed_now": lambda w, b: paging.feed_now(w.store, "latest", budget=b),
    "store.items.paging.feed_since": lambda w, b: paging.feed_since(
        w.store, "latest", 2**33, budget=b
    ),
    "store.items.paging.read_feed": lambda w, b: paging.read_feed(
        w.store, Position("latest", (Segment(EPK_MIN, EPK_MAX, 0),)), 10_000, b
    ),
    "store.items.paging.read_items": lambda w, b: paging.read_items(w.store, None, 10_000, b),
    "store.items.paging.read_items_of_key": lambda w, b: paging.read_items_of_key(
        w.store, KEY, None, 10_000, b
    ),
    "store.items.sent_batches.run_batch": lambda w, b: run_batch(w.store, creates(ITEMS), KEY, b),
    "store.items.sent_batches.start_batch": lambda w, b: start_batch(
        w.store, creates(ITEMS), KEY, budget=b
    ).future.result(),
    "store.reports.heat.heat_report": lambda w, b: heat.heat_report(
        w.store, w.account.limits, budget=b
    ),
    "store.reports.partitions.partition_report": lambda w, b: partitions.partition_report(
        w.store, b
    ),
    "store.reports.statistics.index_counts": lambda w, b: statistics.index_counts(w.store, b),
    "store.reports.statistics.index_progress": lambda w, b: statistics.index_progress(w.store, b),
    "store.reports.statistics.logical_partitions": lambda w, b: statistics.logical_partitions(
        w.store, 5, b
    ),
    "store.reports.statistics.partitions": lambda w, b: statistics.partitions(w.store, b),
    "store.reports.usage.usage_report": lambda w, b: usage.usage_report(w.store, b),
    "store.snapshots.reading.before": lambda w, b: snapshots.before(w.store, w.snapshot, b),
    "store.throughput.offers.list_offers": _offers,
    "store.upkeep.containers.delete_by_key": lambda w, b: delete_by_key(w.store, KEY, b),
}
#: They have a runtime of their own, and tests of their own (tests/unit/scripts).
SCRIPTS: Final = {"scripts.executing.execute_procedure", "scripts.executing.execute_write"}


def test_every_operation_with_a_budget_is_tried() -> None:
    found = {name for name, one in operations(API).items() if takes_budget(one)}
    assert found == set(CASES) | SCRIPTS


def cancelled() -> Budget:
    budget = Budget()
    budget.cancel()
    return budget


@pytest.mark.parametrize("name", CASES)
def test_a_budget_that_is_over_ends_it_before_it_begins(world: World, name: str) -> None:
    before = state_of(world.store), state_of(world.collection)
    with pytest.raises(Abandoned):
        CASES[name](world, cancelled())
    with pytest.raises(OutOfTime):
        CASES[name](world, Budget(deadline=0.0))
    assert (state_of(world.store), state_of(world.collection)) == before


@pytest.mark.parametrize("name", sorted(LONG_LISTS))
def test_a_budget_that_ends_amid_it_ends_it(world: World, name: str) -> None:
    before = state_of(world.store)
    looks = chain([0.0], repeat(2.0))
    budget = Budget(deadline=1.0, now=lambda: next(looks))
    with pytest.raises(OutOfTime):
        CASES[name](world, budget)
    assert state_of(world.store) == before


def test_a_bulk_that_runs_out_of_time_answers_each_operation() -> None:
    """What was sent is written whole; what was not is answered by the reason."""
    with armillary.open(":memory:", housekeeping=False) as account:
        account.create_database("d").create_container("c", "/pk")
        store = account.store.container("d", "c")
        looks = chain(repeat(0.0, 300), repeat(2.0))
        budget = Budget(deadline=1.0, now=lambda: next(looks))
        found = store.bulk(((one, KEY) for one in creates(ITEMS)), budget=budget)
        assert [type(one) for one in found] == [Done] * 300 + [OutOfTime] * (ITEMS - 300)
        assert sum(one.items for one in statistics.partitions(store)) == 300


def test_a_time_is_looked_for_in_a_merged_range_within_a_budget() -> None:
    """The order of LSNs says nothing about time there, so its log is read from the beginning."""
    with armillary.open(":memory:", housekeeping=False) as account:
        container = account.create_database("d").create_container("c", "/pk")
        container.upsert_all({"id": str(n), "pk": f"k{n}"} for n in range(ITEMS))
        container.split(0)
        container.merge([one.id for one in container.partitions()])
        store = account.store.container("d", "c")
        looks = chain([0.0], repeat(2.0))
        with pytest.raises(OutOfTime):
            budget = Budget(deadline=1.0, now=lambda: next(looks))
            paging.feed_since(store, "latest", 2**33, budget=budget)


def test_a_deletion_that_runs_out_of_time_goes_on_when_it_is_asked_again() -> None:
    with armillary.open(":memory:", housekeeping=False) as account:
        container = account.create_database("d").create_container("c", "/pk")
        container.upsert_all({"id": str(n), "pk": "long"} for n in range(ITEMS))
        store = account.store.container("d", "c")
        looks = chain([0.0], repeat(2.0))
        with pytest.raises(OutOfTime):
            delete_by_key(store, KEY, Budget(deadline=1.0, now=lambda: next(looks)))
        left = sum(one.items for one in statistics.partitions(store))
        assert 0 < left < ITEMS
        assert delete_by_key(store, KEY) == left
