"""Texts made to hurt: each is answered or refused in bounded time, and with a plain reason.

Times are bounds against work that explodes, far above what the work takes: without the rule under
test these queries take minutes, hours, or all memory. They are times of the processor, so that
nothing depends on what else the machine does.
"""

from __future__ import annotations

import ast as python
import builtins
import re
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.accounts import World, open_world

from armillary import limits
from armillary.api.errors import wire
from armillary.container import Container
from armillary.errors import BadInput
from armillary.query.access.term_ranges import intersection
from armillary.query.expr import compile, decoding
from armillary.query.expr.codegen import NAMES
from armillary.query.expr.evaluate import Frame, Scope
from armillary.query.problems import BadQuery
from armillary.query.run import sql as run
from armillary.query.sql import ast

SECONDS_MAX = 60.0
BYTES_MAX = 256 * limits.MB
LONGEST = limits.QUERY_CHARACTERS_MAX
TOO_MANY_TOKENS = f"maximum limit of {limits.QUERY_TOKENS_MAX} words and signs"
JOINS = "".join(f" JOIN t{number} IN c.list" for number in range(limits.QUERY_JOINS_MAX))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world(":memory:") as opened:
        yield opened


@pytest.fixture(scope="module")
def container(world: World) -> Container:
    made = world.container()
    made.create_item(
        {"id": "1", "pk": "p", "n": 1, "s": "a" * 5000 + "!", "list": list(range(100))}
    )
    return made


def filled(begin: str, piece: str, end: str) -> str:
    """The longest text that is allowed."""
    return begin + piece * ((LONGEST - len(begin) - len(end)) // len(piece)) + end


def listed(template: str, count: int, joint: str) -> str:
    return joint.join(template.format(number) for number in range(count))


def in_time(work: Callable[[], Any]) -> Any:
    began = time.process_time()
    try:
        return work()
    finally:
        assert time.process_time() - began < SECONDS_MAX


def refusal(container: Container, text: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        in_time(lambda: container.query_page(text))
    assert wire(caught.value).status == 400
    return caught.value


# --- size and depth -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT " + "1" * LONGEST, "maximum limit of 524288 characters"),
        (filled("SELECT VALUE 1", "+1", ""), TOO_MANY_TOKENS),
        (filled("SELECT VALUE ", "NOT ", "true"), TOO_MANY_TOKENS),
        (filled("SELECT VALUE ", "~", "1"), TOO_MANY_TOKENS),
        (filled("SELECT VALUE ARRAY_LENGTH([", "1,", "1])"), TOO_MANY_TOKENS),
        (filled("SELECT ", "x,", "x FROM c"), TOO_MANY_TOKENS),
        (filled("SELECT * FROM c WHERE c.a IN (", "1,", "1)"), TOO_MANY_TOKENS),
        (filled("SELECT * FROM c WHERE c.a", " AND c.a", ""), TOO_MANY_TOKENS),
        ("SELECT VALUE 1" + "+1" * 49_990, "nested too deeply"),
        ("SELECT VALUE " + "NOT " * 50_000 + "true", "nested too deeply"),
        ("SELECT VALUE 1" + "+1" * 40_000, "nested too deeply"),
        ("SELECT VALUE " + "(" * 40_000 + "1" + ")" * 40_000, "nested too deeply"),
        ("SELECT VALUE " + "[" * 40_000 + "1" + "]" * 40_000, "nested too deeply"),
        ("SELECT VALUE " + '{"a":' * 20_000 + "1" + "}" * 20_000, "nested too deeply"),
        ("SELECT VALUE " + "ABS(" * 20_000 + "1" + ")" * 20_000, "nested too deeply"),
        ("SELECT VALUE c" + ".a" * 40_000 + " FROM c", "nested too deeply"),
        ("SELECT VALUE c" + "[0]" * 30_000 + " FROM c", "nested too deeply"),
        ("SELECT VALUE " + "c.a?1:" * 15_000 + "1 FROM c", "nested too deeply"),
        ("SELECT VALUE c.a" + "??c.a" * 20_000 + " FROM c", "nested too deeply"),
        ("SELECT VALUE " + "(SELECT VALUE " * 5_000 + "1" + ")" * 5_000, "nested too deeply"),
        ("SELECT * FROM " + "(SELECT VALUE c FROM " * 500 + "c" + ") c" * 500, "too deeply"),
    ],
    ids=lambda value: value[:24],
)
def test_a_text_that_is_too_long_or_too_deep_is_refused(
    container: Container, text: str, message: str
) -> None:
    """Without a bound the parser, the binder or the compiler would exhaust Python's stack."""
    error = refusal(container, text)
    assert isinstance(error, BadQuery)
    assert message in error.errors[0].message


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (filled("SELECT VALUE 1", " ", ""), 1),
        (filled("SELECT VALUE 1 --", "-", ""), 1),
        (filled("SELECT VALUE LENGTH('", "x", "')"), LONGEST - 23),
        (filled("SELECT VALUE ARRAY_LENGTH([", "1.2345678901,", "1])"), (LONGEST - 30) // 13 + 1),
        ("SELECT VALUE " + "(" * 100 + "1" + ")" * 100, 1),
        ("SELECT VALUE IS_ARRAY(" + "[" * 100 + "1" + "]" * 100 + ")", True),
        ("SELECT VALUE IS_OBJECT(" + '{"a":' * 50 + "1" + "}" * 50 + ")", True),
        ("SELECT VALUE LENGTH(c.s || '" + "y" * 100_000 + "') FROM c", 105_001),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_long_or_deep_text_within_the_bounds_is_answered(
    container: Container, text: str, row: Any
) -> None:
    assert in_time(lambda: container.query_page(text)).rows == [row]


def test_parsing_the_longest_text_takes_bounded_memory(container: Container) -> None:
    text = filled("SELECT VALUE 1", "+1", "")
    tracemalloc.start()
    try:
        with pytest.raises(BadQuery):  # tracing takes its own time: nothing is timed here
            container.query_page(text)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < BYTES_MAX


def test_an_answer_about_many_mistakes_is_short(container: Container) -> None:
    """Each of 20,000 names is wrong: the reply must not be larger than the question."""
    error = refusal(container, "SELECT " + listed("x{}", 20_000, ",") + " FROM c")
    assert isinstance(error, BadQuery)
    assert len(error.errors) == limits.QUERY_ERRORS_MAX


# --- many terms -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "rows"),
    [
        (f"c.n IN ({listed('{}', 16_000, ',')})", ["1"]),
        (f"c.n NOT IN ({listed('{}', 16_000, ',')})", []),
        (f"c.n IN ({listed('c.x{}', 16_000, ',')})", []),
        (f"c.pk IN ({listed('{}', 16_000, ',')})", []),
        (f"c.n IN ({listed('{}', 8_000, ',')}) AND c.n IN ({listed('{}', 8_000, ',')})", ["1"]),
        (listed("c.a{0} = {0}", 2_000, " AND "), []),
        (listed("c.a{0} = {0}", 2_000, " OR "), []),
        (listed("c.n > {}", 2_000, " OR "), ["1"]),
        (listed("c.n != 9{}", 2_000, " AND "), ["1"]),
        (listed("(c.a{0} = {0} OR c.n = 1)", 999, " AND "), ["1"]),
    ],
    ids=["in", "not-in", "in-paths", "in-keys", "two-ins", "and", "or", "or-one", "not", "mixed"],
)
def test_as_many_terms_as_are_allowed_are_answered(
    container: Container, filters: str, rows: list[str]
) -> None:
    page = in_time(lambda: container.query_page(f"SELECT VALUE c.id FROM c WHERE {filters}"))
    assert page.rows == rows


@pytest.mark.parametrize(
    "filters",
    [
        f"c.n IN ({listed('{}', 16_001, ',')})",
        listed("c.a{0} = {0}", 2_001, " AND "),
        listed("c.a{0} = {0}", 2_001, " OR "),
    ],
    ids=["in", "and", "or"],
)
def test_more_terms_than_allowed_are_refused(container: Container, filters: str) -> None:
    error = refusal(container, f"SELECT VALUE c.id FROM c WHERE {filters}")
    assert "exceeded the maximum" in error.message


def test_ranges_are_intersected_in_one_pass() -> None:
    """Pair by pair, two lists of 16,000 would be 256 million pairs."""

    def points(step: int) -> tuple[tuple[tuple[bytes, bytes], ...], bool]:
        keys = [number.to_bytes(4, "big") for number in range(0, 16_000 * step, step)]
        return tuple((key, key + b"\x00") for key in keys), True

    found, exact = in_time(lambda: intersection(points(2), points(3)))
    wanted = [number.to_bytes(4, "big") for number in range(0, 32_000, 6)]
    assert [start for start, _ in found] == wanted
    assert exact


# --- patterns -------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(a|aa)+$", "(.*a){20}$"])
def test_a_catastrophic_expression_is_stopped(container: Container, pattern: str) -> None:
    text = f"SELECT VALUE c.id FROM c WHERE RegexMatch(c.s, '{pattern}')"
    assert "took longer than 0.5 seconds" in refusal(container, text).message


def test_an_expression_of_many_characters_is_refused(container: Container) -> None:
    text = "SELECT VALUE RegexMatch(c.s, '" + "a?" * 5_000 + "') FROM c"
    assert "at most 4096" in refusal(container, text).message


@pytest.mark.parametrize("piece", ["%a", "_", "%", "%_", "a_%"])
def test_a_like_pattern_of_any_length_takes_no_time(container: Container, piece: str) -> None:
    """Matching that goes back would try every split of the text among the `%`."""
    text = filled("SELECT VALUE c.id FROM c WHERE c.s LIKE '", piece, "b'")
    assert in_time(lambda: container.query_page(text)).rows == []


# --- combinations ---------------------------------------------------------------------------------

TOO_MANY = (
    f"SELECT VALUE 1 FROM c{JOINS} WHERE t9 + 0 < 0",
    f"SELECT VALUE 1 FROM c{JOINS} WHERE t9 + 0 < 0 ORDER BY c.n",
    f"SELECT VALUE 1 FROM c{JOINS} WHERE t9 + 0 < 0 ORDER BY c.none",
    f"SELECT VALUE COUNT(1) FROM c{JOINS}",
    f"SELECT DISTINCT VALUE t0 FROM c{JOINS}",
    f"SELECT t0, COUNT(1) FROM c{JOINS} GROUP BY t0",
    f"SELECT VALUE 1 FROM c{JOINS} OFFSET 4294967295 LIMIT 1",
    "SELECT VALUE (SELECT VALUE COUNT(1) FROM a IN c.list JOIN b IN c.list JOIN d IN c.list "
    "JOIN e IN c.list) FROM c",
    "SELECT VALUE 1 FROM c WHERE EXISTS(SELECT 1 FROM a IN c.list WHERE EXISTS(SELECT 1 FROM b IN "
    "c.list WHERE EXISTS(SELECT 1 FROM d IN c.list WHERE EXISTS(SELECT 1 FROM e IN c.list WHERE "
    "a + b + d + e < 0))))",
    "SELECT VALUE 1 FROM c JOIN (SELECT VALUE a FROM a IN c.list JOIN b IN c.list JOIN d IN c.list "
    "JOIN e IN c.list WHERE e < 0)",
)


@pytest.mark.parametrize("text", TOO_MANY)
def test_combinations_without_end_are_refused(container: Container, text: str) -> None:
    """One item of 6 KB has 10^20 of them: no page could end."""
    message = refusal(container, text).message
    assert f"more than {limits.QUERY_ELEMENTS_MAX} array elements of one item" in message


def test_combinations_are_given_page_by_page(container: Container) -> None:
    page = in_time(lambda: container.query_page(f"SELECT VALUE t9 FROM c{JOINS}", max_items=250))
    assert page.rows == [number % 100 for number in range(250)]
    assert page.continuation is not None
    more = container.query_page(
        f"SELECT VALUE t9 FROM c{JOINS}", max_items=3, continuation=page.continuation
    )
    assert more.rows == [50, 51, 52]


def test_the_bound_is_for_one_item_and_not_for_the_query(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("armillary.query.expr.evaluate.QUERY_ELEMENTS_MAX", 150)
    made = world.container("joined")
    for number in range(20):
        made.create_item({"id": str(number), "pk": "p", "list": list(range(10))})
    text = "SELECT VALUE COUNT(1) FROM c JOIN a IN c.list JOIN b IN c.list"
    assert made.query_page(text).rows == [2_000]


# --- nothing of the user's is ever program text ---------------------------------------------------

BAIT = "zq_bait"
NOT_INDEXED = {"indexingMode": "none", "automatic": False}
HOSTILE = (
    f"{BAIT}",
    f"{BAIT}); import os; os.system('true') #",
    f"__import__('{BAIT}')",
    f'{BAIT}"""',
    f"{BAIT}\n  return {BAIT}",
    f"{{{BAIT}}}",
    f"k0{BAIT}",
    f"{BAIT}\\x41",
    f"lambda: {BAIT}",
    f"ünï_{BAIT}",
)
#: Words that generated texts use themselves: as the name of a property, none may change a text.
OWN_WORDS = (
    "count",
    "add",
    "states",
    "keep",
    "rows",
    "row",
    "U",
    "type",
    "k0",
    "f1",
    "made",
    "text",
)
ARGUMENTS = frozenset({"row", "rows", "keep", "found", "made", "decode", "text", "U", "type"})
LOCALS = frozenset(
    {"make", "run", "made", "v", "key", "value", "text", "s", "t", "known", "states", "state"}
)
ATTRIBUTES = frozenset({"get", "startswith", "endswith", "count", "total", "spoiled", "add"})
OURS = re.compile(r"[kvtsdfg]\d+")
NUMBERS = re.compile(r"\d+")
SIGNS = re.compile(r"\w+|[^\w\s]")
#: What a generated program may be made of, beside names and constants. No imports, no `lambda`,
#: no classes, no formatted texts.
GRAMMAR = frozenset(
    {python.Module, python.arguments, python.Return, python.Assign, python.AugAssign, python.For}
    | {python.If, python.Continue, python.Expr, python.Load, python.Store, python.Call}
    | {python.IfExp, python.Compare, python.BoolOp, python.UnaryOp, python.BinOp, python.NamedExpr}
    | {python.Subscript, python.Slice, python.Tuple, python.List, python.Dict, python.Starred}
    | {python.And, python.Or, python.Not, python.Is, python.IsNot, python.In, python.NotIn}
    | {python.Eq, python.NotEq, python.Lt, python.LtE, python.Gt, python.GtE, python.Add}
)


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def shapes(word: str) -> list[str]:
    """Queries with a hostile text at every place that takes one."""
    name = quoted(word)
    return [
        f"SELECT VALUE c[{name}] FROM c WHERE c[{name}] = {name} AND c.n > 0",
        f"SELECT c[{name}][{name}] AS a, {name} AS b FROM c WHERE c[{name}] != @p OR c.n = 1",
        f"SELECT VALUE {{{name}: c[{name}], 'n': c.n + 1}} FROM c WHERE c.n < 10 AND c.n > 0",
        f"SELECT VALUE [c[{name}], {name}, @p] FROM c WHERE c[{name}] IN ({name}, @p, c.n)",
        f"SELECT * FROM c WHERE c[{name}] LIKE {name} OR c.n LIKE @p OR c[{name}] LIKE c.n",
        f"SELECT * FROM c WHERE CONTAINS(c[{name}], {name}) OR STARTSWITH(c.n, @p) OR c.n = 1",
        f"SELECT * FROM c WHERE (c[{name}] BETWEEN {name} AND @p) OR IS_DEFINED(c[{name}].x)",
        f"SELECT VALUE (c[{name}] ?? {name}) || @p FROM c WHERE c.n = 1 ? true : c[{name}]",
        f"SELECT VALUE CONCAT({name}, c[{name}], @p) FROM c WHERE RegexMatch(c[{name}], '.')",
        f"SELECT c[{name}], COUNT(1) AS n FROM c WHERE c.n >= 0 GROUP BY c[{name}]",
        f"SELECT VALUE t FROM c JOIN t IN c[{name}] WHERE t = {name} AND t != @p",
        f"SELECT * FROM c WHERE EXISTS(SELECT 1 FROM t IN c[{name}] WHERE t = {name} AND t = @p)",
        f"SELECT VALUE c.n FROM c WHERE c.n > 0 AND c[{name}] <= {name} ORDER BY c[{name}]",
    ]


def forget() -> None:
    """What other queries have left: everything is to be compiled under our eyes."""
    compile._factory.cache_clear()
    decoding.decoder_for.cache_clear()
    run._fixed_plan.cache_clear()


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that becomes Python. Expressions are compiled at their first row, so that a few
    items are enough to compile everything.
    """
    texts: list[str] = []
    original = builtins.compile

    def recording(text: Any, name: Any, *rest: Any, **more: Any) -> Any:
        if str(name).startswith("<"):  # no file that is being imported
            texts.append(text)
        return original(text, name, *rest, **more)

    forget()
    monkeypatch.setattr(builtins, "compile", recording)
    monkeypatch.setattr(compile, "ROWS_FIRST", 1)
    return texts


def test_texts_become_programs_in_queries_only() -> None:
    """What is written elsewhere is not watched by the tests below."""
    root = Path(compile.__file__).parents[2]
    found = {
        path.relative_to(root).parts[0]
        for path in root.rglob("*.py")
        for node in python.walk(python.parse(path.read_text("utf-8")))
        if isinstance(node, python.Name) and node.id in ("exec", "eval", "__import__")
    }
    assert found == {"query"}


def texts_for(world: World, written: list[str], word: str) -> list[str]:
    """Everything that is compiled for a container and queries full of a word."""
    written.clear()
    forget()
    items = [{"id": "1", "pk": "p", "n": 1, word: word}, {"id": "2", "pk": "p", "n": 2, word: [1]}]
    for name, policy in (("bait", None), ("bare", NOT_INDEXED)):
        made = world.database.create_container_if_not_exists(name, "/pk", indexing_policy=policy)
        for item in items:
            made.upsert_item(item)
        for text in shapes(word):
            list(made.query(text, {"@p": word}))
    return list(written)


@pytest.mark.parametrize("word", [*HOSTILE, *OWN_WORDS])
def test_no_text_of_a_user_is_compiled(world: World, written: list[str], word: str) -> None:
    """Names, literals and parameters reach the generated functions as arguments only: the program
    speaks of names of ours, and has no constants but places in rows and headers.
    """
    texts = texts_for(world, written, word)
    functions = [text for text in texts if " def run(" in text]
    assert len(functions) >= len(shapes(word)), "nothing was compiled, so nothing was tested"
    for text in texts:
        assert BAIT not in text
        for node in python.walk(python.parse(text)):
            match node:
                case python.Name(name) | python.arg(name) | python.FunctionDef(name):
                    known = name in NAMES or name in ARGUMENTS or name in LOCALS
                    assert known or OURS.fullmatch(name), name
                case python.Attribute(_, name):
                    assert name in ATTRIBUTES or OURS.fullmatch(name), name
                case python.Constant(value):
                    assert value is None or type(value) in (bool, int), value
                case _:
                    assert type(node) in GRAMMAR, node


@pytest.mark.parametrize("word", [*HOSTILE, *OWN_WORDS])
def test_programs_are_the_same_whatever_the_words(
    world: World, written: list[str], word: str
) -> None:
    """Should a name or a value find a way that the test above does not think of, it would show as
    a difference. Fields are numbered in no certain order, so numbers are not compared. Names that
    JSON would escape are decoded in another way, and texts beyond ASCII ordered in another.
    """
    like = "plain" if decoding._can_be_field(word) else 'plain"'
    like += "" if word.isascii() else "é"

    def signs(texts: list[str]) -> set[tuple[str, ...]]:
        return {tuple(sorted(SIGNS.findall(NUMBERS.sub("0", text)))) for text in texts}

    plain = signs(texts_for(world, written, like))
    assert plain == signs(texts_for(world, written, word))


def test_every_kind_of_loop_is_among_the_watched_programs(world: World, written: list[str]) -> None:
    """A loop that no query here has would be tested by nobody."""
    texts = "\n".join(texts_for(world, written, BAIT))
    item = "keep((key, value[63 + value[62]:]"
    for mark in (f"{item}))", "keep((key, made))", "keep((key, v))", f"{item}, ("):
        assert mark in texts
    assert "states = found[known] = made(" in texts
    assert "return d0" in texts


def test_the_same_values_reach_the_answer(world: World, written: list[str]) -> None:
    """They are kept out of the text, not out of the query."""
    made = world.container("answers")
    for word in HOSTILE:
        made.upsert_item({"id": "x", "pk": "p", "n": 1, word: word})
        text = f"SELECT VALUE {{'a': c[{quoted(word)}], 'b': @p}} FROM c WHERE c.n = 1 AND "
        rows = list(made.query(f"{text} c[{quoted(word)}] = {quoted(word)}", {"@p": word}))
        assert rows == [{"a": word, "b": word}]
    assert written


@pytest.mark.parametrize("word", HOSTILE)
def test_compiled_functions_see_no_builtins(word: str) -> None:
    """Should a text slip through all the same, there is nothing for it to call."""
    run = compile.compile_expression(
        ast.Binary("||", ast.Identifier("c"), ast.Literal(word)),
        Scope(Frame(1), {}, None, {"c": 0}),  # type: ignore[arg-type]
    )
    assert run.__globals__["__builtins__"] == {}
    assert run(["a"]) == "a" + word
