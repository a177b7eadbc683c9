"""Which part of an item a query sees, and the decoder of that part."""

import orjson
import pytest

from armillary.query.expr.decoding import FIELDS_MAX, decoder_for, paths_in
from armillary.query.sql.parser import parse

C = frozenset({"c"})


@pytest.mark.parametrize(
    ("where", "paths"),
    [
        ("c.a > 1", {("a",)}),
        ('c.a.b = 1 AND c["x y"] = 2', {("a", "b"), ("x y",)}),
        ("c.t[0].x = 1", {("t",)}),
        ("IS_DEFINED(c.a)", {("a",)}),
        ("c = 1", None),
        ("d.a = 1", set()),
        ("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = c.want)", {("tags",), ("want",)}),
        ("c[@p] = 1", None),
    ],
)
def test_paths(where: str, paths: set[tuple[str, ...]] | None) -> None:
    """Too few would make values undefined, too many would decode in vain."""
    expr = parse(f"SELECT * FROM c WHERE {where}").where
    assert expr is not None
    assert paths_in(expr, C) == (None if paths is None else frozenset(paths))


def test_only_what_is_asked_for_is_decoded() -> None:
    text = orjson.dumps(
        {"id": "1", "a": 1.0, "o": {"x": [1], "y": {"z": 2, "w": 3}}, "big": [0] * 9}
    )
    wanted = frozenset({("a",), ("o", "y", "z"), ("none",), ("o", "none")})
    assert decoder_for(wanted)(text) == {"a": 1.0, "o": {"y": {"z": 2}}}


def test_an_object_where_none_is_expected_and_the_other_way_round() -> None:
    decode = decoder_for(frozenset({("a", "b"), ("c",)}))
    assert decode(b'{"a": 3, "c": {"d": 1}}') == {"a": 3, "c": {"d": 1}}
    assert decode(b'{"a": [{"b": 1}], "c": null}') == {"a": [{"b": 1}], "c": None}
    assert decode(b"{}") == {}


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "\ud800"])
def test_names_that_json_escapes_still_work(name: str) -> None:
    """msgspec has no fields of such names; a query may."""
    item = {"x": 1} if name == "\ud800" else {name: 1, "x": {name: 2, "y": 3}}
    text = orjson.dumps(item)
    assert decoder_for(frozenset({(name,)}))(text).get(name) == item.get(name)
    assert decoder_for(frozenset({("x", name)}))(text)["x"] == item["x"]


def test_many_fields_are_decoded_whole() -> None:
    wanted = frozenset((f"p{number}",) for number in range(FIELDS_MAX + 1))
    assert decoder_for(wanted)(b'{"other": 1}') == {"other": 1}


def test_deep_paths_are_taken_whole_from_some_depth_on() -> None:
    """Python bounds how deep a text may be indented, and a query may go deeper."""
    text = b'{"a":' * 120 + b"7" + b"}" * 120
    part = decoder_for(frozenset({("a",) * 120}))(text)
    assert part == orjson.loads(text)


def test_nothing_and_everything() -> None:
    assert decoder_for(frozenset())(b'{"a": 1}') == {}
    assert decoder_for(None)(b'{"a": 1}') == {"a": 1}
    assert decoder_for(frozenset({()}))(b'{"a": 1}') == {"a": 1}
