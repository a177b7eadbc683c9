"""Nodes compare by meaning; GROUP BY keys and caches depend on it."""

import dataclasses
import pickle

import pytest

from armillary.query.sql import ast
from armillary.query.sql.parser import parse
from armillary.values import UNDEFINED


def test_positions_do_not_count() -> None:
    assert parse("SELECT  c.a FROM   c") == parse("SELECT c.a FROM c")
    assert hash(parse("SELECT  c.a FROM   c")) == hash(parse("SELECT c.a FROM c"))


def test_spelling_does_not_count() -> None:
    assert parse("SELECT VALUE c.a FROM c") == parse("select value c['a'] from c")
    assert parse("SELECT array_length(c.a) FROM c") == parse('SELECT ArrayLength(c["a"]) FROM c')
    assert parse("SELECT 1 <> 2") == parse("SELECT 1 != 2")


@pytest.mark.parametrize(
    ("left", "right"),
    [("1", "1.0"), ("1", "true"), ("0", "false"), ("null", "undefined"), ("'1'", "1")],
)
def test_constants_of_different_types_differ(left: str, right: str) -> None:
    assert parse(f"SELECT {left}") != parse(f"SELECT {right}")


def test_nan_is_itself() -> None:
    assert ast.Literal(float("nan")) == ast.Literal(float("nan"))
    assert len({ast.Literal(float("nan")), ast.Literal(float("nan"))}) == 1


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Array_Length", "ARRAYLENGTH"),
        ("STRING_TO_ARRAY", "STRINGTOARRAY"),
        ("_FullTextScore", "_FULLTEXTSCORE"),
        ("FULLTEXT_SCORE", "FULLTEXTSCORE"),
        ("__a_b", "__AB"),
        ("_", "_"),
    ],
)
def test_one_key_for_every_spelling_of_a_function(name: str, key: str) -> None:
    assert ast.function_key(name) == key
    assert ast.Call(name, ()).function == key


def test_walk_reaches_every_kind_of_node() -> None:
    text = """
        SELECT DISTINCT TOP 1 c.a AS x, c[0], [1], {a: 1}, ABS(1), udf.f(@p), -1 + 2, true AND true,
            1 BETWEEN 0 AND 2, 1 IN (1), 'a' LIKE 'b', true ? 1 : 2, (LET y = 1 IN y),
            EXISTS(SELECT VALUE 1), EXISTS(SELECT * FROM c.d ORDER BY RANK f(1))
        FROM c JOIN t IN c.t WHERE true GROUP BY c.a ORDER BY c.a OFFSET 0 LIMIT 1
    """
    reached = {type(node) for node in ast.walk(parse(text))}
    kinds = {
        kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.Node)
    } - {ast.Node, ast.WholeItem}
    assert reached == kinds


def test_walk_gives_nodes_in_the_order_of_the_text() -> None:
    query = parse("SELECT a.x + b.y * 3 FROM a JOIN b IN a.b WHERE a.z IN (1, 2)")
    names = [node.name for node in ast.walk(query) if isinstance(node, ast.Identifier)]
    assert names == ["a", "b", "a", "a", "a"]


def test_path_root() -> None:
    select = parse("SELECT c.a[0]['b'].c, UPPER(c).a, c FROM c").select
    assert isinstance(select, ast.SelectList)
    roots = [ast.path_root(item.expr) for item in select.items]
    assert roots == [ast.Identifier("c"), None, ast.Identifier("c")]


def test_nodes_are_frozen_and_survive_pickling() -> None:
    query = parse("SELECT Array_Length(c.a), undefined FROM c")
    copy = pickle.loads(pickle.dumps(query))
    assert copy == query
    assert isinstance(copy.select, ast.SelectList)
    undefined = copy.select.items[1].expr
    assert isinstance(undefined, ast.Literal)
    assert undefined.value is UNDEFINED
    with pytest.raises(dataclasses.FrozenInstanceError):
        copy.where = None
