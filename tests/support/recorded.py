"""Requests of every route and every kind of error, and what the NoSQL API answers, with all that
changes from run to run masked: times, rids, etags, activity ids, session tokens of other runs.

    python -m tests.support.recorded > tests/golden/nosql_wire.txt
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.support.nosql import READ_ONLY_KEY, WRONG_KEY, Api, pk

MASKS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r'"_ts":\d+'), '"_ts":<ts>'),
    (re.compile(r'"_rid":"[^"]*"'), '"_rid":"<rid>"'),
    (re.compile(r'"_self":"[^"]*"'), '"_self":"<self>"'),
    (re.compile(r'("(?:offerResourceId|resourceId|resource|ownerResourceId)":")[^"]*'), r"\1<rid>"),
    (re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"), "<date>"),
    (re.compile(r"type=resource&ver=1.0&sig=[^\"]*"), "<token>"),
    (re.compile(r'"_token":"[^"]*"'), '"_token":"<token>"'),
    (re.compile(r"/dbs/[A-Za-z0-9+=-]{6,}/[^ \"]*"), "<link>"),
)
#: Not said of an answer: the same for all, or of one run only.
LEFT_OUT = frozenset(
    {
        "x-ms-activity-id", "x-ms-serviceversion", "x-ms-gatewayversion", "x-ms-schemaversion",
        "cache-control", "pragma", "server", "x-ms-last-state-change-utc", "x-ms-alt-content-path",
        "x-ms-content-path",
    }
)  # fmt: skip

COLL = "/dbs/d/colls/c"
DOCS = f"{COLL}/docs"
QUERY = {"x-ms-documentdb-isquery": "True", "content-type": "application/query+json"}
ANYWHERE = {"x-ms-documentdb-query-enablecrosspartition": "True"}
BATCH = {"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True"}
KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}
UPSERT = {"x-ms-documentdb-is-upsert": "True"}


def asked(text: str, **parameters: Any) -> dict[str, Any]:
    return {
        "query": text,
        "parameters": [{"name": f"@{name}", "value": one} for name, one in parameters.items()],
    }


def requests() -> Iterator[tuple[str, str, str, Any, dict[str, str], dict[str, Any]]]:
    """Name, method, target, body, headers, how it is signed; in this order on one account."""

    def one(
        name: str, method: str, target: str, body: Any = None, *, key: Any = None,
        shift_s: Any = 0, **headers: Any,
    ) -> tuple[str, str, str, Any, dict[str, str], dict[str, Any]]:  # fmt: skip
        signing: dict[str, Any] = {} if key is None else {"key": key}
        if shift_s:
            signing["shift_s"] = shift_s
        return name, method, target, body, headers, signing

    yield one("the account", "GET", "/")
    yield one("a database", "POST", "/dbs", {"id": "d"})
    yield one("it is there already", "POST", "/dbs", {"id": "d"})
    yield one("a name with a slash", "POST", "/dbs", {"id": "a/b"})
    yield one("no name", "POST", "/dbs", {})
    yield one("no JSON", "POST", "/dbs", b"{")
    yield one("databases", "GET", "/dbs")
    yield one("one database", "GET", "/dbs/d")
    yield one("no database", "GET", "/dbs/none")
    yield one("query of databases", "POST", "/dbs", asked("SELECT * FROM r"), **QUERY)
    yield one("a container", "POST", "/dbs/d/colls", {"id": "c", "partitionKey": KEY})
    yield one("it is there already", "POST", "/dbs/d/colls", {"id": "c", "partitionKey": KEY})
    yield one("without a key", "POST", "/dbs/d/colls", {"id": "x"})
    yield one("in no database", "POST", "/dbs/none/colls", {"id": "x", "partitionKey": KEY})
    yield one("containers", "GET", "/dbs/d/colls")
    yield one("one container", "GET", COLL)
    yield one("no container", "GET", "/dbs/d/colls/none")
    yield one("its ranges", "GET", f"{COLL}/pkranges")
    changed = {"id": "c", "partitionKey": KEY, "defaultTtl": -1}
    yield one("replace it", "PUT", COLL, changed)
    other = {"id": "c", "partitionKey": KEY | {"paths": ["/other"]}}
    yield one("with another key", "PUT", COLL, other)
    yield one("an item", "POST", DOCS, {"id": "1", "pk": "a", "n": 1, "t": "x"}, **pk("a"))
    yield one("again", "POST", DOCS, {"id": "1", "pk": "a"}, **pk("a"))
    yield one("another key than its own", "POST", DOCS, {"id": "2", "pk": "a"}, **pk("b"))
    yield one("no id", "POST", DOCS, {"pk": "a"}, **pk("a"))
    yield one("an id of two dots", "POST", DOCS, {"id": "..", "pk": "a"}, **pk("a"))
    yield one("a list", "POST", DOCS, [1], **pk("a"))
    yield one("too large", "POST", DOCS, {"id": "l", "pk": "a", "t": "x" * 2_100_000}, **pk("a"))
    yield one("upsert", "POST", DOCS, {"id": "2", "pk": "a", "n": 2}, **pk("a"), **UPSERT)
    yield one("upsert again", "POST", DOCS, {"id": "2", "pk": "a", "n": 3}, **pk("a"), **UPSERT)
    yield one("minimal", "POST", DOCS, {"id": "3", "pk": "b"}, **pk("b"), prefer="return=minimal")
    yield one("read", "GET", f"{DOCS}/1", **pk("a"))
    yield one("read with no key", "GET", f"{DOCS}/1")
    yield one("read nothing", "GET", f"{DOCS}/none", **pk("a"))
    yield one("not modified", "GET", f"{DOCS}/1", **pk("a"), **{"if-none-match": "*"})
    yield one("from the future", "GET", f"{DOCS}/1", **pk("a"), **{"x-ms-session-token": "0:-1#99"})
    yield one("a bad token", "GET", f"{DOCS}/1", **pk("a"), **{"x-ms-session-token": "x"})
    yield one("replace", "PUT", f"{DOCS}/1", {"id": "1", "pk": "a", "n": 5}, **pk("a"))
    yield one("replace nothing", "PUT", f"{DOCS}/9", {"id": "9", "pk": "a"}, **pk("a"))
    match = {"if-match": '"x"'}
    yield one("not that version", "PUT", f"{DOCS}/1", {"id": "1", "pk": "a"}, **pk("a"), **match)
    patch = {"operations": [{"op": "incr", "path": "/n", "value": 2}]}
    yield one("patch", "PATCH", f"{DOCS}/1", patch, **pk("a"))
    yield one("a bad patch", "PATCH", f"{DOCS}/1", {"operations": []}, **pk("a"))
    made = [{"operationType": "Create", "resourceBody": {"id": f"b{n}", "pk": "a"}} for n in (1, 2)]
    yield one("batch", "POST", DOCS, made, **pk("a"), **BATCH)
    yield one("batch that fails", "POST", DOCS, made, **pk("a"), **BATCH)
    yield one("list", "GET", DOCS)
    yield one("list of a key", "GET", DOCS, **pk("b"))
    yield one("a page", "GET", DOCS, **{"x-ms-max-item-count": "2"})
    yield one("a bad continuation", "GET", DOCS, **{"x-ms-continuation": "x"})
    yield one("changes", "GET", DOCS, **{"a-im": "Incremental Feed"})
    yield one("no more changes", "GET", DOCS, **{"a-im": "Incremental Feed", "if-none-match": "*"})
    text = "SELECT c.id, c.n FROM c WHERE c.n > @n ORDER BY c.n"
    yield one("query", "POST", DOCS, asked(text, n=1), **QUERY, **pk("a"))
    yield one("over all", "POST", DOCS, asked("SELECT VALUE c.id FROM c"), **QUERY, **ANYWHERE)
    count = asked("SELECT VALUE COUNT(1) FROM c")
    yield one("count", "POST", DOCS, count, **QUERY, **pk("a"))
    yield one("not allowed over all", "POST", DOCS, count, **QUERY)
    yield one("no query", "POST", DOCS, asked("SELECT"), **QUERY, **pk("a"))
    plan = {"x-ms-cosmos-is-query-plan-request": "True"}
    yield one("its plan", "POST", DOCS, asked(text, n=1), **QUERY, **plan)
    yield one("delete", "DELETE", f"{DOCS}/2", **pk("a"))
    yield one("delete nothing", "DELETE", f"{DOCS}/2", **pk("a"))
    yield one("delete by key", "POST", f"{COLL}/operations/partitionkeydelete", **pk("b"))
    yield one("offers", "GET", "/offers")
    body = {"id": "p", "body": "function () { getContext().getResponse().setBody(1) }"}
    yield one("a procedure", "POST", f"{COLL}/sprocs", body)
    yield one("procedures", "GET", f"{COLL}/sprocs")
    yield one("a user", "POST", "/dbs/d/users", {"id": "u"})
    yield one("users", "GET", "/dbs/d/users")
    allowed = {"id": "r", "permissionMode": "Read", "resource": "dbs/d/colls/c"}
    yield one("a permission", "POST", "/dbs/d/users/u/permissions", allowed)
    yield one("conflicts", "GET", f"{COLL}/conflicts")
    yield one("a wrong key", "GET", "/dbs", key=WRONG_KEY)
    yield one("a late one", "GET", "/dbs", shift_s=-3600)
    yield one("a read-only key reads", "GET", f"{DOCS}/1", key=READ_ONLY_KEY, **pk("a"))
    yield one("and writes nothing", "POST", "/dbs", {"id": "x"}, key=READ_ONLY_KEY)
    yield one("no such path", "GET", "/nothing/here/at/all")
    yield one("no such method", "PATCH", "/dbs/d")
    yield one("delete the container", "DELETE", COLL)
    yield one("items of what is gone", "GET", f"{DOCS}/1", **pk("a"))
    yield one("delete the database", "DELETE", "/dbs/d")


def recorded() -> str:
    lines: list[str] = []
    api = Api()
    try:
        for name, method, target, body, headers, signing in requests():
            api.clock.advance(1)
            response = api.ask(method, target, body, headers, **signing)
            lines += [f"# {name}", f"> {method} {target}"]
            lines += [f"> {key}: {value}" for key, value in sorted(headers.items())]
            if body is not None and len(str(body)) < 1_000:
                lines.append(f"> {body!r}" if isinstance(body, bytes) else f"> {json.dumps(body)}")
            lines.append(f"< {response.status}")
            shown = {key.lower(): value for key, value in response.headers.items()}
            lines += [
                masked(f"< {key}: {'<etag>' if key == 'etag' else value}")
                for key, value in sorted(shown.items())
                if key not in LEFT_OUT
            ]
            if response.body:
                lines.append("< " + masked(response.body.decode()))
            lines.append("")
    finally:
        api.close()
    return "\n".join(lines)


def masked(text: str) -> str:
    for pattern, instead in MASKS:
        text = pattern.sub(instead, text)
    return text.replace("\r\n", "\\r\\n")


if __name__ == "__main__":
    print(recorded(), end="")
