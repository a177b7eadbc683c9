"""The NoSQL API without sockets: an account in memory, and requests signed as SDKs sign them."""

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

from armillary.api.control.service import Controls
from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings
from armillary.api.http.messages import Request, Response
from armillary.api.http.mounts import Mounts
from armillary.api.nosql.service import NosqlService
from armillary.clock import VirtualClock, new_random
from armillary.engine.opening import open_engine
from armillary.store.catalog.accounts import AccountStore
from armillary.store.commands import HANDLERS

READ_ONLY_KEY = base64.b64encode(b"read-only" * 4).decode()
SECONDARY_KEY = base64.b64encode(b"secondary" * 4).decode()
WRONG_KEY = base64.b64encode(b"stranger" * 4).decode()


def signature(key: str, method: str, kind: str, link: str, date: str) -> str:
    """As the documents describe it; written again here, so that one mistake can't hide another."""
    text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    token = f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}"
    return quote(token, safe="-_.!~*'()")


class Api:
    """One service, asked directly."""

    def __init__(self, settings: GatewaySettings | None = None) -> None:
        self.clock = VirtualClock()
        self.engine = open_engine(":memory:", HANDLERS, clock=self.clock)
        self.account = AccountStore(self.engine, random=new_random(1))
        keys = (EMULATOR_KEY, SECONDARY_KEY)
        self.settings = settings or GatewaySettings(keys=keys, read_only_keys=(READ_ONLY_KEY,))
        self.open()

    def open(self) -> None:
        """The services over `account`; again, when a test has put another one there."""
        self.gateway = Gateway(self.account, self.settings)
        self.service = NosqlService(self.gateway)
        self.port = Mounts(self.service, (Controls(self.gateway),))

    def date(self, shift_s: int = 0) -> str:
        return formatdate(self.clock.now_ms() // 1000 + shift_s, usegmt=True)

    def signed(
        self,
        method: str,
        target: str,
        *,
        key: str = EMULATOR_KEY,
        signed_as: tuple[str, str] | None = None,
        shift_s: int = 0,
    ) -> dict[str, str]:
        segments = [one for one in target.partition("?")[0].split("/") if one]
        if signed_as is None:
            if segments[-2:] == ["operations", "partitionkeydelete"]:
                segments = segments[:-2]
            is_feed = len(segments) % 2 == 1
            kind = "" if not segments else segments[-1] if is_feed else segments[-2]
            link = "/".join(segments[:-1] if is_feed else segments)
            signed_as = kind, link.removeprefix("offers/").lower() if kind == "offers" else link
        date = self.date(shift_s)
        return {
            "host": "localhost:8081",
            "x-ms-date": date,
            "x-ms-version": "2020-07-15",
            "authorization": signature(key, method, *signed_as, date),
        }

    def ask(
        self,
        method: str,
        target: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        **signing: Any,
    ) -> Response:
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        all_headers = self.signed(method, target, **signing) | (headers or {})
        return self.port.handle(Request(method, target, all_headers, raw))

    def send(
        self, method: str, target: str, headers: dict[str, str], body: bytes = b""
    ) -> Response:
        """Without a signature of ours."""
        return self.port.handle(Request(method, target, headers, body))

    def item(self, item: dict[str, Any], target: str = "/dbs/d/colls/c/docs") -> Response:
        return self.ask("POST", target, item)

    def close(self) -> None:
        self.shut()
        self.engine.close()

    def shut(self) -> None:
        self.port.close()
        self.gateway.close()


def document(response: Response) -> Any:
    return json.loads(response.body)


def pk(*values: Any) -> dict[str, str]:
    return {"x-ms-documentdb-partitionkey": json.dumps(list(values))}


@contextmanager
def api(settings: GatewaySettings | None = None, *, partitions: int = 1) -> Iterator[Api]:
    """With database d and in it container c, keyed by /pk."""
    made = Api(settings)
    try:
        made.account.create_database("d")
        body = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        made.account.create_container("d", body, physical_partitions=partitions)
        yield made
    finally:
        made.close()
