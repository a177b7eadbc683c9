"""Compiled expressions: the cache, the bounds, and when closures are kept."""

from typing import Any

import pytest

from armillary.errors import NotSupported
from armillary.query.expr import compile
from armillary.query.expr.codegen import DEPTH_MAX, TERMS_MAX
from armillary.query.expr.compile import (
    NODES_MAX,
    ROWS_FIRST,
    TEXTS_MAX,
    compile_expression,
    compile_filter,
    make_expression,
)
from armillary.query.expr.evaluate import Frame, Scope, make
from armillary.query.functions import Context
from armillary.query.sql import ast
from armillary.query.sql.parser import parse
from armillary.values import UNDEFINED

CONTEXT = Context(now_ticks=0, random=iter(range(1_000_000)).__next__)


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    compile._factory.cache_clear()


def expression(text: str) -> ast.Expr:
    query = parse(f"SELECT VALUE {text} FROM c")
    assert isinstance(query.select, ast.SelectValue)
    return query.select.expr


def scope(**parameters: Any) -> Scope:
    named = {f"@{name}": value for name, value in parameters.items()}
    return Scope(Frame(1), named, CONTEXT, {"c": 0})


def evaluate(text: str, item: Any, **parameters: Any) -> Any:
    found = compile_expression(expression(text), scope(**parameters))([item])
    assert found == make(expression(text), scope(**parameters)).run([item])
    return found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("c.a > 1", True),
        ("1 < c.a", True),
        ("c.a > 1 AND c.a > 2 AND c.none = 1", False),
        ("c.a > 1 AND c.none = 1", UNDEFINED),
        ("c.none = 1 OR c.a = 2", True),
        ("c.none = 1 OR c.a = 3", UNDEFINED),
        ("NOT (c.none = 1)", UNDEFINED),
        ("c.a % 3", 2.0),
        ("-c.a % 1.5", -0.5),
        ("9007199254740993 % 2 = c.a % 2", True),
        ("c.yes % 3", UNDEFINED),
        ("c.none % 3", UNDEFINED),
        ("(c.a / 4) % 3", 0.5),
        ("c.a % 0 = 1", False),
        ("c.a % true", UNDEFINED),
        ("c.a = true", False),
        ("c.yes = 1", False),
        ("c.yes != 1", True),
        ("c.yes IN (1, 2)", False),
        ("c.a IN (1, 2)", True),
        ('c.s IN ("x", "y")', True),
        ('c.t IN ("x")', False),
        ('c.s > "w" AND c.s < "z"', True),
        ('c.s BETWEEN "a" AND "z"', True),
        ('c.emoji < "\uff5e"', True),  # by UTF-16 unit, where Python's order says otherwise
        ('"\uff5e" > c.emoji', True),
        ("c.o.p.q", 5),
        ("c.o.p.q.r", UNDEFINED),
        ("c.s.x", UNDEFINED),
        ("c.none ?? c.a", 2),
        ("c.a ?? c.none", 2),
        ("c.a = 2 ? c.s : c.none", "x"),
        ("[c.a, c.none, 3]", [2, 3]),
        ("{a: c.a, b: c.none, c: {d: c.s}}", {"a": 2, "c": {"d": "x"}}),
        ('c.s LIKE "_"', True),
        ('c.s LIKE "!_" ESCAPE "!"', False),
        ('c.s LIKE "x" ESCAPE "ab"', UNDEFINED),
        ("LOWER(c.s) = LOWER(@p)", True),
        ("c.o.p = @o", True),
        ("ABS(-c.a) + 1", 3.0),
        ("[]", []),
        ("{}", {}),
    ],
)
def test_values(text: str, value: Any) -> None:
    item = {
        "a": 2, "s": "x", "yes": True, "t": ["x"], "o": {"p": {"q": 5}}, "emoji": "😀",
    }  # fmt: skip
    found = evaluate(text, item, p="X", o={"q": 5.0})
    assert found == value
    assert type(found) is type(value)
    assert compile_filter(expression(text), scope(p="X", o={"q": 5.0}))([item]) is (value is True)


def test_one_text_is_compiled_once_for_all_values() -> None:
    """Otherwise every new literal would cost a compilation."""
    for number in range(20):
        compile_expression(expression(f"c.a > {number} AND c.b = 'v{number}'"), scope())
        compile_expression(expression("c.x > @a AND c.y = @b"), scope(a=number, b="z"))
    assert compile._factory.cache_info().misses == 1


def test_the_type_of_a_value_decides_the_text() -> None:
    """`= 1` and `= "1"` are compiled differently; sharing one text would mix up their types."""
    values: list[Any] = [1, 1.0, "1", None, True, False, [1], {}, UNDEFINED]
    for value in values:
        run = compile_expression(expression("c.a = @p"), scope(p=value))
        expected = make(expression("c.a = @p"), scope(p=value)).run
        for given in values:
            assert run([{"a": given}]) is expected([{"a": given}])


def test_the_cache_is_bounded() -> None:
    for number in range(TEXTS_MAX + 50):
        compile_expression(expression(" + ".join(["c.a"] * 2 + ["1"] * (number % 40))), scope())
    assert compile._factory.cache_info().currsize <= TEXTS_MAX


def test_a_path_computed_before_is_used_only_where_it_was() -> None:
    """Not where another way leads past the first use of it."""
    text = "(c.a = 1 OR c.b = 2) AND c.b = 2"
    run = compile_filter(expression(text), scope())
    assert run([{"a": 1, "b": 2}]) is True
    assert run([{"a": 1, "b": 3}]) is False
    text = "(c.none = 1 ? c.a = 1 : c.b = 2) AND c.a = 7 AND c.b = 2"
    assert compile_filter(expression(text), scope())([{"a": 7, "b": 2}]) is True


@pytest.mark.parametrize("levels", [DEPTH_MAX - 1, DEPTH_MAX, DEPTH_MAX + 1, 60])
@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("(1 = ", ")"),
        ("(NOT ", ")"),
        ("[", "]"),
        ("{x: ", "}"),
        ("ABS(", ")"),
        ("(c.a = 1 ? ", " : c.b)"),
        ("(c.none ?? ", ")"),
        ("(c.a = 1 AND ", ")"),
        ("(", " BETWEEN 1 AND 2)"),
        ("((c.a > 3) = ", ")"),
        ("(", " > 3)"),
        ("(- ", ")"),
    ],
)
def test_depth_does_not_break_the_compiler(levels: int, opening: str, closing: str) -> None:
    """Python bounds brackets in one another; beyond our bound closures go on."""
    text = opening * levels + "c.a" + closing * levels
    expr = expression(text)
    run, filtering = compile_expression(expr, scope()), compile_filter(expr, scope())
    expected = make(expr, scope()).run([{"a": 1}])
    assert run([{"a": 1}]) == expected
    assert filtering([{"a": 1}]) is (expected is True)


def test_long_paths() -> None:
    path = "c" + ".a" * 60
    item: Any = 7
    for _ in range(60):
        item = {"a": item}
    assert evaluate(f"{path} = 7", item) is True


@pytest.mark.parametrize("terms", [TERMS_MAX, TERMS_MAX + 1, NODES_MAX * 2])
def test_many_terms(terms: int) -> None:
    text = " OR ".join(f"c.a = {number}" for number in range(terms))
    for wanted, expected in ((terms - 1, True), (terms, False)):
        assert evaluate(text, {"a": wanted}) is expected
        assert compile_filter(expression(text), scope())([{"a": wanted}]) is expected


def test_a_large_expression_is_not_compiled() -> None:
    """A machine-made filter of thousands of terms would take seconds to compile."""
    text = " + ".join(["c.a"] * 100)
    compile_expression(expression(f"[{', '.join([text] * 5)}]"), scope())
    assert compile._factory.cache_info().misses == 0
    compile_expression(expression(f"c.a IN ({', '.join(map(str, range(5000)))})"), scope())
    assert compile._factory.cache_info().misses == 1


def test_chance_is_not_folded() -> None:
    run = compile_expression(expression("[RAND(), c.a]"), scope())
    assert run([{"a": 1}]) != run([{"a": 1}])


def test_constant_calls_are_folded() -> None:
    run = compile_expression(expression('CONCAT(LOWER("A"), @p) = c.a'), scope(p="b"))
    assert run([{"a": "ab"}]) is True
    assert run.__closure__ is not None
    assert "ab" in [cell.cell_contents for cell in run.__closure__]


def test_user_defined_functions_are_refused_as_before() -> None:
    with pytest.raises(NotSupported):
        compile_expression(expression("udf.f(c.a) = 1"), scope())


def test_an_expression_is_compiled_when_it_has_been_used_often() -> None:
    """A query that looks at ten items must not pay for a compilation."""
    run = make_expression(expression("c.a > 1 AND c.b = 2"), scope())
    for _ in range(ROWS_FIRST - 1):
        assert run([{"a": 2, "b": 2}]) is True
    assert compile._factory.cache_info().misses == 0
    assert run([{"a": 2, "b": 2}]) is True
    assert compile._factory.cache_info().misses == 1
    assert run([{"a": 2, "b": 3}]) is False
    assert run([{"a": 2}]) is UNDEFINED


def test_what_takes_slots_of_the_row_stays_as_it_was_made() -> None:
    """The row is there by then, and has no more slots."""
    own = scope()
    run = make_expression(expression("(LET x = c.a IN x + x) > 3"), own)
    row = own.frame.row()
    row[0] = {"a": 2}
    assert all(run(row) is True for _ in range(ROWS_FIRST + 2))
    assert own.frame.size == len(row)
