"""Commands for engine tests: one little interpreter, so that a test is a list of plain data.

    ("put", key, value)  ("delete", key)  ("get", key)  ("scan", start, end, reverse, limit)  …

`apply` runs such a list in one transaction and returns what each step answered. It is named by
import path when a writer process has to find it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

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


def _sleep(writer: Writer, seconds: float) -> None:
    time.sleep(seconds)


STEPS: dict[str, Callable[..., Any]] = {
    "put": lambda writer, key, value: writer.put(key, value),
    "put_many": lambda writer, rows: writer.put_many(rows),
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
    "sleep": _sleep,
    "answer": lambda writer, value: value,
}

HANDLERS = {"apply": Handler(apply)}


def command(*operations: Any) -> Command:
    return Command("apply", list(operations))


def first_rows(name: str = "meta") -> list[tuple[bytes, bytes]]:
    return [(META_KEY, name.encode() + b":0")]
