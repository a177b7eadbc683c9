"""A write that the loop begins and ends answers like one that a thread does from end to end,
refused or not. Without this, what a client gets would depend on the size of its item."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.nosql import READ_ONLY_KEY, WRONG_KEY, Api, pk
from tests.support.nosql import api as made

from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.http.messages import Begun, Request, Response
from armillary.engine.base import Command
from armillary.store.items.containers import ContainerStore
from armillary.store.items.preparation import Operation

DOCS = "/dbs/d/colls/c/docs"
PATCH = b'{"operations":[{"op":"set","path":"/n","value":1}]}'


def begun(api: Api, request: Request) -> Response:
    """As the hub does it."""
    start = api.service.begin(request)
    if isinstance(start, Response):
        return start
    response = None
    if isinstance(start, Begun):
        start.future.exception(10)
        response = start.finish()
    return api.service.handle(request) if response is None else response


patches = st.sampled_from(
    [
        {"op": "set", "path": "/n", "value": 1},
        {"op": "incr", "path": "/n", "value": 2},
        {"op": "remove", "path": "/text"},
        {"op": "set", "path": "/pk", "value": "l"},
        {"op": "none"},
    ]
)
bodies = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["a", "b", "c", "", 5, "a/b"]),
        "pk": st.sampled_from(["k", "l", 1, None]),
        "text": st.sampled_from(["x", "y" * 2_000, "z" * 40_000]),
        "operations": st.lists(patches, max_size=2) | st.just(5),
        "condition": st.sampled_from(["from c where c.n = 1", "from c where c.text = 'x'", 7]),
    },
)
operations = st.tuples(
    st.sampled_from(
        [
            *(("POST", DOCS), ("POST", DOCS), ("POST", DOCS)),
            *(("PUT", f"{DOCS}/a"), ("DELETE", f"{DOCS}/a")),
            *(("PATCH", f"{DOCS}/a"), ("PATCH", f"{DOCS}/a"), ("PATCH", f"{DOCS}/b")),
            *(("POST", "/dbs/d/colls/none/docs"), ("PUT", DOCS), ("POST", f"{DOCS}/a")),
        ]
    ),
    bodies,
    st.fixed_dictionaries(
        {},
        optional={
            "x-ms-documentdb-partitionkey": st.sampled_from(['["k"]', '["l"]', "[1]", "[]", "x"]),
            "x-ms-documentdb-is-upsert": st.just("True"),
            "x-ms-documentdb-isquery": st.just("True"),
            "if-match": st.sampled_from(["*", '"x"']),
            "if-none-match": st.just("*"),
            "prefer": st.just("return=minimal"),
            "x-ms-documentdb-pre-trigger-include": st.just("t"),
        },
    ),
    st.sampled_from([EMULATOR_KEY] * 8 + [READ_ONLY_KEY, WRONG_KEY]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(operations, min_size=1, max_size=12))
def test_both_paths_answer_alike(asked: list[Any]) -> None:
    with made(partitions=2) as one, made(partitions=2) as other:
        other.engine.never_waits = True  # type: ignore[misc]
        for number, ((method, target), body, extra, key) in enumerate(asked):
            told: list[Response] = []
            for api, answer in ((one, one.service.handle), (other, lambda r: begun(other, r))):
                headers = api.signed(method, target, key=key)
                headers |= extra | {"x-ms-activity-id": str(number)}
                raw = b"" if method == "DELETE" else json.dumps(body).encode()
                told.append(answer(Request(method, target, headers, raw)))
            assert told[0] == told[1]


def test_a_write_whose_range_has_moved_begins_again() -> None:
    """The fence refused it, so nothing has happened: the general path finds out why."""
    with made() as api:
        api.engine.never_waits = True  # type: ignore[misc]
        api.item({"id": "a", "pk": "k"})
        store = api.service.gateway.container("d", "c")
        assert isinstance(store, ContainerStore)
        stale = store.state
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        document = {"id": "c", "partitionKey": key, "defaultTtl": 60}
        assert api.ask("PUT", "/dbs/d/colls/c", document).status == 200
        store.known_state = stale
        headers = api.signed("POST", DOCS) | pk("k")
        start = api.service.begin(Request("POST", DOCS, headers, b'{"id":"b","pk":"k"}'))
        assert isinstance(start, Begun)
        start.future.exception(10)
        assert start.finish() is None
        store.known_state = stale
        assert begun(api, Request("POST", DOCS, headers, b'{"id":"b","pk":"k"}')).status == 201
        store.known_state = stale
        headers = api.signed("PATCH", f"{DOCS}/a") | pk("k")
        patch = Request("PATCH", f"{DOCS}/a", headers, PATCH)
        assert api.service.begin(patch) is None
        store.known_state = stale
        assert begun(api, patch).status == 200


def test_a_patch_of_an_item_that_changes_meanwhile_begins_again() -> None:
    with made() as api:
        api.engine.never_waits = True  # type: ignore[misc]
        api.item({"id": "a", "pk": "k"})
        store = api.service.gateway.container("d", "c")
        submit = api.engine.submit

        def after_another(space: int, command: Command) -> Any:
            store.run(Operation("upsert", body={"id": "a", "pk": "k", "m": 2}), None)
            return submit(space, command)

        api.engine.submit_soon = after_another  # type: ignore[method-assign]
        headers = api.signed("PATCH", f"{DOCS}/a") | pk("k")
        answer = begun(api, Request("PATCH", f"{DOCS}/a", headers, PATCH))
        assert answer.status == 200
        item = json.loads(answer.body)
        assert (item["n"], item["m"]) == (1, 2)
