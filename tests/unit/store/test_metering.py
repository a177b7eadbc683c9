"""Every kind of request draws on the budget of the physical partition it touches."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import armillary
from armillary.clock import VirtualClock
from armillary.container import Container
from armillary.engine.opening import open_engine
from armillary.errors import Throttled
from armillary.partition.budgets.file import FileLedger
from armillary.partition.budgets.ledger import Allowance, Held
from armillary.partition.request_units import read_ru
from armillary.partition.usage.consumption import PartitionHeat
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.records import ensure_catalog
from armillary.store.commands import HANDLERS
from armillary.store.throughput.meter import Meter

REQUESTS: dict[str, Callable[[Container], object]] = {
    "read": lambda c: c.read_item("1", "a"),
    "create": lambda c: c.create_item({"id": "new", "k": "a"}),
    "batch": lambda c: c.execute_item_batch([("read", ("1",))], "a"),
    "page": lambda c: c.read_page(max_items=10),
    "page of a key": lambda c: c.read_page(partition_key="a", max_items=10),
    "change feed": lambda c: c.read_change_feed(max_items=10),
    "query": lambda c: list(c.query("SELECT * FROM c")),
    "query of a key": lambda c: list(c.query("SELECT * FROM c WHERE c.k = 'a'")),
}


def _container(clock: VirtualClock) -> Container:
    account = armillary.open(":memory:", clock=clock, enforce="on", housekeeping=False)
    container = account.create_database("d").create_container("c", "/k", throughput=400)
    container.create_item({"id": "1", "k": "a", "text": "x" * 900})
    clock.advance(1)
    return container


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_charged_to_its_partition(name: str) -> None:
    container = _container(VirtualClock())
    before = container.heat()["0"].ru_total
    REQUESTS[name](container)
    assert container.heat()["0"].ru_total >= before + 1


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_refused_when_the_second_is_used_up(name: str) -> None:
    clock = VirtualClock()
    container = _container(clock)
    with pytest.raises(Throttled):
        for _ in range(1000):
            container.read_item("1", "a")
    with pytest.raises(Throttled) as refused:
        REQUESTS[name](container)
    clock.advance(refused.value.facts["retry_after_ms"] / 1000)
    REQUESTS[name](container)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM c WHERE c.n = 1",
        "SELECT * FROM c WHERE c.n = 1 ORDER BY c.n",
        "SELECT COUNT(1) FROM c WHERE c.n = 1 GROUP BY c.m",
    ],
)
def test_every_partition_that_a_query_asks_is_charged_for_it(text: str) -> None:
    """All on the first would make it look hot, and the others free."""
    account = armillary.open(":memory:", clock=VirtualClock(), enforce="on", housekeeping=False)
    container = account.create_database("d").create_container("c", "/k", throughput=20_000)
    assert list(container.query(text)) == []
    heat = container.heat()
    assert [heat[one.id].ru_total for one in container.partitions()] == [2.5] * 4


def test_report_counts_and_refuses_nothing() -> None:
    account = armillary.open(":memory:", clock=VirtualClock(), enforce="report", housekeeping=False)
    container = account.create_database("d").create_container("c", "/k", throughput=400)
    container.create_item({"id": "1", "k": "a"})
    for _ in range(1000):
        container.read_item("1", "a")
    assert container.heat()["0"].ru_total > 1000


def test_latency_is_that_of_the_request() -> None:
    """A cost that comes after the work is no request of its own with a latency since 1970."""
    container = _container(VirtualClock())
    for _ in range(3):
        list(container.query("SELECT * FROM c ORDER BY c.text"))
    heat = container.heat()["0"]
    assert heat.latency_p99_ms == 0.0, "no virtual time passed"


def test_requests_about_metadata_are_counted_on_a_data_folder_too(tmp_path: Path) -> None:
    """They were left out wherever counts lie in files, so the metrics of a server had none."""
    with armillary.open(tmp_path / "data", enforce="on", housekeeping=False) as account:
        meter = account.store.meter
        assert meter is not None
        meter.note_metadata(201)
        found = meter.metadata()
        assert found is not None
        assert found.requests == {("other", 201): 1}


@pytest.mark.parametrize("ru", [400, 2_000, 4_000])
def test_a_slice_at_hand_admits_and_charges_like_the_ledger(ru: int, tmp_path: Path) -> None:
    """Whether a budget is shared directly or in slices: the same refusals in the same places, and
    the same numbers afterwards."""

    class Distant(FileLedger):
        def held(self, allowance: Allowance, now_ms: int) -> Held | None:
            return None

    seen: list[tuple[list[int | None], PartitionHeat]] = []
    for way, ledger in (("distant", Distant), ("at hand", FileLedger)):
        clock, chance = VirtualClock(), Random(ru)
        (tmp_path / way).mkdir()
        engine = open_engine(":memory:", HANDLERS, clock=clock)
        ensure_catalog(engine)
        meter = Meter(engine, ledger(tmp_path / way / "ledger.bin"))
        account = AccountStore(engine, random=Random(1), meter=meter)
        account.create_database("d")
        body = {"id": "c", "partitionKey": {"paths": ["/k"]}}
        account.create_container("d", body, throughput=("manual", ru), physical_partitions=1)
        state = account.container("d", "c").state
        owner = state.table.ranges[0]
        outcomes: list[int | None] = []
        for number in range(3_000):
            clock.advance(chance.choice([0, 0, 0, 0.001, 0.05]))
            size, key = chance.choice([100, 5_000, 900_000]), b'["%d"]' % (number % 7)
            try:
                ticket = meter.admit(state, owner, "read")
                meter.charge(state, owner, key, read_ru(size), "read", 200, ticket)
                outcomes.append(None)
            except Throttled as error:
                outcomes.append(error.facts["retry_after_ms"])
        seen.append((outcomes, meter.heat(state)[owner.ordinal]))
        meter.close()
        engine.close()
    assert seen[0] == seen[1]
    assert any(seen[0][0]), "some were refused"
