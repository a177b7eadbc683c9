"""A database that was put back to an earlier moment: what clients saw of the lost future means
nothing, and no number is given out twice."""

from __future__ import annotations

import psycopg
import pytest
from tests.support.postgres import fresh_url, server_url
from typer.testing import CliRunner

import armillary
from armillary.cli import app
from armillary.limits import LSN_LEAP
from armillary.store.rows.meta import Meta, unpack_meta

pytestmark = pytest.mark.postgres


def _metas(url: str) -> list[Meta]:
    with armillary.open(url) as account:
        spaces = [space for space in account.store.engine.spaces() if space]
        found = []
        for space in spaces:
            with account.store.engine.read(space) as reader:
                found.append(unpack_meta(reader.meta))
    return found


def _filled() -> str:
    url = fresh_url()
    with armillary.open(url) as account:
        container = account.create_database("d").create_container("c", "/pk")
        container.create_item({"id": "1", "pk": "a"})
    return url


def test_restored_goes_on_above_all_that_was_given_out() -> None:
    url = _filled()
    (before,) = _metas(url)
    done = CliRunner().invoke(app, ["restored", "--data", url, "--json"])
    assert done.exit_code == 0, done.output
    assert '"partitions":1' in done.output.replace(" ", "")
    (after,) = _metas(url)
    assert after.lsn == before.lsn + LSN_LEAP
    assert after.rids == before.rids + LSN_LEAP
    assert after.session == before.session + 1


@pytest.mark.parametrize("column", ["system_id", "timeline"])
def test_another_system_or_timeline_is_noticed_once(column: str) -> None:
    """As after pg_restore into another server, or PostgreSQL's own recovery to a moment."""
    url = _filled()
    (before,) = _metas(url)
    schema = url.rpartition("schema=")[2]
    with psycopg.connect(server_url(), autocommit=True) as connection:
        change = f"UPDATE {schema}.armillary_format SET {column} = {column} - 1"
        connection.execute(change.encode())
    for _ in range(2):
        (after,) = _metas(url)
        assert after.lsn == before.lsn + LSN_LEAP
        assert after.session == before.session + 1
    with armillary.open(url) as account:
        container = account.database("d").container("c")
        assert container.read_item("1", partition_key="a")["id"] == "1"


def test_nothing_is_noticed_where_nothing_happened() -> None:
    url = _filled()
    assert _metas(url)[0].lsn == _metas(url)[0].lsn
