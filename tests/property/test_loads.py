"""New items that go as lists leave the rows that operations leave, and get the same answers."""

from __future__ import annotations

from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import msgpack
from msgspec.structs import replace

import armillary
from armillary.engine.overlay import OverlayWriter
from armillary.errors import Fenced
from armillary.store.commands import CODECS, HANDLERS
from armillary.store.inserts.loads import LOAD, Answers, Load, columns_of, is_plain
from armillary.store.items.containers import ContainerStore
from armillary.store.items.operations import BULK
from armillary.store.items.preparation import Operation, prepare
from armillary.store.items.requests import Context, Done, Key, Op
from armillary.store.items.routing import key_in

Pair = tuple[Key, Op]

ids = st.sampled_from([f"{n}" for n in range(30)] + ["é", "x" * 128])
bodies = st.fixed_dictionaries(
    {
        "id": ids,
        "pk": st.sampled_from(["a", "b", "c"]),
        "v": st.sampled_from([1, -0.5, "x" * 300, [1, {"z": None}], {}, True, "é", "a\x00b"]),
    },
    optional={"more": st.sampled_from(["more", ["t", "t"]]), "v2": st.integers()},
)
FIRST: list[dict[str, Any]] = [
    {"id": "1", "pk": "a"},
    {"id": "2", "pk": "b", "ttl": 5},
    {"id": "3", "pk": "c", "ttl": 9_999},
]


@pytest.fixture(scope="module")
def store() -> Any:
    with armillary.open(":memory:", housekeeping=False) as account:
        database = account.create_database("d")
        container = database.create_container("c", "/pk", default_ttl=-1, physical_partitions=1)
        for one in FIRST:
            container.create_item(one)
        yield container._store


@settings(max_examples=150)
@given(
    st.sampled_from(["create", "upsert"]),
    st.lists(st.lists(bodies, min_size=1, max_size=12), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from([0, 0, 2_000]),
)
def test_the_rows_are_those_of_operations(
    store: ContainerStore, kind: str, asked: list[list[Any]], wants_text: bool, room: int
) -> None:
    context = _context(store)
    if room:
        context = context._replace(logical_bytes_max=room)
    with store.engine.read(store.state.table.ranges[0].space) as reader:
        whole, apart = OverlayWriter(reader), OverlayWriter(reader)
        for some in asked:
            pairs = [_pair(store, kind, one) for one in some]
            assert all(is_plain(op) for _, op in pairs)
            load = _sent(columns_of(pairs))
            order = _order(apart, pairs)
            loaded = HANDLERS[LOAD].run(whole, (context, load, wants_text))
            if len({*loaded.others, *loaded.refused}) == len(pairs):
                order = [*range(len(pairs))]
            done, refused = HANDLERS[BULK].run(
                apart, (context, [pairs[at] for at in order], wants_text)
            )
            answers = Answers(context, load, wants_text)
            answers.take(loaded)
            for place, at in enumerate(order):
                expected = done[place] or refused[place]
                found = answers.at(at)
                if isinstance(found, Done) and isinstance(expected, Done) and not wants_text:
                    found, expected = replace(found, etag=""), replace(expected, etag="")
                assert found == expected
                if wants_text:
                    item = answers.finish(at, orjson.loads(pairs[at][1].text))
                    if at in loaded.others or at in loaded.refused:
                        assert item is None
                    else:
                        assert isinstance(found, Done)
                        assert [*(item or {}).items()] == [*orjson.loads(found.text).items()]
        assert dict(whole.changes()) == dict(apart.changes())


def test_another_fence_is_refused(store: ContainerStore) -> None:
    context = _context(store)._replace(fence=b"another")
    load = columns_of([_pair(store, "create", {"id": "9", "pk": "a"})])
    with store.engine.read(store.state.table.ranges[0].space) as reader:
        writer = OverlayWriter(reader)
        with pytest.raises(Fenced):
            HANDLERS[LOAD].run(writer, (context, load, True))
        assert not writer.changes()


@pytest.mark.parametrize(
    "operation",
    [
        Operation("create", body={"id": "7", "pk": "a", "ttl": 5}),
        Operation("create", body={"id": "x" * 129, "pk": "a"}),
        Operation("create", body={"id": "7", "pk": "a"}, if_none_match="*"),
        Operation("upsert", body={"id": "7", "pk": "a"}, if_match="x"),
        Operation("replace", "7", {"id": "7", "pk": "a"}),
        Operation("delete", "7"),
    ],
)
def test_what_is_more_than_new_goes_as_an_operation(
    store: ContainerStore, operation: Operation
) -> None:
    assert not is_plain(prepare(store.state, operation, ("a",), Random(0)).op)


def test_what_has_more_than_range_entries_goes_as_an_operation() -> None:
    with armillary.open(":memory:", housekeeping=False) as account:
        database = account.create_database("d")
        composite = {"compositeIndexes": [[{"path": "/v"}, {"path": "/_ts"}]]}
        options: dict[str, Any]
        for name, options in (
            ("unique", {"unique_keys": [["/mail"]]}),
            ("composite", {"indexing_policy": composite}),
        ):
            made = database.create_container(name, "/pk", **options)
            assert not is_plain(_pair(made._store, "create", {"id": "1", "pk": "a", "v": 1})[1])


def _context(store: ContainerStore) -> Context:
    context = store.context(store.state, store.state.table.ranges[0])
    return context._replace(now_s=context.now_s + 60)  # one of the first items has expired


def _pair(store: ContainerStore, kind: str, body: Any) -> Pair:
    prepared = prepare(store.state, Operation(kind, body=body), None, Random(0))
    return key_in(store.state, prepared.key)[1], prepared.op


def _sent(load: Load) -> Load:
    """As it comes out at the writer."""
    made: Load
    made, _ = msgpack.Decoder(CODECS[LOAD].data).decode(msgpack.Encoder().encode((load, True)))
    assert made == load
    return made


def _order(writer: OverlayWriter, pairs: list[Pair]) -> list[int]:
    """Those that are there come after the others."""
    ids = [b"\x21" + key.epk_key + op.id_part for key, op in pairs]
    there = [one is not None for one in writer.get_many(ids)]
    if len(set(ids)) < len(ids):
        return [*range(len(pairs))]
    return sorted(range(len(pairs)), key=lambda at: there[at])
