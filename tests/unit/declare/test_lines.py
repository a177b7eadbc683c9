"""Without the lines, an error in a configuration would send its reader through the whole file."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.declare.lines import key_lines, line_of

TEXT = """\
# a comment with [brackets] = and "quotes
[server]
port = 8081

[[database]]
id = "shop"          # = [

[[database.container]]
id = '''orders
] = not a key
'''
unique_keys = [
  ["/a"],  # "
  ["/b", "/c"],
]
"quoted key".inner = { a = 1, b = "]" }

[[database.container]]
id = "carts"

[database.container.indexing_policy]
indexingMode = "consistent"

[[database]]
id = "other"
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("server",), 2),
        (("server", "port"), 3),
        (("database", 0), 5),
        (("database", 0, "id"), 6),
        (("database", 0, "container", 0, "id"), 9),
        (("database", 0, "container", 0, "unique_keys"), 12),
        (("database", 0, "container", 0, "quoted key", "inner"), 16),
        (("database", 0, "container", 1, "id"), 19),
        (("database", 0, "container", 1, "indexing_policy", "indexingMode"), 22),
        (("database", 1, "id"), 25),
    ],
)
def test_every_key_has_its_line(path: tuple[str | int, ...], line: int) -> None:
    tomllib.loads(TEXT)
    assert key_lines(TEXT)[path] == line


def test_what_is_not_there_is_where_it_would_be() -> None:
    lines = key_lines(TEXT)
    assert line_of(lines, ("database", 1, "container", 0, "id")) == 24
    assert line_of(lines, ("nothing",)) == 1


@given(st.lists(st.text("ab \"'\\#[]{}=.\n", max_size=20), max_size=6))
def test_values_never_hide_the_keys_after_them(values: list[str]) -> None:
    import json

    text = "".join(f"key{n} = {json.dumps(value)}\n" for n, value in enumerate(values))
    assert key_lines(text) == {(f"key{n}",): n + 1 for n in range(len(values))}
