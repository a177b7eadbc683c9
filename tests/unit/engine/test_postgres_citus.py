"""On Citus the rows are distributed by space, so every transaction has one shard to go to."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest
from tests.support.counting import COUNTING, logged_after
from tests.support.postgres import CITUS_SERVER, fresh_url, open_postgres
from tests.support.waiting import until

from armillary.account import Account, open_account
from armillary.container import Container
from armillary.engine.base import META_KEY, Command
from armillary.engine.postgres.engine import PostgresEngine
from armillary.partition.budgets.ledger import Allowance
from armillary.partition.budgets.postgres import PostgresLedger
from armillary.partition.usage.postgres import PostgresStatistics

NOW_MS = 1_700_000_000_000

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(
        not os.environ.get(CITUS_SERVER),
        reason=f"{CITUS_SERVER} names no PostgreSQL with Citus",
    ),
]


@pytest.fixture
def engine() -> Iterator[PostgresEngine]:
    engine = open_postgres(COUNTING, fresh_url(os.environ[CITUS_SERVER]))
    yield engine
    engine.close()


def test_rows_are_distributed_by_space(engine: PostgresEngine) -> None:
    assert engine._statements.as_values
    with engine._reads.connection() as connection:
        found = connection.execute(
            "SELECT citus_table_type, distribution_column FROM citus_tables"
            " WHERE table_name = (%s || '.armillary_rows')::regclass",
            (engine._statements.schema,),
        ).fetchone()
    assert found == ("distributed", "space")


def test_every_statement_of_the_engine_works_there(engine: PostgresEngine) -> None:
    rows = [(META_KEY, b"0"), (b"\x21a", b"1"), (b"\x111", b"body"), (b"\x11a", b"x")]
    for space in (1, 2, 3):
        engine.create_space(space, rows)
    assert [engine.run(space, Command("add", b"")) for space in (1, 2, 1)] == [1, 1, 2]
    engine.run(1, Command("move", (b"\x11a", b"\x11b")))
    assert engine.read_via(1, b"\x21a", b"\x11") == (b"2", b"1", b"body")
    with engine.read(1) as reader:
        assert reader.get_via(b"\x21a", b"\x11") == (b"1", b"body")
        assert [key for key, _ in reader.scan(b"\x11", b"\x12", reverse=True)] == [
            b"\x11b",
            b"\x111",
        ]
    assert logged_after(engine, 1, 0) == [1, 2]
    engine.drop_space(2)
    assert engine.spaces() == [1, 3]


# --- placement ----------------------------------------------------------------------------------


@pytest.fixture
def account() -> Iterator[Account]:
    with open_account(fresh_url(os.environ[CITUS_SERVER]), housekeeping=False) as account:
        yield account


def _nodes(container: Container) -> Counter[str]:
    """How many ranges each node holds."""
    store = container._store
    spaces = [one.space for one in store.refresh().table.ranges]
    return Counter(store.engine.nodes(spaces).values())


def test_ranges_of_each_container_are_spread_evenly(account: Account) -> None:
    database = account.create_database("d")
    for number, ranges in enumerate((18, 2, 7)):
        container = database.create_container(f"c{number}", "/pk", physical_partitions=ranges)
        found = _nodes(container)
        assert sum(found.values()) == ranges
        assert max(found.values()) - min(found.values()) <= 1
        assert len(found) == 2


def test_children_of_a_split_go_where_the_container_has_fewest(account: Account) -> None:
    container = account.create_database("d").create_container("c", "/pk", physical_partitions=2)
    for number in range(40):
        container.create_item({"id": str(number), "pk": str(number)})
    for _ in range(4):
        container.split(int(container.partitions()[0].id))
        found = _nodes(container)
        assert max(found.values()) - min(found.values()) <= 1
    assert len(list(container.read_all_items())) == 40


def test_load_keyed_by_id_is_spread_over_nodes(account: Account) -> None:
    container = account.create_database("d").create_container("c", "/id", physical_partitions=17)
    for number in range(600):
        container.create_item({"id": f"order-{number}"})
    store = container._store
    nodes = store.engine.nodes([one.space for one in store.refresh().table.ranges])
    spaces = {str(one.ordinal): one.space for one in store.state.table.ranges}
    load: Counter[str] = Counter()
    for one in container.partitions():
        load[nodes[spaces[one.id]]] += one.items
    assert sum(load.values()) == 600
    assert max(load.values()) / (600 / len(load)) <= 1.3


def test_a_new_worker_is_used_by_a_rebalancing_while_servers_write() -> None:
    base = os.environ[CITUS_SERVER]
    with psycopg.connect(base, autocommit=True) as connection:
        workers = connection.execute(
            "SELECT node_name, node_port FROM citus_get_active_worker_nodes() ORDER BY 2"
        ).fetchall()
        new = workers[-1]
        use = "SELECT citus_set_node_property(%s, %s, 'shouldhaveshards', %s)"
        connection.execute(use, (*new, False))
        try:
            with open_account(fresh_url(base), housekeeping=False) as late:
                container = late.create_database("d").create_container(
                    "c", "/pk", physical_partitions=32
                )
                assert f"{new[0]}:{new[1]}" not in _nodes(container)
                written, stop = [0], threading.Event()

                def write() -> None:
                    while not stop.is_set():
                        name = str(written[0])
                        container.create_item({"id": name, "pk": name})
                        written[0] += 1

                thread = threading.Thread(target=write)
                thread.start()
                try:
                    connection.execute(use, (*new, True))
                    connection.execute(
                        "SELECT rebalance_table_shards(%s::regclass, max_shard_moves => 4,"
                        " shard_transfer_mode => 'force_logical')",
                        (f"{_schema(container)}.armillary_rows",),
                    )
                    after = written[0]
                    until(lambda: written[0] > after + 20 or not thread.is_alive())
                finally:
                    stop.set()
                    thread.join()
                names = {item["id"] for item in container.read_all_items()}
                assert names == {str(number) for number in range(written[0])}
                assert f"{new[0]}:{new[1]}" in _nodes(container)
        finally:
            connection.execute(use, (*new, True))


def _schema(container: Container) -> str:
    engine = container._store.engine
    assert isinstance(engine, PostgresEngine)
    return engine._statements.schema


def test_budgets_and_counters_are_not_only_on_the_coordinator() -> None:
    url = fresh_url(os.environ[CITUS_SERVER])
    ledgers = [PostgresLedger(url) for _ in range(2)]
    statistics = PostgresStatistics(url, NOW_MS)
    try:
        for ledger in ledgers:
            for key in range(1, 9):
                assert ledger.admit(Allowance(key, 4000.0), NOW_MS) is None
        statistics.recorder.record(1, b'["k"]', 5.0, 200, 1.0, "read", NOW_MS)
        statistics.recorder.flush(NOW_MS)
        state = ledgers[0].state(Allowance(1, 4000.0), NOW_MS)
        assert state.used == pytest.approx(400.0), "a slice of r/20 each"
        with psycopg.connect(os.environ[CITUS_SERVER]) as connection:
            found = connection.execute(
                "SELECT table_name::text, distribution_column FROM citus_tables"
                " WHERE table_name::text LIKE %s AND citus_table_type = 'distributed' ORDER BY 1",
                (url.rpartition("schema=")[2] + ".%",),
            ).fetchall()
        assert [(name.rpartition(".")[2], column) for name, column in found] == [
            ("armillary_counters", "partition"),
            ("armillary_ledger", "key"),
        ]
    finally:
        for ledger in ledgers:
            ledger.close()
        statistics.recorder.close()
