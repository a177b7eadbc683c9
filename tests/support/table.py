"""The Table API without sockets: an account in memory, and requests signed as SDKs sign them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

from tests.support.nosql import READ_ONLY_KEY, SECONDARY_KEY

from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings
from armillary.api.http.messages import Request, Response
from armillary.api.table.flavours import COSMOS, STORAGE, Flavour
from armillary.api.table.service import TableService
from armillary.clock import VirtualClock, new_random
from armillary.engine.opening import open_engine
from armillary.store.catalog.accounts import AccountStore
from armillary.store.commands import HANDLERS

__all__ = ["COSMOS", "STORAGE", "TableApi", "entity_path", "error_of", "table_api"]


def hmac_text(key: str, text: str) -> str:
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def shared_key(
    key: str, account: str, method: str, path: str, headers: dict[str, str], *, lite: bool = False
) -> str:
    """As the documents describe it; written again here, so that one mistake can't hide another."""
    where, _, query = path.partition("?")
    resource = f"/{account}{where}"
    for pair in query.split("&"):
        if pair.startswith("comp="):
            resource += f"?{pair}"
    lines = [headers["x-ms-date"], resource]
    if not lite:
        lines = [method, headers.get("content-md5", ""), headers.get("content-type", ""), *lines]
    scheme = "SharedKeyLite" if lite else "SharedKey"
    return f"{scheme} {account}:{hmac_text(key, chr(10).join(lines))}"


def entity_path(table: str, partition_key: str, row_key: str) -> str:
    keys = (quote(one.replace("'", "''"), safe="") for one in (partition_key, row_key))
    return "/{}(PartitionKey='{}',RowKey='{}')".format(quote(table, safe=""), *keys)


class TableApi:
    """One service, asked directly."""

    def __init__(self, flavour: Flavour = COSMOS, settings: GatewaySettings | None = None) -> None:
        self.clock = VirtualClock()
        self.engine = open_engine(":memory:", HANDLERS, clock=self.clock)
        self.account = AccountStore(self.engine, random=new_random(1))
        keys = (EMULATOR_KEY, SECONDARY_KEY)
        self.gateway = Gateway(
            self.account,
            settings or GatewaySettings(keys=keys, read_only_keys=(READ_ONLY_KEY,)),
        )
        self.service = TableService(self.gateway, flavour)

    def date(self, shift_s: int = 0) -> str:
        return formatdate(self.clock.now_ms() // 1000 + shift_s, usegmt=True)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        key: str = EMULATOR_KEY,
        account: str = "localhost",
        lite: bool = False,
        shift_s: int = 0,
    ) -> Response:
        raw = body if isinstance(body, bytes) else b""
        if body is not None and not isinstance(body, bytes):
            raw = json.dumps(body).encode()
        sent = {"host": "localhost:8902", "x-ms-date": self.date(shift_s), "accept": ""}
        if raw:
            sent["content-type"] = "application/json"
        sent |= headers or {}
        sent["authorization"] = shared_key(key, account, method, path, sent, lite=lite)
        return self.service.handle(Request(method, path, sent, raw))

    def send(
        self, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b""
    ) -> Response:
        """Without a signature."""
        return self.service.handle(
            Request(method, path, {"host": "localhost:8902"} | (headers or {}), body)
        )

    def get(self, table: str, partition_key: str, row_key: str) -> dict[str, Any]:
        response = self.ask("GET", entity_path(table, partition_key, row_key))
        assert response.status == 200, response.body
        found: dict[str, Any] = json.loads(response.body)
        return found

    def query(self, table: str, text: str = "", **options: str) -> list[dict[str, Any]]:
        """All pages."""
        found: list[dict[str, Any]] = []
        parameters = dict(options) | ({"$filter": text} if text else {})
        while True:
            query = "&".join(
                f"{name}={quote(value, safe='')}" for name, value in parameters.items()
            )
            response = self.ask("GET", f"/{table}()?{query}")
            assert response.status == 200, response.body
            found += json.loads(response.body)["value"]
            token = response.headers.get("x-ms-continuation-NextPartitionKey")
            if token is None:
                return found
            parameters["NextPartitionKey"] = token
            parameters["NextRowKey"] = response.headers["x-ms-continuation-NextRowKey"]

    def close(self) -> None:
        self.gateway.close()
        self.engine.close()


def error_of(response: Response) -> tuple[int, str]:
    return response.status, json.loads(response.body)["odata.error"]["code"]


@contextmanager
def table_api(flavour: Flavour = COSMOS, *, table: str | None = "t") -> Iterator[TableApi]:
    """With one table, unless it is None."""
    made = TableApi(flavour)
    try:
        if table is not None:
            assert made.ask("POST", "/Tables", {"TableName": table}).status == 201
        yield made
    finally:
        made.close()
