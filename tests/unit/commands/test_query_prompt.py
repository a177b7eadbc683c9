"""The prompt of `armillary query`, typed into as a person would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from armillary.account import open_account
from armillary.commands.query.prompt import (
    KEYWORDS,
    QueryCompleter,
    history_file,
    is_complete,
    names_in,
    prompt_reader,
)
from armillary.container import Container
from armillary.query.expr.text import RESERVED

ITEM = {"id": "1", "city": "Oslo", "lines": [{"price": 5}], "x y": 1, "order": 2, "circle": {}}


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    with open_account(":memory:", housekeeping=False) as account:
        made = account.create_database("d").create_container("c", "/id")
        made.create_item(ITEM)
        yield made


def typed(container: Container, keys: str, times: int, history: Path) -> list[str]:
    """What the prompt gives when `keys` are typed."""
    with create_pipe_input() as given:
        given.send_text(keys)
        read = prompt_reader(container, ["@from"], history=history, terminal=(given, DummyOutput()))
        return [read("query> ") for _ in range(times)]


def test_enter_asks_after_a_semicolon_only(container: Container, tmp_path: Path) -> None:
    keys = "SELECT *\rFROM c;\rexit\r\r"
    found = typed(container, keys, 3, tmp_path / "h")
    assert found == ["SELECT *\nFROM c", "exit", ""]


@pytest.mark.parametrize(
    ("text", "complete"),
    [("SELECT 1", False), ("SELECT 1;", True), ("SELECT ';' ; \n", True), ("", True),
     ("  quit ", True), ("quits", False)],
)  # fmt: skip
def test_what_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_the_end_of_the_input_and_an_interrupt_are_reported(
    container: Container, tmp_path: Path
) -> None:
    with pytest.raises(EOFError):
        typed(container, "\x04", 1, tmp_path / "h")
    with pytest.raises(KeyboardInterrupt):
        typed(container, "SELECT\x03", 1, tmp_path / "h")


def test_tab_completes(container: Container, tmp_path: Path) -> None:
    """One that fits is put in at once."""
    found = typed(
        container, "SELECT c.cit\t FRO\t c WHE\t ARRAY_LEN\t(c.lin\t);\r", 1, tmp_path / "h"
    )
    assert found == ["SELECT c.city FROM c WHERE ARRAY_LENGTH(c.lines)"]


def test_history_comes_back_in_another_session(container: Container, tmp_path: Path) -> None:
    place = tmp_path / "deep" / "history"
    typed(container, "SELECT 1;\r", 1, place)
    assert typed(container, "\x1b[A\r", 1, place) == ["SELECT 1"]
    assert place.stat().st_mode & 0o077 == 0


def test_without_a_place_for_history_there_is_a_prompt(
    container: Container, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert typed(container, "SELECT 1;\r", 1, blocked / "history") == ["SELECT 1"]


def offered(text: str) -> list[str]:
    completer = QueryCompleter({"city", "circle"}, ["@from"])
    return [each.text for each in completer.get_completions(Document(text), CompleteEvent())]


def test_what_is_offered() -> None:
    assert offered("SELECT c.ci") == ["circle", "city"]
    assert offered("SELECT c.") == ["circle", "city"]
    assert offered("SELECT c.CI") == []  # names of properties keep their case
    assert offered("sel") == ["SELECT"]
    assert "STARTSWITH" in offered("SELECT * FROM c WHERE star")
    assert offered("WHERE c.a = @") == ["@from"]
    assert offered("SELECT ") == []
    assert not any(name.startswith("_") for name in offered("_"))


def test_every_offered_word_is_one_of_the_language() -> None:
    assert {word.upper() for word in KEYWORDS} - {"RANK"} <= RESERVED


def test_names_are_those_that_can_be_written(container: Container) -> None:
    found = names_in(container)
    assert {"id", "city", "lines", "price", "circle"} <= found
    assert found.isdisjoint({"x y", "order"})


def test_where_history_is_kept() -> None:
    assert history_file({"XDG_STATE_HOME": "/s"}) == Path("/s/armillary/query_history")
    assert history_file({"LOCALAPPDATA": "/l"}) == Path("/l/armillary/query_history")
    assert history_file({}).parts[-4:] == (".local", "state", "armillary", "query_history")
