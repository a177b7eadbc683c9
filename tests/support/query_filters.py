"""Queries that an index can help with, and items whose values are hard on indexes.

Few paths and few values, so that filters often match: long strings that are cut in the index,
integers that share a double, arrays, objects, missing properties.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

LONG = "x" * 230
VALUES: list[Any] = [
    None, True, False, -3, 0, 1, 2, 2.5, 9007199254740992, 9007199254740993, "", "a", "ab", "b",
    "é", "😀", "\ue000", LONG, LONG + "a", LONG + "b", [], ["a"], ["a", "b", 1], [None, [1]], {},
    {"x": 1}, {"x": "a", "y": 2}, [{"x": 1}, {"x": "a"}],
]  # fmt: skip
PATHS = ["c.a", "c.b", "c.a.x", "c.t"]

values = st.sampled_from(VALUES)


@st.composite
def documents(draw: st.DrawFn, most: int = 10) -> list[dict[str, Any]]:
    count = draw(st.integers(0, most))
    some = st.dictionaries(st.sampled_from(["a", "b", "t"]), values, max_size=3)
    return [{"id": str(number), **draw(some)} for number in range(count)]


def literal(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {literal(v)}" for name, v in value.items()) + "}"
    return {True: "true", False: "false", None: "null"}.get(value) or str(value)


constants = values.map(literal) | st.just("undefined")
paths = st.sampled_from(PATHS)
operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
strings = st.sampled_from([literal(v) for v in VALUES if isinstance(v, str)])


def _built(form: str, *parts: SearchStrategy[str]) -> SearchStrategy[str]:
    return st.tuples(*parts).map(lambda chosen: form.format(*chosen))


_TESTS = [
    "IS_ARRAY",
    "IS_BOOL",
    "IS_DEFINED",
    "IS_NULL",
    "IS_NUMBER",
    "IS_OBJECT",
    "IS_STRING",
    "IS_PRIMITIVE",
]
_PATTERNS = ['"a%"', '"%"', '"a"', '"x%a"', '"_"', '"%b"', '""', '"[a]b%"', '"\\uE000%"']
_INNER = ['e = "a"', "e = 1", "e > 0", 'e.x = "a"', "e != null", 'e = "a" OR e = 1', "e.x > 0"]
_OUT = ["1", "e", "e.x", "undefined"]

simple: SearchStrategy[str] = st.one_of(
    _built("{} {} {}", paths, operators, constants),
    _built("{} {} {}", constants, operators, paths),
    _built("{} IN ({}, {})", paths, constants, constants),
    _built("{} NOT IN ({}, {})", paths, constants, constants),
    _built("({} BETWEEN {} AND {})", paths, constants, constants),
    _built("({} NOT BETWEEN {} AND {})", paths, constants, constants),
    _built("{}({})", st.sampled_from(_TESTS), paths),
    _built("STARTSWITH({}, {})", paths, strings),
    _built("STARTSWITH({}, {}, true)", paths, strings),
    _built("StringEquals({}, {})", paths, strings),
    _built("CONTAINS({}, {})", paths, strings),
    _built("{} LIKE {}", paths, st.sampled_from(_PATTERNS)),
    _built("{} NOT LIKE {}", paths, st.sampled_from(_PATTERNS)),
    _built("ARRAY_CONTAINS({}, {})", paths, constants),
    _built("ARRAY_CONTAINS({}, {}, true)", paths, constants),
    _built("ARRAY_CONTAINS([{}, {}], {})", constants, constants, paths),
    _built("ARRAY_CONTAINS_ANY({}, {}, {})", paths, constants, constants),
    _built("ARRAY_CONTAINS_ALL({}, {}, {})", paths, constants, constants),
    _built(
        "EXISTS(SELECT VALUE {} FROM e IN {} WHERE {})",
        st.sampled_from(_OUT),
        paths,
        st.sampled_from(_INNER),
    ),
    _built("c.id = {}", st.sampled_from(['"0"', '"1"', '"2"', "3"])),
    _built("c.id IN ({}, {})", st.sampled_from(['"0"', '"1"']), st.sampled_from(['"2"', '"7"'])),
    paths,
    _built("(NOT {})", paths),
)


def _larger(inner: SearchStrategy[str]) -> SearchStrategy[str]:
    return st.one_of(
        _built("({} AND {})", inner, inner),
        _built("({} OR {})", inner, inner),
        _built("(NOT ({}))", inner),
    )


filters = st.recursive(simple, _larger, max_leaves=3)
where = st.just("") | filters.map(lambda text: f" WHERE {text}")
directions = st.sampled_from(["", " DESC"])
slices = st.sampled_from(["", "", " OFFSET 1 LIMIT 3"])
_AGGREGATES = ["COUNT(1)", "COUNT(c.a)", "MIN(c.a)", "MAX(c.a)", "SUM(c.b)", "COUNT(c)"]

#: Few, so that they meet; the middle ones are cut in a composite index and not in a single one.
MIDDLE = "y" * 140
FEW_VALUES: list[Any] = [
    None, True, 1, 2, "a", "ab", MIDDLE + "a", MIDDLE + "b", LONG, [], {"x": 1},
]  # fmt: skip
few_constants = st.sampled_from([*map(literal, FEW_VALUES), "undefined"])
_few_strings = st.sampled_from([literal(v) for v in FEW_VALUES if isinstance(v, str)])


@st.composite
def pair_documents(draw: st.DrawFn, most: int = 14) -> list[dict[str, Any]]:
    """Items for `pairs`: most of them have both properties."""
    few = st.sampled_from(FEW_VALUES)
    names = st.sampled_from([("a", "b", "t"), ("a", "b"), ("a", "b"), ("a",), ("b",)])
    count = draw(st.integers(1, most))
    return [{"id": str(n), **{name: draw(few) for name in draw(names)}} for n in range(count)]


_PAIR = "c.a {} {} AND c.b {} {}"
_pair = (operators, few_constants, operators, few_constants)
_BOTH_KEYS = [f" ORDER BY c.a{a}, c.b{b}" for a in ("", " DESC") for b in ("", " DESC")]
#: Filters on both columns of a composite index, and orders that it may or may not be in.
pairs: SearchStrategy[str] = st.one_of(
    _built(f"SELECT VALUE c.id FROM c WHERE {_PAIR}", *_pair),
    _built(f"SELECT VALUE COUNT(1) FROM c WHERE {_PAIR}", *_pair),
    _built(f"SELECT VALUE COUNT(1) FROM c WHERE {_PAIR} OR c.a {{}} {{}}", *_pair, *_pair[:2]),
    _built(
        "SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS_ALL(c.t, {}, {}) AND c.a {} {}",
        few_constants, few_constants, operators, few_constants,
    ),
    _built(f"SELECT VALUE c.id FROM c WHERE {_PAIR} ORDER BY c.b{{}}", *_pair, directions),
    _built("SELECT VALUE c.id FROM c WHERE c.a = {} ORDER BY c.b{}", few_constants, directions),
    _built("SELECT VALUE c.id FROM c WHERE c.a {} {} ORDER BY c.a{}", *_pair[:2], directions),
    _built(f"SELECT VALUE c.id FROM c WHERE {_PAIR}{{}}", *_pair, st.sampled_from(_BOTH_KEYS)),
    _built(
        "SELECT VALUE c.id FROM c WHERE c.a IN ({}, {}) AND c.b {} {}{}",
        few_constants, few_constants, operators, few_constants, st.sampled_from(["", *_BOTH_KEYS]),
    ),
    _built(
        "SELECT VALUE c.id FROM c WHERE c.a = {} AND STARTSWITH(c.b, {}){}",
        few_constants, _few_strings, st.sampled_from(["", *_BOTH_KEYS]),
    ),
)  # fmt: skip

texts: SearchStrategy[str] = st.one_of(
    _built("SELECT * FROM c{}", where),
    _built("SELECT VALUE c.id FROM c{}{}", where, slices),
    _built("SELECT VALUE c.id FROM c{} ORDER BY {}{}{}", where, paths, directions, slices),
    _built("SELECT c.id, e FROM c JOIN e IN c.t{} ORDER BY {}{}", where, paths, directions),
    _built("SELECT c.id, e FROM c JOIN e IN c.t WHERE {}", st.sampled_from(_INNER)),
    _built("SELECT VALUE {} FROM c{}", st.sampled_from(_AGGREGATES), where),
    _built("SELECT {} AS p, {} AS q FROM c", *[st.sampled_from(_AGGREGATES)] * 2),
    _built("SELECT DISTINCT VALUE {} FROM c{}", paths, where),
    _built("SELECT DISTINCT VALUE {} FROM c{} ORDER BY c.a{}", paths, where, directions),
    _built("SELECT c.a, COUNT(1) AS n FROM c{} GROUP BY c.a", where),
    st.sampled_from(_BOTH_KEYS).map(lambda keys: f"SELECT VALUE c.id FROM c{keys}"),
    pairs,
)
