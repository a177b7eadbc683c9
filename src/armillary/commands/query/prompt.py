"""Questions from a terminal: a prompt with completion, history, and lines until a semicolon.

The completer offers what may come next as far as a word tells: after a point the names of
properties that the container was seen to have, elsewhere words of the language, functions and
parameters. History is a file in the user's folder for such things, or only in memory when there
is no such folder to be had. The only module that knows `prompt_toolkit`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output

from armillary.commands.query.asking import FAREWELLS
from armillary.commands.query.remote import RemoteContainer
from armillary.container import Container
from armillary.query.expr.text import is_plain_name
from armillary.query.functions import FUNCTIONS
from armillary.values import JSON

#: Words that begin or join clauses. Reserved words that the grammar has no place for are left out.
_CLAUSE_WORDS = """
    AND ARRAY AS ASC BETWEEN BY DESC DISTINCT ESCAPE EXISTS FROM GROUP IN JOIN LIKE LIMIT NOT OFFSET
    OR ORDER RANK SELECT TOP VALUE WHERE false null true undefined
"""
KEYWORDS: Final = tuple(_CLAUSE_WORDS.split())
END: Final = ";"
CONTINUED: Final = "     > "
ITEMS_LOOKED_AT: Final = 50
DEPTH_LOOKED_AT: Final = 4
NAMES_MAX: Final = 1_000
_WORD: Final = re.compile(r"@?[A-Za-z_][A-Za-z0-9_]*\Z|@\Z")


def prompt_reader(
    container: Container | RemoteContainer,
    parameters: Iterable[str] = (),
    *,
    history: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    terminal: tuple[Input, Output] | None = None,
) -> Callable[[str], str]:
    """A function that asks for the next question. It raises EOFError and KeyboardInterrupt as
    `input` does. `terminal` stands for the real one in tests.
    """
    given, shown = terminal or (None, None)
    session: PromptSession[str] = PromptSession(
        history=_history(history or history_file(environment)),
        completer=QueryCompleter(names_in(container), sorted(parameters)),
        complete_while_typing=False,
        multiline=True,
        prompt_continuation=CONTINUED,
        key_bindings=_bindings(),
        editing_mode=EditingMode.EMACS,
        input=given,
        output=shown,
    )

    def read(prompt: str) -> str:
        return session.prompt(prompt).strip().removesuffix(END)

    return read


def is_complete(text: str) -> bool:
    """Whether Enter asks the question rather than beginning another line."""
    text = text.strip()
    return not text or text.endswith(END) or text in FAREWELLS


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @bindings.add("tab")
    def tab(event: KeyPressEvent) -> None:
        """The only word that fits at once, else a menu."""
        buffer = event.current_buffer
        if buffer.complete_state:
            buffer.complete_next()
            return
        asked = CompleteEvent(completion_requested=True)
        found = list(buffer.completer.get_completions(buffer.document, asked))
        if len(found) == 1:
            buffer.apply_completion(found[0])
        else:
            buffer.start_completion(insert_common_part=True)

    return bindings


# --- completion -----------------------------------------------------------------------------------


class QueryCompleter(Completer):
    def __init__(self, names: Iterable[str], parameters: Iterable[str] = ()) -> None:
        self._names = sorted(names)
        functions = (function.name for function in FUNCTIONS.values())
        self._words = sorted(
            [*KEYWORDS, *(name for name in functions if not name.startswith("_")), *parameters],
            key=str.upper,
        )

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        found = _WORD.search(before)
        word = found[0] if found else ""
        is_member = before[: len(before) - len(word)].endswith(".")
        if is_member:
            offered = [name for name in self._names if name.startswith(word)]
        elif word:
            offered = [each for each in self._words if each.upper().startswith(word.upper())]
        else:
            return
        for each in offered:
            yield Completion(each, start_position=-len(word))


def names_in(container: Container | RemoteContainer) -> set[str]:
    """The names of properties in the first items, those that can be written after a point."""
    page = container.query_page("SELECT * FROM c", max_items=ITEMS_LOOKED_AT)
    names: set[str] = set()
    for row in page.rows:
        for name in _names(row, DEPTH_LOOKED_AT):
            if len(names) >= NAMES_MAX:
                return names
            if is_plain_name(name):
                names.add(name)
    return names


def _names(value: JSON, depth: int) -> Iterator[str]:
    if not depth:
        return
    inner: Iterable[Any] = ()
    if isinstance(value, dict):
        yield from value
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    for each in inner:
        yield from _names(each, depth - 1)


# --- history --------------------------------------------------------------------------------------


def history_file(environment: Mapping[str, str]) -> Path:
    """In the folder for state of programs: XDG_STATE_HOME, LOCALAPPDATA, or ~/.local/state."""
    for name in ("XDG_STATE_HOME", "LOCALAPPDATA"):
        if environment.get(name):
            return Path(environment[name]) / "armillary" / "query_history"
    return Path("~/.local/state/armillary/query_history").expanduser()


def _history(path: Path) -> History:
    """What was asked may hold what others should not read: only the owner may."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600, exist_ok=True)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
