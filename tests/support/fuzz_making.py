"""Requests for every route of both tables: a valid one, damaged a little, signed as it then is, so
that the damage reaches the handlers and does not end at the door. Who sends them, and where to, is
the caller's: `fuzz_requests.py` in process, `attack/` over sockets.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from random import Random
from typing import Any, Final, Protocol
from urllib.parse import quote

from tests.support import fuzz_mutations as damage
from tests.support.fuzz_templates import (
    BATCH,
    BODIES,
    CONTROL_BODIES,
    HEADERS,
    ITEM,
    KNOWN,
    NAMES,
    PATCH,
    VARIANTS,
    golden_calls,
    golden_queries,
)
from tests.support.nosql import pk

from armillary.api.control import routes as control
from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.http.messages import Request
from armillary.api.nosql import routes as nosql

#: What the reader of requests lets through to nobody (test_fuzz_frames.py sends it that).
NO_CONTROLS: Final = dict.fromkeys((*range(32), 127))
#: A call of a function where an expression may stand.
PLACES: Final = (
    "SELECT VALUE {} FROM c",
    "SELECT VALUE {} FROM c",
    "SELECT * FROM c WHERE {}",
    "SELECT * FROM c WHERE c.n > 3 AND {} = {}",
    "SELECT COUNT(1) AS n, {} AS k FROM c GROUP BY {}",
    "SELECT VALUE SUM({}) FROM c",
    "SELECT DISTINCT VALUE {} FROM c ORDER BY c.n",
    "SELECT * FROM c ORDER BY {}",
    "SELECT VALUE x FROM c JOIN x IN (SELECT VALUE {})",
    "SELECT TOP 2 c.id, ARRAY(SELECT VALUE {} FROM y IN c.t) AS a FROM c",
    "SELECT * FROM c WHERE EXISTS(SELECT VALUE 1 FROM y IN c.t WHERE {})",
)
OPERANDS: Final = (
    *("c", "c.n", "c.pk", "c.t", "c['where'].point", "c.text", "c.v", "c.missing.x", "c.t[0]"),
    *("@p", "@p", "@q", "null", "undefined", "true", "-1", "0", "1.5", "1e308", "-1e308", "9e999"),
    *(
        "9223372036854775807",
        "18446744073709551616",
        "9" * 60,
        "''",
        "'a'",
        "'\\ud800'",
        "'\\u0000'",
    ),
    *(
        "[]",
        "{}",
        "[null]",
        "{'a': 1}",
        "{'': undefined}",
        "[[1, 2], [3]]",
        "'(a+)+$'",
        "'['",
        "'%_'",
    ),
    *("'2024-01-02T03:04:05.1234567Z'", "'9999-12-31T23:59:59Z'", "'0001-01-01'", "'year'", "'ms'"),
    *("{'type': 'Point', 'coordinates': [1, 2]}", "{'type': 'Polygon', 'coordinates': [[[0, 0]]]}"),
    *(
        "{'type': 'Point', 'coordinates': [1e400, 'x']}",
        "SQRT(-1)",
        "1/0",
        "-(-9223372036854775808)",
    ),
    *("(SELECT VALUE 1)", "ARRAY(SELECT VALUE 1)", "c.n ?? 1", "c.n ? 1 : 'x'", "c.n || 'x'", "*"),
)
#: Where most of the code is.
ITEM_ROUTES: Final = [one for one in nosql.ROUTES if one.pattern.startswith(nosql.DOCS)]

Route = nosql.Route | control.ControlRoute


class Target(Protocol):
    """An account with one of everything, and what its answers have handed out."""

    tokens: list[str]
    resource_tokens: list[str]
    rids: list[str]

    def signed(self, method: str, target: str) -> dict[str, str]: ...


class RequestMaker:
    def __init__(
        self, random: Random, controls: Sequence[control.ControlRoute] = control.ROUTES
    ) -> None:
        self.random = random
        self.queries = golden_queries()
        self.calls = golden_calls()
        self._controls = controls

    def make(self, world: Target) -> tuple[Route, Request]:
        random = self.random
        if random.random() < 0.12:
            chosen = random.choice(self._controls)
            return chosen, self._control(world, chosen)
        route = random.choice(ITEM_ROUTES if random.random() < 0.5 else nosql.ROUTES)
        return route, self._nosql(world, route)

    def _nosql(self, world: Target, route: nosql.Route) -> Request:
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

    def _control(self, world: Target, route: control.ControlRoute) -> Request:
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

    def _name(self, world: Target) -> str:
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
            if random.random() < 0.3:
                asked = self._calling()
            elif random.random() < 0.6:
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

    def _calling(self) -> dict[str, Any]:
        """A function whose arguments are its own, those of another, or anything."""
        random = self.random
        place = random.choice(PLACES)
        text = place.format(*(self._call() for _ in range(place.count("{}"))))
        named = {"@p": damage.value(random), "@q": damage.value(random)}
        parameters = [{"name": name, "value": one} for name, one in named.items()]
        return {"query": text, "parameters": parameters}

    def _call(self, depth: int = 2) -> str:
        random = self.random
        name, own = random.choice(self.calls)
        given = list(own)
        for at in range(len(given)):
            chance = random.random()
            if chance < 0.3:
                given[at] = random.choice(OPERANDS)
            elif chance < 0.4:
                given[at] = random.choice(random.choice(self.calls)[1] or ["1"])
            elif chance < 0.45 and depth:
                given[at] = self._call(depth - 1)
        if random.random() < 0.05:
            given.append(random.choice(OPERANDS))
        if random.random() < 0.05:
            del given[random.randrange(len(given) + 1) :]
        return f"{name}({', '.join(given)})"

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
        self, world: Target, method: str, segments: list[str], headers: dict[str, str], body: bytes
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
        if random.random() < 0.1:
            odd = damage.text(random).encode("utf-8", "replace").decode("latin-1")
            headers[random.choice(tuple(HEADERS))] = odd
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
        self, world: Target, method: str, target: str, segments: list[str]
    ) -> dict[str, str]:
        random = self.random
        chance = random.random()
        if segments[0] == "_armillary" and chance < 0.9:
            return {"authorization": f"Bearer {EMULATOR_KEY}"}
        if "%" in target or "?" in target or "//" in target:
            # Signed as it is decoded, which is what the server tries first.
            target = "/" + "/".join(segments)
        headers = world.signed(method, target.encode("utf-8", "replace").decode())
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


class IntactMaker(RequestMaker):
    """The same routes in the same shares, with nothing wrong: what damage is compared with. What it
    names may have been deleted by one before it."""

    def _nosql(self, world: Target, route: nosql.Route) -> Request:
        random = self.random
        segments: list[str] = []
        for one in route.pattern.split("/"):
            if one == "*":
                known = KNOWN[segments[-1]] or NAMES
                one = "c" if segments[-1] == "colls" else random.choice(known)
            segments.append(one)
        headers = dict(VARIANTS[route.variant])
        item = segments[5] if segments[4:5] == ["docs"] and len(segments) > 5 else ""
        if segments[4:] == ["docs"] and route.method == "POST" and not route.variant:
            item = random.choice(KNOWN["docs"])  # brings back what others delete
            headers["x-ms-documentdb-is-upsert"] = "True"
        # As the items of a world are made.
        key = "ab"[int(item) % 2] if item else "a"
        if "docs" in segments or "operations" in segments:
            headers |= pk(key)
        if route.variant in ("query", "plan"):
            headers["x-ms-documentdb-query-enablecrosspartition"] = "True"
        body = self._intact(route, {"id": item, "pk": key} if item else {})
        return self._finish(world, route.method, segments, headers, body)

    def _intact(self, route: nosql.Route, named: dict[str, str]) -> bytes:
        random = self.random
        if route.method in ("GET", "DELETE"):
            return b""
        if route.variant in ("query", "plan"):
            return json.dumps(random.choice(self.queries)).encode()
        if route.variant == "batch":
            return json.dumps(random.sample(BATCH, random.randint(1, len(BATCH)))).encode()
        if route.method == "PATCH":
            return json.dumps(PATCH).encode()
        kind = [one for one in route.pattern.split("/") if one != "*"][-1]
        whole = BODIES.get(kind, ITEM) | named
        if route.method == "POST" and not named and random.random() < 0.6:
            whole = whole | {"id": str(random.randrange(100_000))}
        return json.dumps(whole).encode()

    def _control(self, world: Target, route: control.ControlRoute) -> Request:
        segments = [
            one if one[0] != "{" else {"{db}": "d", "{coll}": "c"}.get(one, "0")
            for one in ("_armillary", *route.segments)
        ]
        whole = CONTROL_BODIES.get(route.name)
        body = b"" if whole is None else json.dumps(whole).encode()
        return self._finish(world, route.method, segments, {}, body)

    def _finish(
        self, world: Target, method: str, segments: list[str], headers: dict[str, str], body: bytes
    ) -> Request:
        target = "/" + "/".join(quote(one, safe="=+") for one in segments)
        if segments[0] == "_armillary":
            signed = {"authorization": f"Bearer {EMULATOR_KEY}"}
        else:
            signed = world.signed(method, "/" + "/".join(segments))
        return Request(method, target, signed | headers, body)
