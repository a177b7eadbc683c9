"""After a failover the session versions of all ranges leap: a server that goes on must not hand out
tokens of the time before, which any standby would seem to cover."""

import pytest
from tests.support.nosql import api

from armillary.engine.base import Command


def test_tokens_of_writes_and_reads_leap_together(monkeypatch: pytest.MonkeyPatch) -> None:
    with api() as made:
        monkeypatch.setattr(type(made.engine), "lineage", "the first")
        body = {"id": "a", "pk": "k"}
        headers = {"x-ms-documentdb-partitionkey": '["k"]'}
        written = made.ask("POST", "/dbs/d/colls/c/docs", body, headers=headers)
        before = written.headers["x-ms-session-token"]
        assert before == "0:-1#1"
        (owner,) = made.account.container("d", "c").state.table.ranges
        made.engine.run(owner.space, Command("items.leap", None))
        monkeypatch.setattr(type(made.engine), "lineage", "the promoted one")
        body = {"id": "b", "pk": "k"}
        written = made.ask("POST", "/dbs/d/colls/c/docs", body, headers=headers)
        read = made.ask("GET", "/dbs/d/colls/c/docs/b", headers=headers)
        assert written.headers["x-ms-session-token"] == read.headers["x-ms-session-token"]
        assert read.headers["x-ms-session-token"].startswith("0:0#")
