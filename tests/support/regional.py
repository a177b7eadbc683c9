"""One account in several regions, without sockets: a service for each, asked as SDKs ask.

west    the region of the primary
east    the region of a standby, which a test may stop where it is
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.nosql import Api, document, pk
from tests.support.pg_cluster import PgServer

from armillary.api.control.service import Controls
from armillary.api.core.opening import open_gateway
from armillary.api.http.messages import Response
from armillary.api.http.mounts import Mounts
from armillary.api.nosql.service import NosqlService
from armillary.config import Settings
from armillary.engine.opening import open_engine
from armillary.store.commands import HANDLERS

WEST, EAST = "West Europe", "East US"
DOCS = "/dbs/d/colls/c/docs"
ENDPOINTS = (f"{WEST}=http://west:8081", f"{EAST}=http://east:8081")


class Regional(Api):
    """The service of one region."""

    def __init__(self, host: str, settings: Settings, engine: Any = None) -> None:
        self.host = host
        self.owns_engine = engine is None
        self.engine = engine or open_engine(settings.engine.url, HANDLERS)
        self.gateway = open_gateway(self.engine, settings, first=False)
        self.account = self.gateway.account
        self.clock = self.gateway.shared.own_clock  # type: ignore[assignment]
        self.service = NosqlService(self.gateway)
        self.port = Mounts(self.service, (Controls(self.gateway),))

    def signed(self, *arguments: Any, **options: Any) -> dict[str, str]:
        return super().signed(*arguments, **options) | {"host": self.host}

    def put(self, value: int, item_id: str = "x") -> Response:
        """Write a value; the answer has the session token."""
        headers = pk("a") | {"x-ms-documentdb-is-upsert": "true"}
        reply = self.ask("POST", DOCS, {"id": item_id, "pk": "a", "value": value}, headers)
        assert reply.status in (200, 201), reply.body
        return reply

    def get(self, level: str, token: str | None = None, item_id: str = "x") -> Response:
        headers = pk("a") | {"x-ms-consistency-level": level}
        if token is not None:
            headers["x-ms-session-token"] = token
        return self.ask("GET", f"{DOCS}/{item_id}", headers=headers)

    def value(self, level: str, token: str | None = None, item_id: str = "x") -> int | None:
        """None: it is not there."""
        reply = self.get(level, token, item_id)
        assert reply.status in (200, 404), (reply.status, reply.body)
        return document(reply)["value"] if reply.status == 200 else None

    def queried(self, level: str, token: str | None = None) -> list[int]:
        headers = {
            "x-ms-documentdb-isquery": "True",
            "x-ms-documentdb-query-enablecrosspartition": "True",
            "x-ms-consistency-level": level,
            "content-type": "application/query+json",
        } | ({} if token is None else {"x-ms-session-token": token})
        query = {"query": 'SELECT VALUE c["value"] FROM c'}
        reply = self.ask("POST", DOCS, query, headers)
        assert reply.status == 200, reply.body
        return list(document(reply)["Documents"])

    def close(self) -> None:
        self.shut()
        if self.owns_engine:
            self.engine.close()


def settings_of(
    databases: list[PgServer], here: str, replica: PgServer, consistency: str = "Strong"
) -> Settings:
    hosts = ",".join(f"127.0.0.1:{one.port}" for one in databases)
    return Settings.of(
        {
            "engine": {"url": f"postgresql://postgres@{hosts}/postgres?schema=regions"},
            "api": {"consistency": consistency},
            "throughput": {"enforce": "off"},
            "regions": {"here": here, "endpoints": ENDPOINTS},
            "replicas": {"urls": (f"{EAST}={replica.url}",)},
        }
    )


@contextmanager
def two_regions(
    databases: list[PgServer], consistency: str = "Strong"
) -> Iterator[tuple[Regional, Regional]]:
    """On a primary and its standby."""
    west = Regional("west:8081", settings_of(databases, WEST, databases[1], consistency))
    try:
        east = Regional("east:8081", settings_of(databases, EAST, databases[1], consistency))
        try:
            west.account.create_database("d")
            body = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
            west.account.create_container("d", body)
            yield west, east
        finally:
            east.close()
    finally:
        west.close()


def token_of(reply: Response) -> str:
    return reply.headers["x-ms-session-token"]
