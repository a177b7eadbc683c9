"""On PostgreSQL the second request of a kind is answered on the event loop of the server, without a
thread. It must be the answer that the first one got."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest
from tests.support.postgres import fresh_url, server_url
from tests.support.server_process import ServerProcess
from tests.support.signed_http import Reply, SignedClient

import armillary

pytestmark = pytest.mark.postgres

CONTAINER = "dbs/d/colls/c"
OFF = ("--table-port", "off", "--mongo-port", "off", "--gremlin-port", "off")
QUERY = {"content-type": "application/query+json", "x-ms-documentdb-isquery": "True"}
#: Of each request, and of the moment.
VARIABLE = {"date", "x-ms-activity-id", "x-ms-request-duration-ms"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    url = fresh_url()
    with armillary.open(url) as account:
        container = account.create_database("d").create_container(
            "c", "/pk", throughput=100_000, physical_partitions=3
        )
        for number in range(60):
            item = {"id": f"i{number}", "pk": f"k{number}", "v": number % 6}
            container.create_item({**item, "large": "x" * 40_000} if number % 6 == 5 else item)
    folder: Path = tmp_path_factory.mktemp("server")
    made = ServerProcess(folder, real=True, options=("--engine", url, *OFF))
    try:
        made.wait_until_ready()
        yield made
    finally:
        made.close()


@pytest.fixture
def client(server: ServerProcess) -> Iterator[SignedClient]:
    made = SignedClient(server.port)
    yield made
    made.close()


def query(client: SignedClient, value: Any, ordinal: int, size: int = 100) -> Reply:
    body = {
        "query": "SELECT * FROM c WHERE c.v = @v",
        "parameters": [{"name": "@v", "value": value}],
    }
    more = {"x-ms-documentdb-partitionkeyrangeid": str(ordinal), "x-ms-max-item-count": str(size)}
    return client.ask("POST", f"/{CONTAINER}/docs", body, QUERY | more)


def said(answer: Reply) -> tuple[int, dict[str, str], Any]:
    headers = {name: text for name, text in answer.headers.items() if name not in VARIABLE}
    return answer.status, headers, orjson.loads(answer.body)


def test_reads_are_answered_as_the_first_one_was(client: SignedClient) -> None:
    """Hits, and misses, which the fast path leaves to the general one."""
    first = {number: said(client.read(CONTAINER, f"i{number}", f"k{number}")) for number in (1, 2)}
    for _ in range(20):
        for number, expected in first.items():
            assert said(client.read(CONTAINER, f"i{number}", f"k{number}")) == expected
        assert client.read(CONTAINER, "none", "k1").status == 404


def test_queries_are_answered_as_the_first_one_was(server: ServerProcess) -> None:
    """Few rows, none, more than a page, items too large for the loop, another type of value. The
    first of each has a connection of its own, which knows no fast path yet."""
    cases = [
        (value, ordinal, size)
        for value in (0, 5, "none", None)
        for ordinal in range(3)
        for size in (100, 2)
    ]
    expected = {}
    for case in cases:
        fresh = SignedClient(server.port)
        expected[case] = said(query(fresh, *case))
        fresh.close()
    rows = [expected[0, ordinal, 100][2]["_count"] for ordinal in range(3)]
    assert sum(rows) == 10
    client = SignedClient(server.port)
    for _ in range(3):
        for case in cases:
            assert said(query(client, *case)) == expected[case]
    client.close()


def test_creates_of_many_clients_are_all_there_and_conflicts_are_reported(
    server: ServerProcess,
) -> None:
    def work(at: int) -> list[int]:
        client = SignedClient(server.port)
        found = []
        for number in range(20):
            item = {"id": f"n{number}", "pk": f"c{at}", "v": "new"}
            created = client.create(CONTAINER, item)
            again = client.create(CONTAINER, item)
            read = client.read(CONTAINER, f"n{number}", f"c{at}")
            assert created.status == 201, created.body
            assert read.headers["etag"] == created.headers["etag"]
            assert read.body == created.body
            found += [again.status, read.status]
        client.close()
        return found

    with ThreadPoolExecutor(8) as threads:
        for found in threads.map(work, range(8)):
            assert found == [409, 200] * 20


def test_connections_that_an_administrator_ends_are_noticed_by_no_client(
    client: SignedClient,
) -> None:
    for number in range(30):
        assert client.read(CONTAINER, "i1", "k1").status == 200
        if number % 10 == 5:
            with psycopg.connect(server_url(), autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'armillary' AND state = 'idle'"
                )
