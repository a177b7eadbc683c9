"""Requests that a connection answers from their bytes, when the budget is spent. Without this test
a refusal there could be an error 500, or be counted twice."""

from __future__ import annotations

import http.client
import json
from typing import Any

from tests.support.signed_http import SignedClient

from armillary.testing.process import Server, start_server

ITEM = "dbs/d/colls/c/docs/small"
KEY = {"x-ms-documentdb-partitionkey": '["k"]'}
QUERY = {
    **KEY,
    "content-type": "application/query+json",
    "x-ms-documentdb-isquery": "true",
}
TEXT = {"query": "SELECT * FROM c WHERE c.id = 'small'", "parameters": []}


def refused(server: Server, port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"authorization": f"Bearer {server.key}"}
    connection.request("GET", "/_armillary/dbs/d/colls/c/heat?keys=off", headers=headers)
    report: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return int(report["partitions"][0]["refused"])


def test_a_known_read_without_budget_is_a_429_and_counted_once() -> None:
    with start_server(enforce=True) as server:
        port = int(server.endpoint.rstrip("/").rpartition(":")[2])
        client = SignedClient(port)
        assert client.ask("POST", "/dbs", {"id": "d"}).status == 201
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        assert client.ask("POST", "/dbs/d/colls", {"id": "c", "partitionKey": key}).status == 201
        small = {"id": "small", "pk": "k"}
        assert client.ask("POST", "/dbs/d/colls/c/docs", small, KEY).status == 201
        for _ in range(8):  # the connection gets a template of such requests
            assert client.ask("GET", f"/{ITEM}", None, KEY).status == 200
            assert client.ask("POST", "/dbs/d/colls/c/docs", TEXT, QUERY).status == 200
        large = {"id": "large", "pk": "k", "text": "x" * 1_500_000}  # a debt of many seconds
        assert client.ask("POST", "/dbs/d/colls/c/docs", large, KEY).status == 201
        before = refused(server, port)
        assert [client.ask("GET", f"/{ITEM}", None, KEY).status for _ in range(3)] == [429] * 3
        assert refused(server, port) == before + 3
        assert client.ask("POST", "/dbs/d/colls/c/docs", TEXT, QUERY).status in (200, 429)
        client.close()
