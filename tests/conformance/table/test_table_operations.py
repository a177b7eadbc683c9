"""What operators have over the Table API: faults, the request log, metrics, read-only and secondary
keys, PostgreSQL. By the official SDK against `armillary serve`."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.data.tables import TableClient, TableServiceClient, UpdateMode
from tests.support.postgres import fresh_url
from tests.support.table_server import TableServer

SECONDARY = base64.b64encode(b"s" * 64).decode()
READ_ONLY = base64.b64encode(b"r" * 64).decode()
PRIMARY = base64.b64encode(b"p" * 64).decode()
ENTITY = {"PartitionKey": "p", "RowKey": "r", "n": 1}


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableServer]:
    folder = tmp_path_factory.mktemp("operated")
    keys = folder / "keys"
    keys.write_text(f"{PRIMARY}\n{SECONDARY}\nread-only {READ_ONLY}\n")
    keys.chmod(0o600)
    settings = folder / "armillary.toml"
    settings.write_text(f'[server]\nkey_file = "{keys}"\n[throughput]\nenforce = "off"\n')
    with TableServer(folder / "data", ["--config", str(settings)]) as server:
        yield server


def service_of(server: TableServer, key: str, **options: Any) -> TableServiceClient:
    named = AzureNamedKeyCredential("localhost", key)
    return TableServiceClient(server.url, credential=named, **options)


@pytest.fixture(scope="module")
def table(operated: TableServer) -> Iterator[TableClient]:
    with service_of(operated, PRIMARY) as service:
        yield service.create_table_if_not_exists("operated")


def control(server: TableServer, method: str, path: str, body: Any = None) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", server.process.port, timeout=60)
    try:
        headers = {"authorization": f"Bearer {PRIMARY}"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text
        return text
    finally:
        connection.close()


@pytest.mark.parametrize("operation", ["read", "create", "replace", "patch", "delete", "query"])
def test_faults_strike_each_operation(
    operated: TableServer, table: TableClient, operation: str
) -> None:
    """Also those that the connection has a template for by then."""
    calls: dict[str, Callable[[], object]] = {
        "read": lambda: table.get_entity("p", "r", retry_total=0),
        "create": lambda: table.create_entity({**ENTITY, "RowKey": "other"}, retry_total=0),
        "replace": lambda: table.upsert_entity(ENTITY, mode=UpdateMode.REPLACE, retry_total=0),
        "patch": lambda: table.upsert_entity(ENTITY, retry_total=0),
        "delete": lambda: table.delete_entity("p", "other", retry_total=0),
        "query": lambda: list(table.query_entities("n eq 1", retry_total=0)),
    }
    table.upsert_entity(ENTITY)
    table.delete_entity("p", "other")
    for _ in range(2):
        table.get_entity("p", "r")
        table.upsert_entity(ENTITY, mode=UpdateMode.REPLACE)
    fault = {"match": {"operation": operation, "container": "operated"}, "effect": "429"}
    control(operated, "PUT", "/_armillary/faults", [{**fault, "value": 10, "times": 1}])
    with pytest.raises(HttpResponseError) as found:
        calls[operation]()
    refusal: Any = found.value
    assert refusal.status_code == 429
    assert "TooManyRequests" in str(refusal)
    assert refusal.response.headers["x-ms-retry-after-ms"] == "10"
    calls[operation]()  # once only
    assert json.loads(control(operated, "GET", "/_armillary/faults")) == []


def test_a_fault_is_retried_by_the_sdk(operated: TableServer, table: TableClient) -> None:
    table.upsert_entity(ENTITY)
    fault = {"match": {"operation": "read"}, "effect": "503", "times": 1}
    control(operated, "PUT", "/_armillary/faults", [fault])
    assert table.get_entity("p", "r", retry_backoff_factor=0)["n"] == 1


def test_keys_are_what_they_say(operated: TableServer, table: TableClient) -> None:
    table.upsert_entity(ENTITY)
    with service_of(operated, SECONDARY) as service:
        again = service.get_table_client("operated")
        again.upsert_entity({**ENTITY, "n": 2})
        assert again.get_entity("p", "r")["n"] == 2
    with service_of(operated, READ_ONLY) as service:
        reader = service.get_table_client("operated")
        for _ in range(3):  # by template too
            assert reader.get_entity("p", "r")["n"] == 2
        assert [one["n"] for one in reader.query_entities("PartitionKey eq 'p'")] == [2]
        assert "operated" in [one.name for one in service.list_tables()]
        for call in (
            lambda: reader.upsert_entity(ENTITY),
            lambda: reader.delete_entity("p", "r"),
            lambda: reader.submit_transaction([("upsert", ENTITY)]),
            lambda: service.create_table("mine"),
            lambda: service.delete_table("operated"),
        ):
            with pytest.raises(HttpResponseError) as refused:
                call()
            assert refused.value.status_code == 403
    with service_of(operated, base64.b64encode(b"x" * 64).decode()) as service:
        with pytest.raises((ClientAuthenticationError, HttpResponseError)) as wrong:
            service.get_table_client("operated").get_entity("p", "r")
        assert wrong.value.status_code == 401
    assert table.get_entity("p", "r")["n"] == 2


def test_metrics_count_tables(operated: TableServer, table: TableClient) -> None:
    table.upsert_entity(ENTITY)
    table.get_entity("p", "r")
    lines = control(operated, "GET", "/metrics").decode().splitlines()
    mine = [line for line in lines if 'CollectionName="operated"' in line]
    assert any("TotalRequests{" in line and 'OperationType="read"' in line for line in mine)
    assert any("TotalRequests{" in line and 'OperationType="upsert"' in line for line in mine)
    assert any("DocumentCount{" in line for line in mine)
    assert any("TotalRequestUnits{" in line for line in mine)


@pytest.mark.postgres
def test_tables_on_postgresql(tmp_path: Path) -> None:
    """Two servers on one database, and transactions that are all or nothing."""
    options = ["--engine", fresh_url()]
    with TableServer(tmp_path / "a", options) as one, TableServer(tmp_path / "b", options) as other:
        with one.client() as service:
            table = service.create_table("shared")
            rows = [{"PartitionKey": "p", "RowKey": str(n), "n": n} for n in range(5)]
            table.submit_transaction([("create", row) for row in rows])
            with pytest.raises(HttpResponseError):
                table.submit_transaction(
                    [("upsert", {**rows[0], "n": 9}), ("create", {**rows[1], "n": 9})]
                )
        with other.client() as service:
            table = service.get_table_client("shared")
            assert [row["n"] for row in table.query_entities("n ge 2")] == [2, 3, 4]
            assert table.get_entity("p", "0")["n"] == 0
            table.upsert_entity({**rows[0], "m": 1})
            assert dict(table.get_entity("p", "0")) == {**rows[0], "m": 1}
            pages = table.list_entities(results_per_page=2).by_page()
            assert [len(list(page)) for page in pages] == [2, 2, 1]


def test_requests_are_logged(tmp_path: Path) -> None:
    """Those that went by template too, and no key or signature with them."""
    settings = tmp_path / "armillary.toml"
    settings.write_text('[log]\nrequests = true\nlevel = "info"\nformat = "json"\n')
    server = TableServer(tmp_path / "data", ["--config", str(settings)])
    try:
        with server.client() as service:
            table = service.create_table("logged")
            for _ in range(3):
                table.upsert_entity(ENTITY, mode=UpdateMode.REPLACE)
                table.get_entity("p", "r")
            list(table.query_entities("n eq 1"))
            table.submit_transaction([("upsert", ENTITY)])
        server.process.terminate()
        code, _, errors = server.process.end()
    finally:
        server.process.close()
    assert code == 0
    lines = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    logged = [
        line for line in lines if line.get("logger", line.get("name")) == "armillary.requests"
    ]
    told = [(one["OperationName"], one["StatusCode"]) for one in logged]
    assert told.count(("Replace", 204)) == 3
    assert told.count(("Read", 200)) == 3
    assert ("Query", 200) in told
    assert ("Batch", 202) in told
    assert "SharedKey" not in errors
    reads = [one for one in logged if one["OperationName"] == "Read"]
    assert all(one["RequestCharge"] == reads[0]["RequestCharge"] for one in reads)
