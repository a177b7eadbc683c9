"""Without this, a store that reached the end of its map could answer 500, or refuse reads too."""

from __future__ import annotations

from pathlib import Path

from tests.support.nosql import Api, document, pk

from armillary.clock import new_random
from armillary.engine.opening import open_engine
from armillary.store.catalog.accounts import AccountStore
from armillary.store.commands import HANDLERS

MB = 1 << 20


class SmallApi(Api):
    """On a folder whose map ends soon."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.close()
        self.engine = open_engine(
            folder, HANDLERS, durability="relaxed", clock=self.clock, map_bytes=4 * MB
        )
        self.account = AccountStore(self.engine, random=new_random(1))
        self.open()


def test_a_full_map_refuses_writes_serves_reads_and_passes(tmp_path: Path) -> None:
    api = SmallApi(tmp_path / "data")
    try:
        api.account.create_database("d")
        for name in ("c", "other"):
            body = {"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
            api.account.create_container("d", body)
        written = 0
        text = "x" * 30_000
        while (answer := api.item({"id": str(written), "pk": "a", "t": text})).status == 201:
            written += 1
            assert written < 1_000
        assert answer.status == 403
        assert "bytes left" in document(answer)["message"]
        assert written > 10
        assert api.ask("GET", "/dbs/d/colls/c/docs/0", None, pk("a")).status == 200
        query = {"query": "SELECT VALUE COUNT(1) FROM c"}
        flags = {"x-ms-documentdb-isquery": "true", **pk("a")}
        found = api.ask("POST", "/dbs/d/colls/c/docs", query, flags)
        assert document(found)["Documents"] == [written]
        refused = {"id": "r", "pk": "a"}
        assert api.item(refused, "/dbs/d/colls/other/docs").status == 403
        assert api.ask("DELETE", "/dbs/d/colls/c").status == 204  # what frees is let through
        assert api.item(refused, "/dbs/d/colls/other/docs").status == 201
    finally:
        api.close()
