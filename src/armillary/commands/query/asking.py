"""`armillary query`: ask a data folder or a server in the terminal.

    open the account ──▶ pick the container ──▶ run pages until done ──▶ table, JSON or CSV
                                                                         + charge, ranges, plan

`cli.py` reads the options; here is what they mean. Wrong input comes back as a `CommandError` that
carries its exit code: 1 when the query or the data said no, 2 when the call was wrong. An error of
the query text is shown under the text, at its place. How answers look is in `query_report.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from armillary.account import Account, Writer, open_account
from armillary.commands.errors import EXIT_FAILED, EXIT_USAGE, CommandError, code_of
from armillary.commands.query.remote import RemoteContainer
from armillary.commands.query.report import Answer, pointed
from armillary.container import OMITTED, Container
from armillary.engine.opening import is_there
from armillary.errors import DbError
from armillary.limits import PAGE_ITEMS_MAX
from armillary.query.problems import BadQuery
from armillary.values import JSON

PROMPT: Final = "query> "
FAREWELLS: Final = frozenset({"exit", "quit", "\\q"})


@dataclass(frozen=True, slots=True)
class Question:
    """Everything about a query except its text."""

    parameters: dict[str, JSON]
    partition_key: Any = OMITTED
    max_items: int | None = None


# --- options --------------------------------------------------------------------------------------


def read_parameters(texts: Iterable[str]) -> dict[str, JSON]:
    """`name=value` or `@name=value`; the value is JSON, or else the text that it is."""
    found: dict[str, JSON] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        name = "@" + name.strip().removeprefix("@")
        if not sign or not name[1:].isidentifier() or not name.isascii():
            raise CommandError(f"A parameter is written name=value, not {text!r}.", EXIT_USAGE)
        found[name] = _json_or_text(value)
    return found


def read_partition_key(text: str | None) -> Any:
    """A JSON scalar, a JSON array for a hierarchical key, or else the text that it is."""
    return OMITTED if text is None else _json_or_text(text)


def _json_or_text(text: str) -> JSON:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


# --- where ----------------------------------------------------------------------------------------


def open_data(address: str, writer: Writer = "thread") -> Account:
    """An account that is there: to ask must not make a folder."""
    if not is_there(address):
        raise CommandError(f"There is no data folder at {address}.", EXIT_USAGE)
    try:
        return open_account(address, housekeeping=False, writer=writer)
    except DbError as error:
        raise CommandError(error.message, EXIT_FAILED) from error


def find_container(account: Account, database: str | None, container: str | None) -> Container:
    """The container of that name. A name that is the only one need not be given."""
    try:
        found = only(database, account.databases(), "database")
        home = account.database(found)
        return home.container(only(container, home.containers(), "container", f"{found}/"))
    except DbError as error:  # it went meanwhile, or can't be read
        named = "/".join(name for name in (database, container) if name is not None)
        raise CommandError(f"{named}: {error.message}", code_of(error)) from error


def only(given: str | None, there: list[str], what: str, parent: str = "") -> str:
    """The name that was given, or the only one."""
    names = ", ".join(sorted(there)) or "none"
    if given in there:
        return given
    if given is not None:
        text = f"There is no {what} {parent}{given}; there are: {names}."
        raise CommandError(text, EXIT_USAGE)
    if len(there) == 1:
        return there[0]
    raise CommandError(f"Say which {what} with --{what}; there are: {names}.", EXIT_USAGE)


# --- asking ---------------------------------------------------------------------------------------


def ask(container: Container | RemoteContainer, text: str, question: Question) -> Answer:
    """All rows, or the first `max_items`."""
    answer = Answer()
    continuation: str | None = None
    try:
        while True:
            left = PAGE_ITEMS_MAX
            if question.max_items is not None:
                left = min(left, question.max_items - len(answer.rows))
            page = container.query_page(
                text,
                question.parameters,
                partition_key=question.partition_key,
                max_items=left,
                continuation=continuation,
            )
            answer.add(page)
            continuation = page.continuation
            is_full = len(answer.rows) == question.max_items
            if continuation is None or is_full:
                answer.has_more = continuation is not None
                return answer
    except BadQuery as error:
        raise CommandError(pointed(text, error.errors), EXIT_FAILED) from error
    except DbError as error:
        raise CommandError(f"error: {error.message}", EXIT_FAILED) from error


def converse(
    read: Callable[[str], str],
    answer: Callable[[str], None],
    report: Callable[[str], None],
) -> None:
    """A question per line until the end of the input or a farewell. A mistake ends nothing."""
    while True:
        try:
            line = read(PROMPT).strip()
        except EOFError:
            return
        except KeyboardInterrupt:
            continue
        if line in FAREWELLS:
            return
        if not line:
            continue
        try:
            answer(line)
        except CommandError as error:
            report(str(error))
