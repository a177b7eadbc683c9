"""Policies of a container decide what functions mean: the metric of vectors, the language of texts.

Without them a query would sort by one distance and show another, or find words of one language
with the stems of another.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.accounts import World, check, open_world, store_of

from armillary.container import Container
from armillary.query.expr.compile import compile_expression
from armillary.query.plan.policies import context_of
from armillary.query.problems import BadQuery
from armillary.query.run.program import Program
from armillary.query.run.sql import bound_query, run_range
from armillary.query.sql.planning import make_plan
from armillary.store.moves.runner import begin_split

EMBEDDINGS = [
    {"path": "/far", "dataType": "float32", "dimensions": 2, "distanceFunction": "euclidean"},
    {"path": "/dot", "dataType": "float32", "dimensions": 2, "distanceFunction": "dotproduct"},
]
VECTORS = {"vectorEmbeddings": EMBEDDINGS}
TEXTS = {
    "defaultLanguage": "en-US",
    "fullTextPaths": [{"path": "/text"}, {"path": "/wort", "language": "de-DE"}],
}
INDEXES = {
    "vectorIndexes": [{"path": "/far", "type": "diskANN"}, {"path": "/dot", "type": "flat"}],
    "fullTextIndexes": [{"path": "/text"}, {"path": "/wort"}],
}


def filled(world: World, **changes: Any) -> Container:
    container = world.container("items", "/pk")
    world.database.replace_container(
        "items", vectorEmbeddingPolicy=VECTORS, fullTextPolicy=TEXTS, **changes
    )
    for number in range(6):
        vector = [number, 0.5]
        words = "Häuser running" if number % 2 else "nothing"
        container.create_item(
            {
                "id": f"i{number}",
                "pk": f"p{number}",
                "far": vector,
                "dot": vector,
                "none": vector,
                "text": words,
                "wort": words,
            }
        )
    return container


@pytest.mark.parametrize("changes", [{}, {"indexingPolicy": INDEXES}])
def test_vectors_are_compared_as_the_policy_says(changes: dict[str, Any]) -> None:
    """In the value and in the order, with and without an index, over one range and over two."""
    with open_world(":memory:") as world:
        container = filled(world, **changes)
        for _ in range(2):
            distance = "VectorDistance(c.{}, [3, 0.5]{})"
            for path, options, ids, score in (
                ("far", "", ["i3", "i4", "i2"], 0.0),
                ("dot", "", ["i5", "i4", "i3"], 15.25),
                ("far", ", false, {distanceFunction: 'dotproduct'}", ["i5", "i4", "i3"], 15.25),
                ("far", ", true", ["i3", "i4", "i2"], 0.0),
                ("far", ", false, {dataType: 'float16'}", ["i3", "i4", "i2"], 0.0),
                ("none", ", true, {distanceFunction: 'Euclidean'}", ["i3", "i4", "i2"], 0.0),
            ):
                call = distance.format(path, options)
                text = f"SELECT TOP 3 c.id, {call} AS d FROM c ORDER BY {call}"
                rows = container.query_page(text).rows
                assert rows[0]["d"] == score, text
                assert {row["id"] for row in rows} == set(ids)
                assert rows[0]["id"] == ids[0]
                ranked = list(container.query(f"SELECT TOP 3 c.id FROM c ORDER BY RANK {call}"))
                assert ranked[0]["id"] == ids[0]
            cosine = container.query_page("SELECT VALUE VectorDistance(c.none, c.none) FROM c")
            assert cosine.rows == pytest.approx([1.0] * 6)
            store = store_of(container)
            begin_split(store, store.state.table.ranges[0].ordinal).run()
        check(container)


def test_a_part_of_the_ring_sorts_the_same_way() -> None:
    """What clients that merge themselves ask each range for."""
    with open_world(":memory:") as world:
        store = store_of(filled(world))
        text = "SELECT TOP 2 VALUE c.id FROM c ORDER BY VectorDistance(c.far, [3, 0.5])"
        owner = store.state.table.ranges[0]
        assert run_range(store, text, start=owner.start, end=owner.end).rows[0] == "i3"


def test_rows_of_an_inner_query_are_no_items() -> None:
    """`s.far` is a column of that name, of which the policy says nothing."""
    with open_world(":memory:") as world:
        inner = "SELECT DISTINCT c.far FROM c WHERE c.id = 'i3'"
        text = f"SELECT VALUE VectorDistance(s.far, [3, 0.5]) FROM ({inner}) s"
        assert list(filled(world).query(text)) == pytest.approx([1.0])


def test_compiled_expressions_know_the_policy_too() -> None:
    with open_world(":memory:") as world:
        state = store_of(filled(world)).refresh()
        plan = make_plan(bound_query("SELECT VALUE VectorDistance(c.far, [3, 4]) FROM c"), {})
        program = Program(plan, {}, context_of(state, 0, lambda: 0.0))
        (row,) = program.combinations({"far": [0, 0]})
        assert program.output(row) == 5.0
        assert compile_expression(plan.output, program.scope)(row) == 5.0


def test_options_that_differ_from_row_to_row_do_not_break_the_order() -> None:
    with open_world(":memory:") as world:
        text = "SELECT TOP 1 VALUE c.id FROM c ORDER BY VectorDistance(c.far, [3, 0.5], false, c.o)"
        assert len(list(filled(world).query(text))) == 1


@pytest.mark.parametrize("changes", [{}, {"indexingPolicy": INDEXES}])
@pytest.mark.parametrize(
    ("path", "word", "found"),
    [("text", "run", 3), ("text", "haus", 0), ("wort", "run", 0), ("wort", "haus", 3)],
)
def test_each_path_has_its_language(
    changes: dict[str, Any], path: str, word: str, found: int
) -> None:
    """German knows Haus and Häuser as one word, English run and running."""
    with open_world(":memory:") as world:
        container = filled(world, **changes)
        test = f"FullTextContains(c.{path}, '{word}')"
        page = container.query_page(f"SELECT VALUE c.id FROM c WHERE {test}")
        assert len(page.rows) == found
        assert bool(page.metrics.index_used) is bool(changes)
        assert list(container.query(f"SELECT VALUE COUNT(1) FROM c WHERE {test}")) == [found]
        rank = f"FullTextScore(c.{path}, '{word}')"
        best = list(container.query(f"SELECT TOP 1 VALUE c.id FROM c ORDER BY RANK {rank}"))
        assert best == (["i1"] if found else ["i0"])


def test_weights_may_be_a_parameter() -> None:
    with open_world(":memory:") as world:
        container = filled(world)
        scores = "VectorDistance(c.far, [0, 0.5]), VectorDistance(c.dot, [1, 0])"
        text = f"SELECT TOP 1 VALUE c.id FROM c ORDER BY RANK RRF({scores}, @w)"
        assert list(container.query(text, {"@w": [9, 1]})) == ["i0"]
        assert list(container.query(text, {"@w": [1, 9]})) == ["i5"]
        for wrong in ([1], [1, "2"], "x", None):
            with pytest.raises(BadQuery) as caught:
                list(container.query(text, {"@w": wrong}))
            assert caught.value.errors[0].code == "SC2229"


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ("VectorDistance(c.far, [1, 2]) ASC", "Specifying a sorting order (ASC or DESC) with"),
        ("VectorDistance(c.far, [1, 2]) DESC", "Specifying a sorting order (ASC or DESC) with"),
        ("RANK FullTextScore(c.text, 'a') DESC", "in the ORDER BY RANK clause is not allowed."),
    ],
)
def test_the_least_alike_can_not_be_asked_for(order: str, message: str) -> None:
    with pytest.raises(BadQuery) as caught:
        bound_query(f"SELECT TOP 1 * FROM c ORDER BY {order}")
    assert message in caught.value.message
