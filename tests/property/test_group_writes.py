"""Commands of one group that are run by one call leave what a call each leaves, refused too."""

from __future__ import annotations

from concurrent.futures import Future
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import armillary
from armillary.engine.base import Command
from armillary.engine.groups import Job
from armillary.engine.overlay import OverlayWriter, run_jobs
from armillary.errors import DbError
from armillary.store.commands import HANDLERS
from armillary.store.items.atomic import ATOMIC
from armillary.store.items.containers import ContainerStore
from armillary.store.items.operations import WRITE
from armillary.store.items.preparation import Operation, prepare
from armillary.store.items.requests import Context, Failed, Key, Op
from armillary.store.items.routing import key_in

Data = tuple[Context, Key, list[Op]]

kinds = st.sampled_from(["create", "create", "upsert", "replace", "delete"])
bodies = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["1", "2", "3"]),
        "pk": st.sampled_from(["a", "b"]),
        "mail": st.sampled_from(["m1", "m2", "m3"]),
        "v": st.sampled_from([1, "x" * 300, [1, {"z": None}], {}, True]),
    },
    optional={"ttl": st.sampled_from([-1, 5]), "more": st.just("more")},
)
asked = st.lists(
    st.tuples(kinds, bodies, st.sampled_from([None, None, "wrong"]), st.integers(0, 2))
)


@settings(max_examples=150)
@given(asked)
def test_one_call_for_a_group_does_what_a_call_each_does(asked: list[Any]) -> None:
    with armillary.open(":memory:", housekeeping=False) as account:
        database = account.create_database("d")
        container = database.create_container(
            "c",
            "/pk",
            default_ttl=-1,
            unique_keys=[["/mail"]],
            indexing_policy={"compositeIndexes": [[{"path": "/v"}, {"path": "/_ts"}]]},
        )
        store = container._store
        datas = [_data(store, *one) for one in asked]
        space = store.state.table.ranges[0].space
        with store.engine.read(space) as reader:
            apart, together = OverlayWriter(reader), OverlayWriter(reader)
            each = [_run(apart, data) for data in datas]
            handler = HANDLERS[WRITE]
            assert handler.run_many is not None
            many = handler.run_many(together, datas)
        assert [_plain(one) for one in many] == [_plain(one) for one in each]
        assert _rows(together) == _rows(apart)


@settings(max_examples=150)
@given(st.lists(st.lists(st.tuples(kinds, bodies, st.none(), st.just(0)), min_size=1, max_size=4)))
def test_batches_of_a_group_do_what_a_batch_each_does(asked: list[list[Any]]) -> None:
    """And nothing is left of one that is refused in the middle."""
    with armillary.open(":memory:", housekeeping=False) as account:
        database = account.create_database("d")
        container = database.create_container("c", "/pk", default_ttl=-1, unique_keys=[["/mail"]])
        store = container._store
        datas: list[Data] = []
        for batch in asked:
            pk = batch[0][1]["pk"]  # a batch is of one logical partition
            made = [_data(store, kind, body | {"pk": pk}, *more) for kind, body, *more in batch]
            datas.append((*made[0][:2], [op for _, _, ops in made for op in ops]))
        with store.engine.read(store.state.table.ranges[0].space) as reader:
            apart, together = OverlayWriter(reader), OverlayWriter(reader)
            each = [HANDLERS["items.batch"].run(apart, data) for data in datas]
            handler = HANDLERS[ATOMIC]
            assert handler.run_many is not None
            many = handler.run_many(together, datas)
        assert _rows(together) == _rows(apart)
        for (done, failed), wanted in zip(many, each, strict=True):
            assert failed == (wanted if isinstance(wanted, Failed) else None)
            if not isinstance(wanted, Failed):
                assert done == [replace(one, text=b"") for one in wanted]


def test_a_mistake_in_one_command_is_found_by_running_each() -> None:
    with armillary.open(":memory:", housekeeping=False) as account:
        container = account.create_database("d").create_container("c", "/pk")
        store = container._store
        good = [_data(store, "create", {"id": str(n), "pk": "a"}, None, 0) for n in range(3)]
        bad = (*good[1][:2], [replace(good[1][2][0], entries=None)])
        jobs = [Job(1, Command(WRITE, data), Future()) for data in (good[0], bad, good[2])]
        with store.engine.read(store.state.table.ranges[0].space) as reader:
            outcomes = run_jobs(OverlayWriter(reader), jobs, HANDLERS)
    assert [type(error) for _, _, error in outcomes] == [type(None), AssertionError, type(None)]


def _data(store: ContainerStore, kind: str, body: Any, if_match: Any, now: int) -> Data:
    operation = Operation(kind, body["id"], body, if_match if kind != "create" else None)
    if kind == "delete":
        operation = Operation(kind, body["id"], None, if_match)
    state = store.state
    prepared = prepare(state, operation, (body["pk"],), Random(0))
    epk, key = key_in(state, prepared.key)
    context = store.context(state, state.table.find(epk))
    if now == 2:
        context = context._replace(fence=b"another")
    return context._replace(now_s=1_700_000_000 + now), key, [prepared.op]


def _run(writer: OverlayWriter, data: Data) -> Any:
    mark = writer.mark()
    try:
        return HANDLERS[WRITE].run(writer, data)
    except DbError as error:
        writer.undo_to(mark)
        return error


def _plain(answer: Any) -> Any:
    if isinstance(answer, DbError):
        return type(answer), answer.message
    return answer


def _rows(writer: OverlayWriter) -> dict[bytes, bytes]:
    return {key: value for key, value in writer.changes().items() if value is not None}
