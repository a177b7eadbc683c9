"""Upserts, replaces and patches change exactly the rows that a count of all items expects: index
rows, totals, logical partitions, shapes and the log. Without this, a fast path that leaves a row
behind would show only in a query."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armillary
from armillary.errors import BadInput, BatchFailed, NotFound
from armillary.store.upkeep.recount import problems

SCALARS = st.sampled_from([None, True, False, 0, 1, 2.5, "", "x", "y" * 200])
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=3),
    st.dictionaries(st.sampled_from(["a", "b"]), SCALARS, max_size=2),
)
BODIES = st.dictionaries(st.sampled_from(["a", "b", "o"]), VALUES, max_size=3)
POINTERS = st.sampled_from(["/a", "/b", "/o", "/o/a", "/a/0", "/o/b"])
PATCH = st.one_of(
    st.fixed_dictionaries({"op": st.just("set"), "path": POINTERS, "value": VALUES}),
    st.fixed_dictionaries({"op": st.just("add"), "path": POINTERS, "value": VALUES}),
    st.fixed_dictionaries({"op": st.just("remove"), "path": POINTERS}),
    st.fixed_dictionaries({"op": st.just("move"), "from": POINTERS, "path": POINTERS}),
    st.fixed_dictionaries(
        {"op": st.just("set"), "path": st.just("/ttl"), "value": st.sampled_from([-1, 50, 90])}
    ),
)
IDS = st.sampled_from(["1", "2"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), IDS, BODIES),
        st.tuples(st.just("replace"), IDS, BODIES),
        st.tuples(st.just("patch"), IDS, st.lists(PATCH, min_size=1, max_size=2)),
        st.tuples(st.just("batch"), IDS, st.lists(PATCH, min_size=1, max_size=2)),
        st.tuples(st.just("delete"), IDS, st.none()),
    ),
    min_size=1,
    max_size=12,
)
COMPOSITE = {"compositeIndexes": [[{"path": "/a"}, {"path": "/_ts", "order": "descending"}]]}


@pytest.mark.parametrize(
    "options", [{}, {"indexing_policy": COMPOSITE}, {"change_feed_retention_minutes": 10}]
)
@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_every_change_leaves_the_rows_of_its_items(
    options: dict[str, Any], steps: list[tuple[str, str, Any]]
) -> None:
    with armillary.open(":memory:", housekeeping=False) as account:
        database = account.create_database("d")
        container = database.create_container("c", "/pk", default_ttl=-1, **options)
        for kind, name, given_ in steps:
            with contextlib.suppress(BadInput, BatchFailed, NotFound):
                _do(container, kind, name, given_)
            store = container._store
            for one in store.state.table.ranges:
                with store.engine.read(one.space) as reader:
                    assert problems(reader, store.state.policies) == []


def _do(container: Any, kind: str, name: str, value: Any) -> None:
    if kind == "upsert":
        container.upsert_item({"id": name, "pk": "p", **value})
    elif kind == "replace":
        container.replace_item(name, {"id": name, "pk": "p", **value})
    elif kind == "delete":
        container.delete_item(name, "p")
    elif kind == "patch":
        container.patch_item(name, "p", value)
    else:  # twice in one transaction
        body = {"id": name, "pk": "p", "a": 1}
        operations = [("upsert", (body,)), ("patch", (name, value)), ("patch", (name, value))]
        container.execute_item_batch(operations, "p")
