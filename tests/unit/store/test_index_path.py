"""The syntax of index paths: what is read, what is refused, and where."""

import pytest

from armillary.errors import BadInput
from armillary.store.index.paths import (
    ARRAY,
    IndexPath,
    parse_index_path,
    parse_property_path,
    path_text,
)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/*", IndexPath((), "subtree")),
        ("/a/?", IndexPath(("a",), "scalar")),
        ("/", IndexPath((), "subtree")),
        ("/a/b_1/*", IndexPath(("a", "b_1"), "subtree")),
        ("/a/[]/b/?", IndexPath(("a", ARRAY, "b"), "scalar")),
        ("/a/[]/*", IndexPath(("a", ARRAY), "subtree")),
        ('/"x-y"/?', IndexPath(("x-y",), "scalar")),
        ('/"a/b"/"[]"/?', IndexPath(("a/b", "[]"), "scalar")),
        (r'/"say \"hi\" \\"/?', IndexPath(('say "hi" \\',), "scalar")),
        ('/"?"/?', IndexPath(("?",), "scalar")),
        ("/ev/[]/{name,category}/?", IndexPath(("ev", ARRAY), "tuple")),
        ("/ev/[]/{first/name, category}/?", IndexPath(("ev", ARRAY), "tuple")),
    ],
)
def test_a_path_is_read(text: str, path: IndexPath) -> None:
    assert parse_index_path(text) == path


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("a/?", 0),
        ("/?", 1),
        ("/a", 2),
        ("/a/", 3),
        ("//?", 1),
        ("/x-y/?", 2),
        ("/a/*/b/?", 3),
        ('/"open/?', 1),
        ('/"a"b/?', 4),
        ("/a[]/?", 2),
        ("/[0]/?", 1),
        ("/é/?", 1),
    ],
)
def test_another_path_is_refused_with_its_position(text: str, position: int) -> None:
    with pytest.raises(BadInput, match="could not be accepted") as caught:
        parse_index_path(text)
    assert caught.value.facts["position"] == position


@pytest.mark.parametrize(
    "text",
    ["/a/{b,c}/?", "/[]/x/{b}/?", "/a/[]/{b,c}", "/a/[]/{b}/*", "/a/[]/{b,[]}/?", "/a/[]/{}/?"],
)
def test_a_tuple_out_of_form_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="could not be accepted"):
        parse_index_path(text)


def test_property_paths_leave_the_ending_out() -> None:
    assert parse_property_path("/a/b") == parse_property_path("/a/b/?") == ("a", "b")
    assert parse_property_path('/a/[]/"x y"') == ("a", ARRAY, "x y")
    for text in ("/a/*", "a", "", "/a/", None, 5):
        with pytest.raises(BadInput):
            parse_property_path(text)


@pytest.mark.parametrize("segments", [("a",), ("x-y", ARRAY, "b"), ('q"\\',), ("[]", ""), ("é",)])
def test_a_written_path_is_read_as_the_same(segments: tuple[str, ...]) -> None:
    assert parse_property_path(path_text(segments)) == segments
