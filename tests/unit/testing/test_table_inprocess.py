"""The SDK for tables on an account in process: no server, no sockets."""

import asyncio

import pytest
from azure.core.exceptions import ResourceExistsError, ServiceRequestError
from azure.data.tables import TableServiceClient, TableTransactionError

from armillary.testing import Cosmos


def test_tables_in_process(table_service_client: TableServiceClient) -> None:
    table = table_service_client.create_table("people")
    table.create_entity({"PartitionKey": "p", "RowKey": "1", "n": 1})
    with pytest.raises(ResourceExistsError):
        table.create_entity({"PartitionKey": "p", "RowKey": "1"})
    table.update_entity({"PartitionKey": "p", "RowKey": "1", "m": 2})
    assert dict(table.get_entity("p", "1")) == {"PartitionKey": "p", "RowKey": "1", "n": 1, "m": 2}
    table.submit_transaction([("upsert", {"PartitionKey": "p", "RowKey": str(n)}) for n in (2, 3)])
    with pytest.raises(TableTransactionError):
        table.submit_transaction([("create", {"PartitionKey": "p", "RowKey": "2"})])
    assert len(list(table.query_entities("PartitionKey eq 'p'"))) == 3


def test_one_account_for_both_apis() -> None:
    with Cosmos(frozen=True) as cosmos:
        cosmos.table_service().create_table("t").create_entity(
            {"PartitionKey": "p", "RowKey": "r", "n": 1}
        )
        container = cosmos.client().get_database_client("TablesDB").get_container_client("t")
        assert container.read_item("r", "p")["n"] == {"$t": 16, "$v": 1}
        client = cosmos.table_service(retry_total=0)
    with pytest.raises(ServiceRequestError):
        list(client.list_tables())


def test_asyncio_in_process() -> None:
    async def run() -> int:
        with Cosmos() as cosmos:
            async with cosmos.async_table_service() as service:
                table = await service.create_table("t")
                rows = [{"PartitionKey": "p", "RowKey": str(n)} for n in range(5)]
                await table.submit_transaction([("create", row) for row in rows])
                return len([row async for row in table.list_entities(results_per_page=2)])

    assert asyncio.run(run()) == 5
