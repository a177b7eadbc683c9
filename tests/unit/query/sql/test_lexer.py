"""Characters to tokens; whole texts with errors are in the golden files."""

import math

import pytest

from armillary import limits
from armillary.query.expr.text import RESERVED, is_plain_name
from armillary.query.problems import BadQuery
from armillary.query.sql.lexer import INT64_MAX, Token, tokenize


def kinds(text: str) -> list[str]:
    return [token.kind for token in tokenize(text)[:-1]]


def test_a_token_knows_its_kind_value_and_place() -> None:
    assert tokenize(" Select a.b <> @p") == [
        Token("SELECT", "Select", 1, 7),
        Token("name", "a", 8, 9),
        Token(".", ".", 9, 10),
        Token("name", "b", 10, 11),
        Token("!=", "<>", 12, 14),
        Token("parameter", "@p", 15, 17),
        Token("end", "", 17, 17),
    ]


def test_operators_take_the_longest_match() -> None:
    text = ">>>>>=><<<=<>!=|||???"
    assert kinds(text) == [">>>", ">>", "=", ">", "<<", "<=", "!=", "!=", "||", "|", "??", "?"]


def test_every_single_operator() -> None:
    assert kinds("( ) [ ] { } . , : * + - / % & | ^ ~ = < > ?") == list("()[]{}.,:*+-/%&|^~=<>?")


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_in_any_case(word: str) -> None:
    assert kinds(f"{word} {word.lower()} {word.title()}") == [word] * 3
    assert kinds(f"{word}_ _{word}") == ["name", "name"]


@pytest.mark.parametrize("word", ["LET", "RANK", "ALL", "FIRST", "LAST", "ROOT", "NaN", "COUNT"])
def test_words_that_stay_names(word: str) -> None:
    assert kinds(word) == ["name"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("42", 42),
        ("9223372036854775807", INT64_MAX),
        ("9223372036854775808", 2.0**63),
        ("18446744073709551615", 2.0**64),
        ("1.0", 1.0),
        ("1.50", 1.5),
        ("5.", 5.0),
        (".5", 0.5),
        ("1E2", 100.0),
        ("1e+2", 100.0),
        ("2.5e-3", 0.0025),
        (".5e1", 5.0),
        ("5.e1", 50.0),
        ("0x1F", 31),
        ("0XfF", 255),
        ("0x7fffffffffffffff", INT64_MAX),
        ("0x8000000000000000", 2.0**63),
        ("1e999", math.inf),
        ("9" * 5000, math.inf),
        ("0x" + "f" * 5000, math.inf),
    ],
)
def test_numbers(text: str, value: float) -> None:
    token, _ = tokenize(text)
    assert (token.kind, token.value, type(token.value)) == ("number", value, type(value))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("01", [0, 1]),
        ("1.2.3", [1.2, 0.3]),
        ("0x", [0, "x"]),
        ("1e", [1, "e"]),
        ("12abc", [12, "abc"]),
        ("1e+", [1, "e", "+"]),
    ],
)
def test_where_a_number_ends(text: str, values: list[object]) -> None:
    assert [token.value for token in tokenize(text)[:-1]] == values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("''", ""),
        ("'a'", "a"),
        ('"a"', "a"),
        ("'\"'", '"'),
        ('"\'"', "'"),
        (r"'\'\"\\\/\b\f\n\r\t'", "'\"\\/\b\f\n\r\t"),
        (r"'\u0041\u00e9'", "Aé"),
        (r"'\uD83D\uDE00'", "😀"),
        (r"'\uDE00\uD83D'", "\ude00\ud83d"),
        (r"'\ud83d'", "\ud83d"),
        (r"'\\u0041'", r"\u0041"),
        ("'-- no comment'", "-- no comment"),
        ("'/* none */'", "/* none */"),
        ("'\u2028é😀\x7f'", "\u2028é😀\x7f"),
    ],
)
def test_strings(text: str, value: str) -> None:
    token, _ = tokenize(text)
    assert (token.kind, token.value, token.end) == ("string", value, len(text))


@pytest.mark.parametrize("control", [chr(code) for code in range(32)])
def test_no_raw_control_characters_in_strings(control: str) -> None:
    text = f"'{control}'"
    assert tokenize(text)[0] == ("broken", text, 0, 3)


@pytest.mark.parametrize(
    ("text", "end"), [("a ; b", 3), ("a 'b\\' c", 8), ("a '\\x' c", 6), ("a @1", 3)]
)
def test_what_is_no_token_ends_the_list(text: str, end: int) -> None:
    name, broken, last = tokenize(text)
    assert (name.kind, broken[0], broken[2:], last.kind) == ("name", "broken", (2, end), "end")


@pytest.mark.parametrize("gap", [" ", "\t", "\r\n", "\u00a0", "\u3000", "--x\n", "/**/", "/*-- */"])
def test_space_and_comments_separate(gap: str) -> None:
    assert kinds(f"a{gap}b") == ["name", "name"]


@pytest.mark.parametrize("text", ["a -- b", "a /* b */", "a /* /* b */", "a --", "a-- b /*"])
def test_comments_are_nothing(text: str) -> None:
    assert kinds(text) == ["name"]


def test_comments_do_not_nest() -> None:
    assert kinds("/* /* */ a */") == ["name", "*", "/"]


def test_a_text_has_a_bound() -> None:
    fits = " " * limits.QUERY_CHARACTERS_MAX
    assert len(tokenize(fits)) == 1
    with pytest.raises(BadQuery, match="maximum limit of 524288 characters"):
        tokenize(fits + " ")


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("a", True),
        ("_a1", True),
        ("LET", True),
        ("", False),
        ("1a", False),
        ("a b", False),
        ("value", False),
        ("é", False),
        ("a\n", False),
    ],
)
def test_what_needs_no_quotes(name: str, plain: bool) -> None:
    assert is_plain_name(name) is plain
