"""Every system function against the readable table, and rules that hold for all of them."""

import math
from typing import Any

import pytest
from tests.support.function_cases import FunctionCase, function_cases

from armillary.query.expr import operators
from armillary.query.functions import FUNCTIONS, SIGNATURES, Context
from armillary.query.sql import ast
from armillary.query.sql.parser import parse
from armillary.values import UNDEFINED, same

CONTEXT = Context(now_ticks=17_000_000_000_000_000, random=lambda: 0.5)
CASES = function_cases()

#: Functions for which an undefined argument is an answer, not the end.
TOTAL = {
    *(key for key in FUNCTIONS if key.startswith("IS")),
    *["ARRAYCONTAINSANY", "ARRAYCONTAINSALL", "CONTAINSANYCS", "CONTAINSANYCI", "CONTAINSALLCS"],
    *["CONTAINSALLCI", "FULLTEXTCONTAINSANY", "FULLTEXTCONTAINSALL", "CHOOSE", "IIF"],
}
SAMPLES: list[Any] = [None, True, -1, 2.5, math.inf, "x", "", [], [1, "a"], {}, {"type": "Point"}]


def call(function: str, arguments: list[Any]) -> Any:
    entry = FUNCTIONS[function]
    assert entry.run is not None
    return entry.run(CONTEXT, *arguments) if entry.context else entry.run(*arguments)


def evaluate(expr: ast.Node) -> Any:
    match expr:
        case ast.Literal(value=value):
            return value
        case ast.ArrayLiteral(items=items):
            return [evaluate(each) for each in items]
        case ast.ObjectLiteral(members=members):
            return {each.name: evaluate(each.value) for each in members}
        case ast.Call(function=function, args=args):
            return call(function, [evaluate(each) for each in args])
        case ast.Unary(operator=operator, operand=operand):
            return operators.UNARY[operator](evaluate(operand))
        case ast.Binary(operator=operator, left=left, right=right):
            return operators.BINARY[operator](evaluate(left), evaluate(right))
        case _:
            raise AssertionError(f"the table needs no {expr}")


def expression(text: str) -> ast.Expr:
    query = parse(f"SELECT VALUE {text}")
    assert isinstance(query.select, ast.SelectValue)
    return query.select.expr


def close(expected: Any, found: Any) -> bool:
    if isinstance(expected, float) and isinstance(found, float | int):
        both_nan = math.isnan(expected) and math.isnan(found)
        return both_nan or math.isclose(expected, found, rel_tol=1e-12)
    return same(expected, found)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_table(case: FunctionCase) -> None:
    """A line of the table is a promise to people who read the reference."""
    found = evaluate(expression(case.call))
    assert close(case.result, found), f"expected {case.result!r}, found {found!r}"


def top_calls() -> list[ast.Call]:
    parsed = [expression(case.call) for case in CASES]
    return [each for each in parsed if isinstance(each, ast.Call)]


def test_every_function_is_in_the_table() -> None:
    """A function without a line would have no stated behaviour."""
    named = {
        node.function
        for case in CASES
        for node in ast.walk(expression(case.call))
        if isinstance(node, ast.Call)
    }
    scalars = {key for key, function in FUNCTIONS.items() if function.kind == "scalar"}
    assert scalars <= named


def test_every_function_with_arguments_has_a_wrong_type_in_the_table() -> None:
    """Undefined for a wrong type must be stated for each function, not only for the popular."""
    refusing = {
        each.function
        for each, case in zip((expression(c.call) for c in CASES), CASES, strict=True)
        if isinstance(each, ast.Call) and (case.result is UNDEFINED or case.result is False)
    }
    taking = {key for key, f in FUNCTIONS.items() if f.kind == "scalar" and f.max_args != 0}
    assert taking - refusing <= {"HASH", "ISDEFINED", "IIF", "STISVALIDDETAILED"}


def test_undefined_in_any_place_gives_undefined() -> None:
    """Reference 6: undefined spreads, except where a function is total or three-valued."""
    for node in top_calls():
        if node.function in TOTAL:
            continue
        for place in range(len(node.args)):
            arguments = [evaluate(each) for each in node.args]
            arguments[place] = UNDEFINED
            assert call(node.function, arguments) is UNDEFINED, (node.function, arguments)


def test_no_value_of_any_type_makes_a_function_raise() -> None:
    """One odd item must not end a query over a million others."""
    for node in top_calls():
        for place in range(len(node.args)):
            for sample in SAMPLES:
                arguments = [evaluate(each) for each in node.args]
                arguments[place] = sample
                call(node.function, arguments)


def test_total_functions_answer_for_undefined() -> None:
    for key in TOTAL:
        if key.startswith("IS"):
            assert call(key, [UNDEFINED]) is False


def test_argument_counts_of_the_table_are_allowed() -> None:
    """The binder refuses by these numbers before anything runs."""
    for node in top_calls():
        least, most = SIGNATURES[node.function]
        assert least <= len(node.args) <= (math.inf if most is None else most), node.name


def test_what_depends_on_time_or_chance_says_so() -> None:
    """A plan may compute a deterministic call once; RAND and NOW it must not."""
    changing = {key for key, function in FUNCTIONS.items() if not function.deterministic}
    current = {key for key in FUNCTIONS if key.startswith("GETCURRENT")}
    assert changing == current | {"NOW", "AGO", "RAND"}
    assert all(FUNCTIONS[key].context for key in changing)
