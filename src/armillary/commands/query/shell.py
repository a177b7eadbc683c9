"""The terminal side of `armillary query`: where it asks, standard input and output."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias

from rich.console import Console

from armillary.commands.errors import reporting_errors
from armillary.commands.query.asking import (
    Question,
    ask,
    converse,
    find_container,
    open_data,
    read_parameters,
    read_partition_key,
)
from armillary.commands.query.remote import RemoteContainer
from armillary.commands.query.report import Answer, as_csv, as_json, as_table, summary
from armillary.commands.remote import Remote, is_remote
from armillary.commands.sources import pick
from armillary.container import Container

Form: TypeAlias = Literal["table", "json", "csv"]
#: More rows than this are not read by people. Programs get all.
TABLE_ROWS: Final = 100


def run_shell(
    data: str,
    sql: str | None,
    *,
    database: str | None = None,
    container: str | None = None,
    partition_key: str | None = None,
    parameters: Sequence[str] = (),
    max_items: int | None = None,
    form: Form = "table",
) -> None:
    if form == "table" and max_items is None:
        max_items = TABLE_ROWS
    with reporting_errors(form == "json"):
        question = Question(
            read_parameters(parameters), read_partition_key(partition_key), max_items
        )
        with _source(data, database, container) as source:
            if sql is None and sys.stdin.isatty():
                from armillary.commands.query.prompt import prompt_reader  # takes its time

                read = prompt_reader(source, question.parameters)
                converse(read, lambda text: _show(ask(source, text, question), form), _report)
            else:
                text = sys.stdin.read() if sql is None else sql
                _show(ask(source, text, question), form)


@contextmanager
def _source(
    data: str, database: str | None, container: str | None
) -> Iterator[Container | RemoteContainer]:
    if is_remote(data):
        with Remote(data) as remote:
            yield RemoteContainer(remote, *pick(remote, database, container))
        return
    with open_data(data) as account:
        yield find_container(account, database, container)


def _show(answer: Answer, form: Form) -> None:
    if form == "json":
        print(as_json(answer))
    elif form == "csv":
        print(as_csv(answer))
        _report(summary(answer))  # not among the rows
        _report(answer.plan)
    else:
        Console(soft_wrap=False).print(as_table(answer))


def _report(text: str) -> None:
    print(text, file=sys.stderr)
