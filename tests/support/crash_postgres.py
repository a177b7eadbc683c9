"""Killing clients of PostgreSQL: the server goes on with what it was sent.

A killed client has no say in what its backend still does: a commit that was on its way happens a
moment later. So the check waits until every backend of the dead client has gone.
"""

from __future__ import annotations

import time
import uuid

import psycopg
from tests.support.postgres import fresh_url, server_url

GONE_SECONDS_MAX = 120.0


def own_address() -> tuple[str, str]:
    """(the address of an empty schema, the name under which its clients are known)"""
    name = f"crash-{uuid.uuid4().hex[:12]}"
    return f"{fresh_url()}&application_name={name}", name


def wait_for_backends(address: str, name: str) -> None:
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
    deadline = time.monotonic() + GONE_SECONDS_MAX
    left = -1
    with psycopg.connect(server_url(), autocommit=True) as connection:
        while time.monotonic() < deadline:
            ((left,),) = connection.execute(query, (name,)).fetchall()
            if left == 0:
                return
            time.sleep(0.01)
    raise AssertionError(f"{address} still has {left} backends of a dead client")
