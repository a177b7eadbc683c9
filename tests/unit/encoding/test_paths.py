"""Property paths: a path read differently than the SDKs read it sends items to other partitions."""

import pytest

from armillary.encoding.paths import extract, format_path, parse_path
from armillary.errors import BadInput
from armillary.values import UNDEFINED


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("/a", ("a",)),
        ("/id", ("id",)),
        ("/a/b", ("a", "b")),
        ("/a/b/c_9", ("a", "b", "c_9")),
        ('/"a b"/c', ("a b", "c")),
        ("/'x/y'/z", ("x/y", "z")),
        (r'/"say \"hi\""', ('say "hi"',)),
        (r"/'it\'s'", ("it's",)),
        (r'/"back\\slash"', ("back\\slash",)),
        ('/"it\'s"', ("it's",)),
        ('/"*"', ("*",)),
        ('/"[]"', ("[]",)),
        ("/first-name", ("first-name",)),
        ("/straße", ("straße",)),
        ("/Tenant", ("Tenant",)),
    ],
)
def test_paths_of_the_grammar(text: str, segments: tuple[str, ...]) -> None:
    assert parse_path(text) == segments


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("a", "'/' is expected at position 0"),
        ("a/b", "'/' is expected at position 0"),
        ("/", "a segment is empty"),
        ("//a", "a segment is empty"),
        ("/a/", "a segment is empty"),
        ("/a//b", "a segment is empty"),
        ('/""', "a segment is empty"),
        ("/*", "'*' is not allowed at position 1"),
        ("/a/*", "'*' is not allowed at position 3"),
        ("/a/?", "'?' is not allowed at position 3"),
        ("/a/[]", "'[' is not allowed at position 3"),
        ("/a[0]", "'/' is expected at position 2"),
        ('/"a', "the quote at position 1 is not closed"),
        ('/"a\\', "the quote at position 1 is not closed"),
        ('/"a"b', "'/' is expected at position 4"),
        ('/a"b"', "'/' is expected at position 2"),
        ("/ a", "begins or ends with white space"),
    ],
)
def test_anything_else_is_refused_with_its_reason(text: str, why: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_path(text)
    assert why in caught.value.message
    assert f"'{text}'" in caught.value.message


@pytest.mark.parametrize(
    ("segments", "text"),
    [
        (("a", "b_1"), "/a/b_1"),
        (("a b",), '/"a b"'),
        (("x/y", "z"), '/"x/y"/z'),
        (('q"q',), r'/"q\"q"'),
        (("b\\s",), r'/"b\\s"'),
    ],
)
def test_quotes_appear_only_where_needed(segments: tuple[str, ...], text: str) -> None:
    assert format_path(segments) == text


ITEM = {"id": "1", "a": {"b": {"c": 5}, "n": None, "": 7}, "list": [{"b": 1}], "x/y": True}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("id",), "1"),
        (("a", "b", "c"), 5),
        (("a", "n"), None),
        (("x/y",), True),
        (("a", "b"), {"c": 5}),
        (("missing",), UNDEFINED),
        (("a", "missing"), UNDEFINED),
        (("a", "n", "deeper"), UNDEFINED),
        (("id", "deeper"), UNDEFINED),
        (("list", "b"), UNDEFINED),
        (("A",), UNDEFINED),
    ],
)
def test_the_value_at_a_path(path: tuple[str, ...], value: object) -> None:
    assert extract(ITEM, path) == value


def test_nothing_can_be_taken_from_what_is_not_an_object() -> None:
    assert extract([1], ("a",)) is UNDEFINED
