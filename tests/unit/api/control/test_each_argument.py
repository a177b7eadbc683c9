"""Every part of every body, and every option, of the control interface in turn, left out or of
another kind. What is wrong is said; none is a mistake of the server."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import quote

from tests.support import nosql_damage as damage
from tests.support.arguments import LEFT_OUT, changed, paths
from tests.support.recorded import KEY

VALUES: Final[tuple[Any, ...]] = (
    *(
        LEFT_OUT,
        None,
        True,
        -1,
        0,
        2**40,
        2**70,
        1.5,
        1e308,
        "",
        "x",
        "/",
        "/a/b",
        "\x00",
        "\ud800",
    ),
    *("9" * 5000, "9" * 20, [], {}, [1], [[]], [{}], [None], {"a": None}, {"0": 1}, "SELECT", "FF"),
    *("SELECT VALUE @x FROM c", "Hash", "../x", "\ud800"),
)
ROOT: Final = "/_armillary"
COLL: Final = f"{ROOT}/dbs/d/colls/c"
SPEC: Final = {"version": 1, "path": "/pk", "parts": ["/a", {"suffix": {"kind": "random", "k": 4}}]}
BODIES: Final[tuple[tuple[str, str, Any], ...]] = (
    ("POST", f"{COLL}/split", {"id": "0", "at": "1fffffff"}),
    ("POST", f"{COLL}/merge", {"ids": ["0", "1"]}),
    ("PUT", f"{COLL}/shares", {"shares": {"0": 500}}),
    (
        "POST",
        f"{COLL}/query",
        {
            "query": "SELECT * FROM c WHERE c.n > @p",
            "parameters": [{"name": "@p", "value": 1}],
            "partition_key": ["a"],
            "max_items": 2,
            "continuation": None,
        },
    ),
    (
        "POST",
        f"{COLL}/rekey",
        {"target": "k", "partitionKey": KEY, "throughput": 400},
    ),
    ("POST", f"{COLL}/rekey", {"target": "k2", "syntheticKey": SPEC, "autoscale_max": 1000}),
    ("PUT", f"{COLL}/key-spec", SPEC),
    ("PUT", f"{ROOT}/faults", [{"match": {"operation": "x", "container": "y"}, "effect": "429"}]),
    ("PUT", f"{ROOT}/faults", [{"match": {}, "effect": "delay", "value": 0, "times": 1}]),
    ("POST", f"{ROOT}/clock", {"advance_ms": 1, "stopped": False}),
    ("POST", f"{ROOT}/failover", {"region": "x"}),
    ("PUT", f"{ROOT}/snapshots/s", None),
)
OPTIONS: Final = ("heat?since=", "heat?keys=", "ring.svg?theme=", "partitions?x=")
NAMES: Final = ("operations/", "snapshots/", "dbs/", "dbs/d/colls/")


def test_no_argument_is_a_mistake_of_the_server() -> None:
    defects, count = [], 0
    api = damage.prepared()

    def send(method: str, target: str, body: Any) -> None:
        nonlocal count
        count += 1
        raw = None if body is None else json.dumps(body).encode()
        found = api.ask(method, target, raw)
        if found.status == 500:
            defects.append(f"{method} {target} {body} {found.body!r}"[:600])
        if method == "PUT" and target.endswith("faults"):
            api.ask("PUT", f"{ROOT}/faults", [])

    try:
        for method, target, body in BODIES:
            for new in VALUES:
                send(method, target, None if new is LEFT_OUT else new)
                for path in paths(body or {}):
                    send(method, target, changed(body, path, new))
        for text in filter(lambda one: isinstance(one, str), VALUES):
            said = quote(text.encode(errors="replace"), safe="")
            for option in OPTIONS:
                send("GET", f"{COLL}/{option}{said}", None)
            for name in NAMES:
                send("GET", f"{ROOT}/{name}{said}", None)
    finally:
        api.close()
    assert count > 1_000
    assert not defects, "\n".join(defects[:40])
