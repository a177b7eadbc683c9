"""Pages of a table whose ranges split under the reader: every entity that was there before comes
exactly once, by the asynchronous and by the JavaScript SDK (`test_table_python.py` has the
synchronous one)."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient
from azure.data.tables.aio import TableClient, TableServiceClient
from tests.support.node import modules_for, names_in, run_tests
from tests.support.table_server import TableServer

from armillary.api.core.settings import EMULATOR_KEY

FILE = Path(__file__).parent / "js" / "splits.test.js"


@pytest.fixture(scope="module")
def splitting() -> Iterator[TableServer]:
    with (
        tempfile.TemporaryDirectory() as folder,
        TableServer(Path(folder), ["--partition-bytes", "100KB"]) as server,
    ):
        yield server


async def fill(table: TableClient, prefix: str, keys: range, size: int) -> set[tuple[str, str]]:
    """Ten entities for each key, by transactions: far fewer requests."""
    for key in keys:
        rows = [
            {"PartitionKey": f"{prefix}{key}", "RowKey": str(n), "text": "x" * size}
            for n in range(10)
        ]
        await table.submit_transaction([("upsert", row) for row in rows])
    return {(f"{prefix}{key}", str(n)) for key in keys for n in range(10)}


def test_asyncio(splitting: TableServer) -> None:
    ranges = CosmosClient(splitting.nosql_url, EMULATOR_KEY).get_database_client("TablesDB")
    container = ranges.get_container_client("splitting")

    def count_ranges() -> int:
        return len(list(container.read_feed_ranges(force_refresh=True)))

    async def run() -> None:
        text = splitting.connection_string
        async with TableServiceClient.from_connection_string(text, retry_total=100) as service:
            table = await service.create_table(
                "splitting", headers={"x-ms-offer-throughput": "25000"}
            )
            wanted = await fill(table, "p", range(40), 300)
            before = await asyncio.to_thread(count_ranges)
            assert before >= 3
            seen: list[tuple[str, str]] = []
            number = 0
            async for page in table.list_entities(results_per_page=10).by_page():
                seen += [(row["PartitionKey"], row["RowKey"]) async for row in page]
                number += 1
                if number < 30 and await asyncio.to_thread(count_ranges) < before + 2:
                    await fill(table, "q", range(number * 4, number * 4 + 4), 2500)
                while number == 30 and await asyncio.to_thread(count_ranges) == before:
                    await asyncio.sleep(0.05)
            assert await asyncio.to_thread(count_ranges) > before
            assert len(seen) == len(set(seen))
            assert wanted <= set(seen)
            await service.delete_table("splitting")

    asyncio.run(run())


def test_javascript(splitting: TableServer) -> None:
    environ = {
        "TABLE_ENDPOINT": splitting.url,
        "TABLE_KEY": EMULATOR_KEY,
        "CONTROL": splitting.nosql_url,
    }
    outcomes = run_tests(FILE, modules_for(FILE.parent), environ)
    assert set(outcomes) == set(names_in(FILE))
    for outcome in outcomes.values():
        assert outcome.passed, outcome.error
        assert not outcome.skipped
