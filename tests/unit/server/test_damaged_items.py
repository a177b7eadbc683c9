"""A server over an item whose bytes changed on disk. Without this, a client could be sent bytes
that were never written, the answer could look like a bug, or the log would not say so."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.server_process import ServerProcess
from tests.support.signed_http import SignedClient
from tests.unit.operate.test_damage import damage

import armillary
from armillary.store.rows import layout

CONTAINER = "dbs/shop/colls/orders"
QUERY = {
    "x-ms-documentdb-isquery": "True",
    "content-type": "application/query+json",
    "x-ms-documentdb-query-enablecrosspartition": "True",
}


def test_a_damaged_item_is_an_error_of_the_protocol_and_a_line_in_the_log(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with armillary.open(data, housekeeping=False) as account:
        orders = account.create_database("shop").create_container("orders", "/pk")
        orders.upsert_all({"id": str(n), "pk": "a", "n": n} for n in range(20))
    assert damage(data, layout.DOC, -20) == 1
    server = ServerProcess(data, real=True)
    try:
        server.wait_until_ready()
        client = SignedClient(server.port)
        asked = {"query": "SELECT * FROM c WHERE c.n = 0"}
        for _ in range(3):  # from the second on by the fast paths
            assert client.read(CONTAINER, "1", "a").status == 200
            for reply in (
                client.read(CONTAINER, "0", "a"),
                client.ask("POST", f"/{CONTAINER}/docs", asked, QUERY),
                client.ask("GET", f"/{CONTAINER}/docs"),
            ):
                assert reply.status == 500
                assert "is damaged" in json.loads(reply.body)["message"]
        client.close()
        server.terminate()
        code, _, errors = server.end()
    finally:
        server.close()
    assert code == 0
    assert "a bug" not in errors
    lines = [one for one in errors.splitlines() if "damaged data" in one]
    assert len(lines) == 9
    assert all(CONTAINER in one for one in lines)
