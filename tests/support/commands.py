"""Commands for engine tests: one little interpreter, so that a test is a list of plain data.

    ("put", key, value)  ("delete", key)  ("get", key)  ("scan", start, end, reverse, limit)  …

`apply` runs such a list in one transaction and returns what each step answered. It is named by
import path when a writer process has to find it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.waiting import until

from armillary.engine.base import META_KEY, Command, Handler, Writer
from armillary.errors import Conflict

LAST = b"\xff" * 512
HANDLERS_PATH = "tests.support.commands:HANDLERS"


class Refused(Conflict):
    """What a test command raises on purpose."""


def apply(writer: Writer, operations: Sequence[Any]) -> list[Any]:
    return [STEPS[name](writer, *arguments) for name, *arguments in operations]


def _scan(writer: Writer, start: bytes, end: bytes, reverse: bool, limit: int | None) -> Any:
    return list(writer.scan(start, end, reverse=reverse, limit=limit))


def _nested(writer: Writer, operations: Sequence[Any], fail: bool) -> Any:
    try:
        with writer.nested():
            answers = apply(writer, operations)
            if fail:
                raise Refused("in the scope")
    except Refused:
        return "undone"
    return answers


def _fail(writer: Writer, text: str) -> None:
    raise Refused(text, where="here")


def _bug(writer: Writer) -> None:
    raise ZeroDivisionError("a bug")


def _count(writer: Writer, key: bytes) -> int:
    """Read, add one, write: lost updates show."""
    number = int(writer.get(key) or b"0") + 1
    writer.put(key, b"%d" % number)
    return number


def _count_meta(writer: Writer) -> int:
    number = int(writer.meta.rpartition(b":")[2]) + 1
    writer.put(META_KEY, writer.meta.rpartition(b":")[0] + b":%d" % number)
    return number


def _meet(writer: Writer, path: str) -> None:
    """Stop here, in whatever process this runs, until the test has met us and lets us go on."""
    with open(path, "rb") as pipe:
        pipe.read()


@contextmanager
def meeting(path: Path) -> Iterator[None]:
    """Inside the block the command `("meet", str(path))` is running and goes no further. The pipe
    has to exist (`os.mkfifo`) before the command is sent."""

    def open_pipe() -> int | None:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody has it open for reading yet
            return None

    handle = until(open_pipe)
    assert handle is not None
    try:
        yield
    finally:
        os.close(handle)


class Arrival:
    """A value that leaves a file behind where its command is decoded: in the writer process."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (str(self._path),)


def _arrived(path: str) -> None:
    Path(path).touch()


STEPS: dict[str, Callable[..., Any]] = {
    "put": lambda writer, key, value: writer.put(key, value),
    "put_many": lambda writer, rows: writer.put_many(rows),
    "put_joined": lambda writer, rows, width: writer.put_joined(list(rows), width),
    "delete": lambda writer, key: writer.delete(key),
    "delete_many": lambda writer, keys: writer.delete_many(keys),
    "get": lambda writer, key: writer.get(key),
    "get_many": lambda writer, keys: writer.get_many(keys),
    "via": lambda writer, key, prefix: writer.get_via(key, prefix),
    "scan": _scan,
    "meta": lambda writer: writer.meta,
    "nested": _nested,
    "fail": _fail,
    "bug": _bug,
    "count": _count,
    "count_meta": _count_meta,
    "meet": _meet,
    "sleep": lambda writer, seconds: time.sleep(seconds),
    "answer": lambda writer, value: value,
}

HANDLERS = {"apply": Handler(apply)}


def command(*operations: Any) -> Command:
    return Command("apply", list(operations))


def first_rows(name: str = "meta") -> list[tuple[bytes, bytes]]:
    return [(META_KEY, name.encode() + b":0")]
