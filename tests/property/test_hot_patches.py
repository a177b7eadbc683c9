"""The fast path of a patch answers exactly like the general path and leaves the same behind, or
leaves the request to it. The helpers are those of creates, whose beginning and end it shares."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_hot_creates import (
    DATE_LINE,
    OF_K,
    answered,
    counted,
    long,
    metered,
    ordinary,
    raw,
    short,
    store_of,
)
from tests.support.nosql import READ_ONLY_KEY, SECONDARY_KEY, WRONG_KEY, Api
from tests.support.raw_http import parse_answer

from armillary.api.core.settings import EMULATOR_KEY
from armillary.engine.base import Command
from armillary.store.items.preparation import Operation

steps = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["set", "set", "add", "replace", "remove", "incr", "move", "none"]),
        "path": st.sampled_from(["/n", "/text", "/list/0", "/id", "/pk", "/_ts", "n", "/a/b"]),
    },
    optional={
        "value": st.sampled_from([1, 2.5, "x", None, [1, 2], {"b": 1}, "y" * 40_000]),
        "from": st.sampled_from(["/n", "/none"]),
    },
)
bodies = (
    st.fixed_dictionaries({"operations": st.lists(steps, max_size=3)})
    | st.fixed_dictionaries(
        {"operations": st.lists(steps, max_size=2)},
        optional={"condition": st.sampled_from(["from c where c.n = 1", "bad", None])},
    )
    | st.sampled_from([[], {}, 5, {"operations": 5}, {"operations": [5]}])
)
extras = st.fixed_dictionaries(
    {},
    optional={
        "x-ms-documentdb-partitionkey": st.sampled_from(['["k"]', '["k"]', '["l"]', "[]", "[{}]"]),
        "if-match": st.sampled_from(["*", '"x"']),
        "prefer": st.just("return=minimal"),
        "x-ms-documentdb-pre-trigger-include": st.just("t"),
        "x-ms-session-token": st.sampled_from(["0:-1#999", "x"]),
        "x-ms-consistency-level": st.sampled_from(["Eventual", "x"]),
        "x-ms-cosmos-intended-collection-rid": st.just("AAAA"),
    },
)
operations = st.tuples(
    st.sampled_from(["m/docs/a", "m/docs/a", "m/docs/b", "m/docs/none", "none/docs/a"]),
    bodies,
    extras,
    st.sampled_from([EMULATOR_KEY] * 8 + [SECONDARY_KEY, READ_ONLY_KEY, WRONG_KEY]),
)
kinds = st.sampled_from([{}, {"defaultTtl": 60}, {"indexingPolicy": {"indexingMode": "none"}}])


@settings(max_examples=60, deadline=None)
@given(kinds, st.lists(operations, min_size=1, max_size=12))
def test_both_paths_answer_and_count_alike(kind: dict[str, Any], asked: list[Any]) -> None:
    if "indexingPolicy" in kind:
        kind = {"indexingPolicy": {"indexingMode": "none", "automatic": False}}
    with metered(**kind) as one, metered(**kind) as other:
        for api in (one, other):
            for name in ("a", "b"):
                body = {"id": name, "pk": "k", "n": 1, "list": [1]}
                created = ordinary(api, json.dumps(body).encode(), **{"x-ms-activity-id": name})
                assert long(api, created).startswith(b"HTTP/1.1 201")
        for number, (place, body, extra, key) in enumerate(asked):
            target = f"/dbs/d/colls/{place}"
            told: list[Any] = []
            for api in (one, other):
                headers = api.signed("PATCH", target, key=key)
                headers |= OF_K | extra | {"x-ms-activity-id": f"a{number}"}
                data = raw(target, headers, json.dumps(body).encode(), "PATCH")
                if api is one:
                    told.append(parse_answer(long(api, data)))
                else:
                    like = raw(target, headers, b'{"operations":[]}', "PATCH")
                    told.append(parse_answer(answered(api, data, like)[0]))
            assert told[0] == told[1]
        assert counted(one) == counted(other)


def patch(api: Api, body: bytes = b'{"operations":[{"op":"set","path":"/n","value":2}]}') -> bytes:
    target = "/dbs/d/colls/m/docs/i"
    return raw(target, api.signed("PATCH", target) | OF_K, body, "PATCH")


def made_item(api: Api) -> None:
    store_of(api)  # its container is known then
    data = ordinary(api, b'{"id":"i","pk":"k"}')
    assert answered(api, data, data)[0].startswith(b"HTTP/1.1 201")


def test_an_ordinary_patch_takes_the_fast_path() -> None:
    with metered() as api:
        made_item(api)
        data = patch(api)
        answer, was_short = answered(api, data, data)
        assert was_short
        assert answer.startswith(b"HTTP/1.1 200")
        assert b'"n":2' in answer
        conditional = patch(api, b'{"operations":[],"condition":"from c"}')
        assert short(api, conditional, data) is None


def test_a_patch_of_an_item_that_changed_meanwhile_begins_again() -> None:
    with metered() as api:
        made_item(api)
        store, submit = store_of(api), api.engine.submit

        def after_another(space: int, command: Command) -> Any:
            store.run(Operation("upsert", body={"id": "i", "pk": "k", "m": 3}), None)
            return submit(space, command)

        api.engine.submit_soon = after_another  # type: ignore[method-assign]
        data = patch(api)
        waiting = short(api, data, data)
        assert waiting is not None
        waiting.future.exception(10)
        assert waiting.finish(DATE_LINE.encode()) is None
        answer, was_short = answered(api, data, data)
        assert not was_short
        assert b'"m":3' in answer
        assert b'"n":2' in answer
