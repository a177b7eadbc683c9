"""Requests for every route of both tables: a valid one, damaged a little, signed as it then is, so
that the damage reaches the handlers and does not end at the door.

`World` is an account with one of everything, and keeps the tokens its answers have handed out: a
token with one byte changed is the meanest thing there is to send.
"""

from __future__ import annotations

import base64
import json
import logging
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from time import process_time
from typing import Any, Final
from urllib.parse import quote

from tests.support import fuzz_mutations as damage
from tests.support.fuzz_templates import (
    BATCH,
    BODIES,
    CONTAINER,
    CONTROL_BODIES,
    HEADERS,
    ITEM,
    KNOWN,
    NAMES,
    PATCH,
    VARIANTS,
    golden_queries,
)
from tests.support.nosql import Api, pk

from armillary.api.control import routes as control
from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings
from armillary.api.http.messages import Request, Response
from armillary.api.nosql import routes as nosql
from armillary.server.http.answers import encode

LIFE: Final = 200  # requests to one world; what they leave behind must not pile up
TOKENS_MAX: Final = 40
#: What the reader of requests lets through to nobody (test_fuzz_frames.py sends it that).
NO_CONTROLS: Final = dict.fromkeys((*range(32), 127))
DATE_LINE: Final = "Date: Thu, 27 Apr 2017 00:51:12 GMT\r\n"

#: After these little is left to ask for. The controls that write are such too: clock and faults are
#: for all that follows.
FATAL: Final = {("DELETE", "dbs/*"), ("DELETE", "dbs/*/colls/*"), ("PUT", "dbs/*/colls/*")}
#: Where most of the code is.
ITEM_ROUTES: Final = [one for one in nosql.ROUTES if one.pattern.startswith(nosql.DOCS)]
TOKEN_HEADERS: Final = ("x-ms-continuation", "etag", "x-ms-session-token")


class Bugs(logging.Handler):
    """What the service logs about its own mistakes."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


class World:
    """An account with one of everything."""

    def __init__(self, settings: GatewaySettings | None = None) -> None:
        self.api = Api(settings or GatewaySettings(accept_entra=True, cors_origins=("*",)))
        self.tokens: list[str] = []
        self.resource_tokens: list[str] = []
        self.rids: list[str] = []
        self.asked = 0
        account, ask = self.api.account, self.api.ask
        account.create_database("d")
        account.create_container("d", CONTAINER | {"uniqueKeyPolicy": {}}, physical_partitions=2)
        paths = {"paths": ["/pk", "/sub"], "kind": "MultiHash", "version": 2}
        account.create_container("d", {"id": "h", "partitionKey": paths})
        v1 = {"paths": ["/pk"], "kind": "Hash", "version": 1}
        account.create_container("d", {"id": "v1", "partitionKey": v1})
        for number in range(12):
            item = {"id": str(number), "pk": "ab"[number % 2], "n": number, "text": "a small fox"}
            self.keep(ask("POST", "/dbs/d/colls/c/docs", item | {"v": [1, number, 0]}))
        made = [
            ("users", "users"),
            ("users/ada/permissions", "permissions"),
            ("clientencryptionkeys", "clientencryptionkeys"),
            ("colls/c/sprocs", "sprocs"),
            ("colls/c/triggers", "triggers"),
            ("colls/c/udfs", "udfs"),
        ]
        for path, kind in made:
            answer = ask("POST", f"/dbs/d/{path}", BODIES[kind])
            assert answer.status == 201, answer.body
            self.keep(answer)

    def keep(self, response: Response) -> None:
        for name in TOKEN_HEADERS:
            if found := response.headers.get(name):
                self.tokens.append(found)
        if response.status in (200, 201) and b'"_rid"' in response.body:
            document = json.loads(response.body)
            for name, kept in (("_rid", self.rids), ("_token", self.resource_tokens)):
                if isinstance(document, dict) and isinstance(document.get(name), str):
                    kept.append(document[name])
        for kept in (self.tokens, self.resource_tokens, self.rids):
            del kept[:-TOKENS_MAX]


@dataclass
class Tally:
    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    routes: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    slowest: str = ""

    def lines(self) -> list[str]:
        statuses = ", ".join(
            f"{status}: {count}" for status, count in sorted(self.statuses.items())
        )
        return [
            f"{self.requests} requests to {len(self.routes)} routes; {statuses}",
            f"the slowest took {self.slowest_s:.2f} s of CPU: {self.slowest[:150]}",
        ]


class Fuzzer:
    """`step` sends one request and looks at the answer; `AssertionError` names what to repeat."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.queries = golden_queries()
        self.tally = Tally()
        self.world: World | None = None
        self.bugs = Bugs()
        logging.getLogger("armillary").addHandler(self.bugs)

    def close(self) -> None:
        logging.getLogger("armillary").removeHandler(self.bugs)
        self._end_world()

    def step(self) -> None:
        random = self.random
        if self.world is None or self.world.asked >= LIFE:
            self._end_world()
            self.world = World()
        world = self.world
        world.asked += 1
        if random.random() < 0.12:
            route: Any = random.choice(control.ROUTES)
            request = self._control(world, route)
        else:
            route = random.choice(ITEM_ROUTES if random.random() < 0.5 else nosql.ROUTES)
            request = self._nosql(world, route)
        response = self.send(world, request, f"{route.method} {route.pattern} {route.name}")
        is_control = isinstance(route, control.ControlRoute) and route.writes
        if response.status < 300 and (is_control or (route.method, route.pattern) in FATAL):
            self._end_world()

    def send(self, world: World, request: Request, name: str) -> Response:
        began = process_time()
        response = world.api.port.handle(request)
        took = process_time() - began
        tally = self.tally
        tally.requests += 1
        tally.statuses[response.status] += 1
        tally.routes[name] += 1
        if took > tally.slowest_s:
            tally.slowest_s, tally.slowest = took, f"{request}"
        shown = f"seed {self.seed}, request {tally.requests}: {request!r}"[:6000]
        assert response.status < 500 or response.status == 503, f"{shown}\n{self.bugs.texts[-1:]}"
        assert not self.bugs.texts, f"{shown}\n{self.bugs.texts}"
        self._check_form(response, shown)
        world.keep(response)
        return response

    @staticmethod
    def _check_form(response: Response, shown: str) -> None:
        try:
            encode(response, DATE_LINE, old=False)
        except ValueError as error:
            raise AssertionError(f"{shown}\nheaders can't be sent: {response.headers}") from error
        if response.body and response.headers.get("Content-Type") == "application/json":
            try:
                json.loads(response.body)
            except ValueError as error:
                raise AssertionError(f"{shown}\nnot JSON: {response.body[:500]!r}") from error

    def _end_world(self) -> None:
        if self.world is not None:
            self.world.api.close()
        self.world = None

    # --- requests -------------------------------------------------------------------------------

    def _nosql(self, world: World, route: nosql.Route) -> Request:
        random = self.random
        segments: list[str] = []
        for one in route.pattern.split("/"):
            if one == "*":
                known = KNOWN[segments[-1]]
                one = (
                    random.choice(known) if known and random.random() < 0.93 else self._name(world)
                )
            segments.append(one)
        headers = dict(VARIANTS[route.variant])
        if "docs" in segments or "operations" in segments:
            headers |= pk(random.choice("aaab"))
        if route.variant in ("query", "plan"):
            headers["x-ms-documentdb-query-enablecrosspartition"] = "True"
            if random.random() < 0.5:
                headers.pop("x-ms-documentdb-partitionkey", None)
        return self._finish(world, route.method, segments, headers, self._body(route))

    def _control(self, world: World, route: control.ControlRoute) -> Request:
        random = self.random
        segments = [
            one if one[0] != "{" else {"{db}": "d", "{coll}": "c"}.get(one, "0")
            for one in ("_armillary", *route.segments)
        ]
        if random.random() < 0.2:
            segments[random.randrange(1, len(segments))] = self._name(world)
        whole = CONTROL_BODIES.get(route.name)
        body = b"" if whole is None else damage.body(random, whole)
        return self._finish(world, route.method, segments, {}, body)

    def _name(self, world: World) -> str:
        random = self.random
        if world.rids and random.random() < 0.15:
            rid = random.choice(world.rids)
            return rid if random.random() < 0.5 else damage.cut_text(random, rid)
        return random.choice(NAMES) if random.random() < 0.8 else damage.text(random)

    def _body(self, route: nosql.Route) -> bytes:
        random = self.random
        if route.method in ("GET", "DELETE"):
            return b"" if random.random() < 0.95 else damage.body(random, ITEM)
        if route.variant in ("query", "plan"):
            asked = dict(random.choice(self.queries))
            if random.random() < 0.6:
                asked["query"] = self._query(asked["query"])
            if random.random() < 0.7:
                return json.dumps(asked).encode()
            return damage.body(random, asked)
        if route.variant == "batch":
            return damage.body(random, random.sample(BATCH, random.randint(1, len(BATCH))))
        if route.method == "PATCH":
            return damage.body(random, PATCH)
        kind = [one for one in route.pattern.split("/") if one != "*"][-1]
        whole = BODIES.get(kind, ITEM)
        if route.method == "POST" and random.random() < 0.6:
            whole = whole | {"id": str(random.randrange(100_000))}
        return damage.body(random, whole)

    def _query(self, text: str) -> str:
        """Characters changed, or words of another query put in the place of its own."""
        random = self.random
        if random.random() < 0.4:
            return damage.cut_text(random, text)
        words, others = text.split(" "), random.choice(self.queries)["query"].split(" ")
        for _ in range(random.randint(1, 3)):
            at = random.randrange(len(words))
            start = random.randrange(len(others))
            words[at : at + random.randint(0, 2)] = others[start : start + random.randint(1, 6)]
        return " ".join(words)

    def _finish(
        self, world: World, method: str, segments: list[str], headers: dict[str, str], body: bytes
    ) -> Request:
        random = self.random
        for name in damage.pick_some(random, tuple(HEADERS), random.choice((0, 1, 3))):
            headers[name] = random.choice(HEADERS[name])
        if random.random() < 0.3 and world.tokens:
            headers["x-ms-continuation"] = self._token(random.choice(world.tokens))
        if random.random() < 0.1 and world.tokens:
            name = random.choice(("if-none-match", "if-match", "x-ms-session-token"))
            headers[name] = self._token(random.choice(world.tokens))
        if headers and random.random() < 0.3:
            name = random.choice(list(headers))
            headers[name] = damage.cut_text(random, headers[name])
        if random.random() < 0.02:
            method = random.choice(("HEAD", "OPTIONS", "MERGE", "PUT", "POST", "PATCH", "TRACE"))
        escaped = "/".join(quote(one, safe="=+", errors="surrogatepass") for one in segments)
        target = "/" + escaped + random.choice(("", "", "", "/", "?a=b", "?", "//"))
        if random.random() < 0.05:
            target = damage.cut_text(random, target).translate(NO_CONTROLS).replace(" ", "")
        all_headers = self._signed(world, method, target, segments) | headers
        passed = {name: text.translate(NO_CONTROLS) for name, text in all_headers.items()}
        return Request(method, target, passed, body, secure=random.random() < 0.1)

    def _token(self, token: str) -> str:
        random = self.random
        if random.random() < 0.35:
            return token
        try:
            raw = base64.b64decode(token, validate=True)
        except ValueError:
            return damage.cut_text(random, token)
        if random.random() < 0.5:
            return base64.b64encode(damage.cut(random, raw)).decode()
        return damage.cut_text(random, token)

    def _signed(
        self, world: World, method: str, target: str, segments: list[str]
    ) -> dict[str, str]:
        random = self.random
        chance = random.random()
        if segments[0] == "_armillary" and chance < 0.9:
            return {"authorization": f"Bearer {EMULATOR_KEY}"}
        if "%" in target or "?" in target or "//" in target:
            # Signed as it is decoded, which is what the server tries first.
            target = "/" + "/".join(segments)
        headers = world.api.signed(method, target.encode("utf-8", "replace").decode())
        if chance < 0.02 and world.resource_tokens:
            token = random.choice(world.resource_tokens)
            headers["authorization"] = quote(token, safe="")
        elif chance < 0.04 and world.resource_tokens:
            token = random.choice(world.resource_tokens)
            prefix, _, rest = token.partition("sig=")
            parts = rest.split(";")
            at = random.randrange(len(parts))
            parts[at] = self._token(parts[at])
            headers["authorization"] = quote(f"{prefix}sig={';'.join(parts)}", safe="")
        elif chance < 0.06:
            claims = damage.body(random, {"nbf": 0, "exp": 2**33})
            token = f"e30.{base64.urlsafe_b64encode(claims).decode()}.x"
            headers["authorization"] = quote(f"type=aad&ver=1.0&sig={token}", safe="")
        elif chance < 0.09:
            headers["authorization"] = damage.cut_text(random, headers["authorization"])
        elif chance < 0.11:
            headers["x-ms-date"] = damage.cut_text(random, headers["x-ms-date"])
        return headers
