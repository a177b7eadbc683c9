"""The NoSQL API and the controls of a server, from outside: every route, damaged, signed."""

from __future__ import annotations

import http.client
import json
import time
from email.utils import formatdate
from random import Random
from typing import Final
from urllib.parse import quote

from tests.support.attack.http import Heard
from tests.support.fuzz_making import IntactMaker, RequestMaker
from tests.support.fuzz_requests import FATAL, TOKEN_HEADERS, TOKENS_MAX
from tests.support.fuzz_templates import BODIES, CONTAINER
from tests.support.hostile_scripts import hostile
from tests.support.nosql import pk, signature
from tests.support.signed_http import SignedClient

from armillary.api.control import routes as control
from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.http.messages import Request

#: Left out are those that change all that follows (time, faults, everything gone) and the one whose
#: answer has no end; they are asked in process by the fuzz tests.
CONTROLS: Final = tuple(
    one
    for one in control.ROUTES
    if not (one.writes and one.pattern.split("/")[0] in ("clock", "faults", "reset", "snapshots"))
    and one.pattern != "events"
)
KEPT: Final = ("victim", "d", "g", "s", "d_mongo", "TablesDB")
OWN: Final = {"d_mongo": "c", "TablesDB": "t"}
"""Of the other protocols: what stays in a database of theirs."""
SCRIPTS: Final = "/dbs/s/colls/c/sprocs"
"""In a container of their own: that of the others is deleted time and again."""
OFFER: Final = {"x-ms-offer-throughput": "100000"}
HARMLESS: Final = (
    "function () { const c = getContext(); c.getCollection().queryDocuments("
    "c.getCollection().getSelfLink(), 'SELECT * FROM c WHERE c.n > 3', {}, "
    "(error, found) => c.getResponse().setBody(found.length)); }"
)
SLOW_SHARE: Final = 0.0005
"""Of scripts that run into the bound on time: each holds a process of JavaScript for seconds."""


class RemoteWorld:
    def __init__(self, port: int) -> None:
        self.port = port
        self.tokens: list[str] = []
        self.resource_tokens: list[str] = []
        self.rids: list[str] = []
        self.spoiled = True

    def signed(self, method: str, target: str) -> dict[str, str]:
        segments = [one for one in target.partition("?")[0].split("/") if one]
        if segments[-2:] == ["operations", "partitionkeydelete"]:
            segments = segments[:-2]
        is_feed = len(segments) % 2 == 1
        kind = "" if not segments else segments[-1] if is_feed else segments[-2]
        link = "/".join(segments[:-1] if is_feed else segments)
        if kind == "offers":
            link = link.removeprefix("offers/").lower()
        date = formatdate(usegmt=True)
        return {
            "host": f"localhost:{self.port}",
            "x-ms-date": date,
            "x-ms-version": "2020-07-15",
            "authorization": signature(EMULATOR_KEY, method, kind, link, date),
        }

    def keep(self, answer: Heard) -> None:
        for name in TOKEN_HEADERS:
            if found := answer.headers.get(name):
                self.tokens.append(found)
        if answer.status in (200, 201) and answer.body[:1] == b"{" and b'"_rid"' in answer.body:
            document = json.loads(answer.body)
            for name, kept in (("_rid", self.rids), ("_token", self.resource_tokens)):
                if isinstance(document, dict) and isinstance(document.get(name), str):
                    kept.append(document[name])
        for kept in (self.tokens, self.resource_tokens, self.rids):
            del kept[:-TOKENS_MAX]

    def renew(self) -> None:
        """What requests have made goes, what they have deleted comes back."""
        client = SignedClient(self.port, timeout_s=120)
        try:
            found = client.ask("GET", "/dbs").json()
            for one in found.get("Databases", []):
                if one["id"] not in KEPT or one["id"] == "d":
                    client.ask("DELETE", f"/dbs/{quote(one['id'], safe='')}")
            for database, own in OWN.items():
                self._clear(client, database, own)
            self._make(client)
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.1)
        finally:
            client.close()
        self.spoiled = False

    @staticmethod
    def _clear(client: SignedClient, database: str, own: str) -> None:
        """An account has so many containers: one that is full refuses what would be looked at."""
        found = client.ask("GET", f"/dbs/{database}/colls").json()
        for one in found.get("DocumentCollections", []):
            if one["id"] != own:
                client.ask("DELETE", f"/dbs/{database}/colls/{quote(one['id'], safe='')}")

    @staticmethod
    def _make(client: SignedClient) -> None:
        client.ask("POST", "/dbs", {"id": "d"})
        keys = {
            "h": {"paths": ["/pk", "/sub"], "kind": "MultiHash", "version": 2},
            "v1": {"paths": ["/pk"], "kind": "Hash", "version": 1},
        }
        client.ask("POST", "/dbs/d/colls", CONTAINER | {"uniqueKeyPolicy": {}}, OFFER)
        for name, key in keys.items():
            client.ask("POST", "/dbs/d/colls", {"id": name, "partitionKey": key}, OFFER)
        for number in range(12):
            item = {"id": str(number), "pk": "ab"[number % 2], "n": number, "text": "a small fox"}
            headers = pk(item["pk"]) | {"x-ms-documentdb-is-upsert": "True"}
            client.ask("POST", "/dbs/d/colls/c/docs", item | {"v": [1, number, 0]}, headers)
        for path, kind in (
            ("users", "users"),
            ("users/ada/permissions", "permissions"),
            ("clientencryptionkeys", "clientencryptionkeys"),
            ("colls/c/sprocs", "sprocs"),
            ("colls/c/triggers", "triggers"),
            ("colls/c/udfs", "udfs"),
        ):
            client.ask("POST", f"/dbs/d/{path}", BODIES[kind])


class Damaged:
    """One request after the other, as bytes."""

    def __init__(self, world: RemoteWorld, random: Random) -> None:
        self._world = world
        self._random = random
        self._maker: RequestMaker = RequestMaker(random, CONTROLS)

    def make(self) -> bytes:
        while True:
            route, request = self._maker.make(self._world)
            fatal = (request.method, route.pattern) in FATAL
            if not fatal or self._random.random() < 0.02:
                break
        if fatal:
            self._world.spoiled = True
        return raw(request)


class Scripts:
    """Stored procedures that mean harm: stored, then run."""

    def __init__(self, world: RemoteWorld, random: Random) -> None:
        self._world = world
        self._random = random
        scripts = hostile()
        self._slow = [text for _, text, outcomes in scripts if "time" in outcomes]
        self._quick = [text for _, text, outcomes in scripts if "time" not in outcomes]
        self._stored: list[str] = []

    def make(self) -> bytes:
        random = self._random
        if self._stored and random.random() < 0.5:
            name = self._stored.pop()
            return self._request("POST", f"{SCRIPTS}/{name}", b"[]", pk("a"))
        name = f"s{random.randrange(50)}"
        self._stored.append(name)
        chosen = self._slow if random.random() < SLOW_SHARE else self._quick
        body = json.dumps({"id": name, "body": random.choice(chosen)}).encode()
        if random.random() < 0.4:
            return self._request("POST", SCRIPTS, body, {})
        return self._request("PUT", f"{SCRIPTS}/{name}", body, {})

    def _request(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> bytes:
        return raw(Request(method, target, self._world.signed(method, target) | headers, body))


class Valid(Damaged):
    """The same requests of the same routes, in the same shares, with nothing wrong in them."""

    def __init__(self, world: RemoteWorld, random: Random) -> None:
        super().__init__(world, random)
        self._maker = IntactMaker(random, CONTROLS)


class ValidScripts(Scripts):
    """Stored procedures that read and answer: stored, then run."""

    def __init__(self, world: RemoteWorld, random: Random) -> None:
        super().__init__(world, random)
        self._slow = self._quick = [HARMLESS]


def raw(request: Request) -> bytes:
    lines = [f"{request.method} {request.target} HTTP/1.1"]
    lines += [f"{name}: {text}" for name, text in request.headers.items()]
    lines += [f"Content-Length: {len(request.body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace") + request.body
