"""Damaged requests (`fuzz_making.py`) to a service in process, and a look at each answer.

`World` is an account with one of everything, and keeps the tokens its answers have handed out: a
token with one byte changed is the meanest thing there is to send.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from time import process_time
from typing import Final

from tests.support.fuzz_making import RequestMaker
from tests.support.fuzz_templates import BODIES, CONTAINER
from tests.support.nosql import Api

from armillary.api.control import routes as control
from armillary.api.core.settings import GatewaySettings
from armillary.api.http.encoding import encode
from armillary.api.http.messages import Request, Response

LIFE: Final = 200  # requests to one world; what they leave behind must not pile up
TOKENS_MAX: Final = 40
DATE_LINE: Final = "Date: Thu, 27 Apr 2017 00:51:12 GMT\r\n"

#: After these little is left to ask for. The controls that write are such too: clock and faults are
#: for all that follows.
FATAL: Final = {("DELETE", "dbs/*"), ("DELETE", "dbs/*/colls/*"), ("PUT", "dbs/*/colls/*")}
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

    def signed(self, method: str, target: str) -> dict[str, str]:
        return self.api.signed(method, target)

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
        self.maker = RequestMaker(Random(seed))
        self.tally = Tally()
        self.world: World | None = None
        self.bugs = Bugs()
        logging.getLogger("armillary").addHandler(self.bugs)

    def close(self) -> None:
        logging.getLogger("armillary").removeHandler(self.bugs)
        self._end_world()

    def step(self) -> None:
        if self.world is None or self.world.asked >= LIFE:
            self._end_world()
            self.world = World()
        world = self.world
        world.asked += 1
        route, request = self.maker.make(world)
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
