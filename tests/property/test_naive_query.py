"""The two opinions agree where both have one, and the naive one does what the reference says."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property import naive_values
from tests.property.naive_functions import OWN, aggregate
from tests.property.naive_query import QueryFailed, run
from tests.support.function_cases import FunctionCase, function_cases

from armillary.query.expr import operators
from armillary.query.expr.like import like
from armillary.query.functions import FUNCTIONS
from armillary.values import UNDEFINED, identity, order_key, same

numbers = st.one_of(
    st.integers(-5, 5),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)
texts = st.text("abAB%_[]^-é😀\ue000", max_size=6)
values = st.recursive(
    st.one_of(st.just(UNDEFINED), st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(
        st.lists(inner.filter(lambda v: v is not UNDEFINED), max_size=3),
        st.dictionaries(st.sampled_from("ab"), inner.filter(lambda v: v is not UNDEFINED)),
    ),
    max_leaves=6,
)


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=1e-12)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return same(one, other)


@pytest.mark.parametrize("case", function_cases(), ids=str)
def test_the_table_of_functions(case: FunctionCase) -> None:
    """A naive evaluator that disagrees with the table would accuse the wrong side."""
    wrapped = f"SELECT VALUE [IS_DEFINED({case.call}), ToString({case.call})]"
    found, *text = run(wrapped)[0]
    assert found is (case.result is not UNDEFINED)
    if found and not (isinstance(case.result, float) and not math.isfinite(case.result)):
        assert alike(case.result, run(f"SELECT VALUE {case.call}")[0])
    elif found:
        assert text == [operators_text(case.result)]


def operators_text(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"


@given(left=values, right=values)
@settings(max_examples=300, deadline=None)
def test_operators_agree(left: Any, right: Any) -> None:
    for name, naive in naive_values.BINARY.items():
        assert alike(naive(left, right), operators.BINARY[name](left, right)), name
    for name, unary in naive_values.UNARY.items():
        assert alike(unary(left), operators.UNARY[name](left)), name


@given(one=values, two=values, three=values)
@settings(max_examples=200, deadline=None)
def test_order_and_identity_agree(one: Any, two: Any, three: Any) -> None:
    """ORDER BY, DISTINCT and GROUP BY of the executor rest on these two keys."""
    naive = sorted([one, two, three], key=naive_values.by_order)
    real = sorted([one, two, three], key=order_key)
    assert all(naive_values.compare(a, b) == 0 for a, b in zip(naive, real, strict=True))
    equal = identity(one) == identity(two)
    assert equal is naive_values.is_equal(one, two)


@given(value=texts, pattern=texts)
@settings(max_examples=300, deadline=None)
def test_like_agrees(value: str, pattern: str) -> None:
    assert like(value, pattern, "^") is naive_like(value, pattern)


def naive_like(value: str, pattern: str) -> Any:
    """The naive one does not know the escape character inside a set, nor ranges that run
    backwards.
    """
    if "[" in pattern:
        return like(value, pattern, "^")
    return naive_values.like(value, pattern, "^")


@given(st.lists(values, max_size=6), st.integers(0, 6))
@settings(max_examples=200, deadline=None)
def test_aggregates_agree_and_may_be_merged_anywhere(items: list[Any], cut: int) -> None:
    """A partition sends its state: cutting the rows anywhere must not change the answer."""
    for key, function in FUNCTIONS.items():
        if function.kind != "aggregate":
            continue
        assert function.run is not None
        first, second = function.run(), function.run()
        for value in items[:cut]:
            first.add(value)
        for value in items[cut:]:
            second.add(value)
        first.merge(second)
        found, expected = first.result(), aggregate(key, items)
        if key in ("SUM", "AVG") and expected is not UNDEFINED:
            size = max([1.0, *(abs(float(v)) for v in items if type(v) in (int, float))])
            assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=size * 1e-9)
        else:
            assert alike(found, expected), key


CALLS: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    "LENGTH": (texts,),
    "UPPER": (texts,),
    "LOWER": (texts,),
    "LEFT": (texts, st.integers(-2, 9)),
    "RIGHT": (texts, st.integers(-2, 9)),
    "SUBSTRING": (texts, st.integers(-2, 9), st.integers(-2, 9)),
    "INDEXOF": (texts, texts, st.integers(-2, 9)),
    "LASTINDEXOF": (texts, texts, st.integers(-2, 9)),
    "CONTAINS": (texts, texts, st.booleans()),
    "ENDSWITH": (texts, texts, st.booleans()),
    "REPLACE": (texts, texts, texts),
    "TRIM": (texts, texts),
    "STRINGSPLIT": (texts, texts),
    "TOSTRING": (values,),
    "ARRAYSLICE": (st.lists(numbers), st.integers(-9, 9), st.integers(-2, 9)),
    "ARRAYCONTAINS": (st.lists(values.filter(lambda v: v is not UNDEFINED)), values, st.booleans()),
    "SETUNION": (st.lists(numbers), st.lists(numbers)),
    "SETINTERSECT": (st.lists(st.booleans() | st.integers(-2, 2)), st.lists(st.integers(-2, 2))),
    "SETDIFFERENCE": (st.lists(st.booleans() | st.integers(-2, 2)), st.lists(st.integers(-2, 2))),
    "SETEQUAL": (st.lists(st.integers(0, 1)), st.lists(st.integers(0, 1))),
    "ARRAYMEDIAN": (st.lists(st.integers(-9, 9)),),
    "ARRAYMAX": (st.lists(values.filter(lambda v: v is not UNDEFINED)),),
    "INTADD": (numbers, numbers),
    "INTMUL": (numbers, numbers),
    "INTDIV": (numbers, numbers),
    "INTMOD": (numbers, numbers),
    "INTBITLEFTSHIFT": (numbers, st.integers(-70, 70)),
    "ROUND": (numbers,),
    "TRUNC": (numbers,),
    "SIGN": (numbers,),
    "ISINTEGER": (values,),
}


@pytest.mark.parametrize("key", CALLS)
def test_functions_agree(key: str) -> None:
    """Two readings of one rule; edge values come from hypothesis, not from the writer's mind."""
    function = FUNCTIONS[key].run
    assert function is not None

    @given(st.tuples(*CALLS[key]))
    @settings(max_examples=80, deadline=None, database=None)
    def agree(arguments: tuple[Any, ...]) -> None:
        assert alike(OWN[key](*arguments), function(*arguments))

    agree()


# --- clauses of the naive evaluator itself --------------------------------------------------------

ITEMS: list[Any] = [
    {"id": "1", "g": "a", "n": 3, "t": ["x", "y"], "text": "red bicycle", "v": [1, 0]},
    {"id": "2", "g": "b", "n": 1, "t": [], "text": "red red car", "v": [0, 1]},
    {"id": "3", "g": "a", "n": 2, "text": "blue boat", "v": [1, 1]},
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT VALUE c.id FROM c ORDER BY c.n", ["2", "3", "1"]),
        ("SELECT VALUE c.id FROM c ORDER BY c.g DESC", ["2", "3", "1"]),
        ("SELECT VALUE c.id FROM c JOIN t IN c.t", ["1", "1"]),
        ("SELECT VALUE c.id FROM c WHERE ALL(SELECT t FROM t IN c.t WHERE t = 'x')", ["2", "3"]),
        ("SELECT VALUE (LET x = c.n IN x * x) FROM c", [9, 1, 4]),
        ("SELECT c.g, COUNT(1) FROM c GROUP BY c.g", [{"g": "a", "$1": 2}, {"g": "b", "$1": 1}]),
        ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.g FROM c)", [2]),
        ("SELECT VALUE udf.twice(c.n) FROM c WHERE c.id = '1'", [6]),
        ("SELECT VALUE udf.twice(c.none) FROM c", []),
        ("SELECT VALUE c.n / 1 FROM c", [3, 1, 2]),
        ("SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'red')", ["2", "1", "3"]),
        (
            "SELECT TOP 2 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [0, 1])",
            ["2", "3"],
        ),
        (
            "SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0], true, "
            "{distanceFunction: 'euclidean'})",
            ["1", "3", "2"],
        ),
        (
            "SELECT VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'red'), "
            "VectorDistance(c.v, [1, 0]), [1, 10])",
            ["1", "3", "2"],
        ),
    ],
)
def test_clauses(query: str, expected: list[Any]) -> None:
    assert run(query, ITEMS, udfs={"twice": lambda n: n * 2}) == expected


@pytest.mark.parametrize(
    "query",
    ["SELECT VALUE 1/0", "SELECT [SQRT(-1)]", "SELECT (SELECT VALUE t FROM t IN c.t) FROM c"],
)
def test_what_fails_only_when_run(query: str) -> None:
    with pytest.raises(QueryFailed):
        run(query, ITEMS)
