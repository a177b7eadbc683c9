# ruff: noqa: E501 (tables)
"""Scripts as calls: tokens, literals, positions, and what is refused."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.evaluation import compile_script
from armillary.api.gremlin.language.nodes import Binding, Chain, Enum, ListOf, MapOf, Predicate
from armillary.api.gremlin.language.parser import parse
from armillary.limits import GREMLIN_DEPTH_MAX, GREMLIN_SCRIPT_BYTES_MAX, GREMLIN_STEPS_MAX

LITERALS: list[tuple[str, Any]] = [
    ("'a'", "a"),
    ('"a\'b"', "a'b"),
    (r"'\u00e9\n\t\\\'\$'", "é\n\t\\'$"),
    (r"'\ud83d\ude00'", "😀"),
    (r"'\101'", "A"),
    ("'''it's'''", "it's"),
    ("1", 1),
    ("-1", -1),
    ("+1", 1),
    ("1L", 1),
    ("0x1F", 31),
    ("1_000", 1000),
    ("1.5", 1.5),
    (".5", 0.5),
    ("1e3", 1000.0),
    ("1.5f", 1.5),
    ("2d", 2.0),
    ("true", True),
    ("null", None),
    ("[1, 'a']", ListOf((1, "a"))),
    ("[]", ListOf(())),
    ("[:]", MapOf(())),
    ("[a: 1, 'b': [2]]", MapOf((("a", 1), ("b", ListOf((2,)))))),
    ("1..3", ListOf((1, 2, 3))),
    ("T.id", Enum("T", "id")),
    ("Order.desc", Enum("Order", "decr")),
    ("VertexProperty.Cardinality.list", Enum("Cardinality", "list")),
    ("x", Binding("x")),
    ("P.gt(1)", Predicate("gt", (1,))),
    ("within('a','b')", Predicate("within", ("a", "b"))),
    ("gt(1).and(lt(5))", Predicate("and", (Predicate("gt", (1,)), Predicate("lt", (5,))))),
    ("P.not(eq(1))", Predicate("negate", (Predicate("eq", (1,)),))),
    ("TextP.startingWith('a')", Predicate("startingWith", ("a",))),
]


@pytest.mark.parametrize(("text", "value"), LITERALS)
def test_arguments(text: str, value: Any) -> None:
    assert parse(f"g.inject({text})").calls[0].args == (value,)


def test_children_with_and_without_their_prefix_are_the_same() -> None:
    assert parse("g.V().where(__.out('a').in())") == parse('g.V( ) .where( out("a").in() ) // x')
    (call,) = parse("g.V(g.V('1'))").calls
    assert isinstance(call.args[0], Chain)
    assert call.args[0].rooted


WRONG = [
    ("", "parse", 1, 1),
    ("x.V()", "symbol", 1, 1),
    ("g", "parse", 1, 1),
    ("g.V(", "parse", 1, 5),
    ("g.V() g.V()", "parse", 1, 7),
    ("g.V('a", "parse", 1, 5),
    ("g.V('\\q')", "parse", 1, 6),
    ("g.V()\n  .out(%)", "parse", 2, 8),
    ("g.V().filter{it}", "syntax", 1, 13),
    ("g.inject(Order.up)", "symbol", 1, 16),
    ("g.inject(Foo.bar)", "symbol", 1, 10),
    ("g.V(0x_)", "parse", 1, 5),
    (f"g.V({'9' * 5000})", "parse", 1, 5),
]


@pytest.mark.parametrize(("text", "kind", "line", "column"), WRONG)
def test_errors_say_where(text: str, kind: str, line: int, column: int) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(text)
    assert (caught.value.kind, caught.value.at) == (kind, (line, column))


def test_scripts_are_bounded() -> None:
    for text in (
        "g.V()" + ".out()" * GREMLIN_STEPS_MAX,
        "g.inject(" + "[" * GREMLIN_DEPTH_MAX + "]" * GREMLIN_DEPTH_MAX + ")",
        "g.V().where(" * 1 + "out(" * 100 + ")" * 101,
        "g.inject('" + "x" * GREMLIN_SCRIPT_BYTES_MAX + "')",
    ):
        with pytest.raises(ScriptError) as caught:
            parse(text)
        assert caught.value.kind == "limit"


WORDS = (
    "g", ".", "(", ")", "V", "out", "by", "as", "has", "'a'", "1", "-", "[", "]", ",", "__", "T.id", "gt", "repeat", "times",
    "until", "emit", "choose", "option", "union", "addV", "addE", "property", "from", "to", "{", "}", "group", "select", "where",
    "x", "0x_", "1_", "2e9", "Pop.all", "local", "in", "not", "P.", "new", "null", "..", ":", "order", "limit", "and", "or",
)  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=30).map("".join))
@example("g.V().by()")
@example("g.V().or().and().or()")
@example("g.V().emit()")
def test_nothing_but_script_errors(text: str) -> None:
    """Fuzz: whatever is sent, the answer is an error of the language or a program."""
    for script in (text, f"g.V().{text}", f"g.V({text})"):
        with suppress(ScriptError):
            compile_script(script, {"x": [1, {"a": "b"}]}, strict=False)
