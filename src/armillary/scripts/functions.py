"""User-defined functions of queries: their texts compiled once per page, rows in blocks.

The process is taken by the first call and given back with the page. A query that never calls one,
because an index left no rows, starts nothing.
"""

from __future__ import annotations

import marshal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
import orjson

from armillary import limits
from armillary.errors import NotFound, ScriptFailed, ScriptOutOfMemory, ScriptTimedOut
from armillary.query.functions.user import FunctionCall, UserFunctions
from armillary.query.problems import BadQuery, QueryError
from armillary.scripts.children.process import Answer, Child, ChildGone
from armillary.scripts.failures import compile_failure, failure
from armillary.scripts.running import Thrown
from armillary.scripts.runtime import Runtime
from armillary.store.catalog.resources import ResourceRecord, ResourceStore
from armillary.store.items.containers import ContainerStore
from armillary.values import UNDEFINED


class Block(msgspec.Struct):
    """What a child answers to a block of calls."""

    rows: list[Any] = []
    missing: list[int] = []
    errors: list[tuple[int, int, Thrown]] = []


class Loaded(msgspec.Struct):
    wrong: str | None = None


_decode = msgspec.json.Decoder(Block).decode
_decode_loaded = msgspec.json.Decoder(Loaded).decode


def open_functions(runtime: Runtime, store: ContainerStore, names: Sequence[str]) -> UserFunctions:
    kept = ResourceStore(store.engine, "udf", store.state.record.rid)
    scripts = [_found(kept, name) for name in names]
    for script in scripts:
        runtime.strikes.check(script)
    machine = _Functions(runtime, scripts)
    return UserFunctions(names, machine.run, machine.close)


def _found(kept: ResourceStore, name: str) -> ResourceRecord:
    try:
        found = kept.read(name)
    except NotFound:
        found = None
    if found is None or found.id != name:  # a rid is no name
        message = f"'{name}' is not a recognized user-defined function name."
        raise BadQuery.of([QueryError("SC2005", message)])
    return found


class _Functions:
    def __init__(self, runtime: Runtime, scripts: list[ResourceRecord]) -> None:
        self._runtime = runtime
        self._scripts = scripts
        self._stack = ExitStack()
        self._child: Child | None = None

    def run(self, calls: Sequence[FunctionCall]) -> list[Any]:
        found: list[Any] = []
        block: list[bytes] = []
        size = 0
        for number, arguments in calls:
            if block and (
                size + len(arguments) > limits.FUNCTION_BLOCK_BYTES
                or len(block) >= limits.FUNCTION_ROWS
            ):
                found += self._block(block)
                block, size = [], 0
            block.append(b"[%d,%b]" % (number, arguments))
            size += len(arguments)
        return found + self._block(block)

    def close(self) -> None:
        self._child = None
        self._stack.close()

    def _block(self, calls: list[bytes]) -> list[Any]:
        child = self._child or self._opened()
        answer = self._asked(child, b"C", b"[" + b",".join(calls) + b"]")
        try:
            block = _decode(answer.text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ScriptFailed("A user-defined function gave a value that is not JSON.") from None
        rows = block.rows
        if len(rows) != len(calls):
            raise ScriptFailed("A user-defined function disturbed its neighbours.")
        for at in block.missing:
            if 0 <= at < len(rows):
                rows[at] = UNDEFINED
        for at, which, thrown in block.errors:
            if 0 <= at < len(rows):
                name = self._scripts[which].id if which < len(self._scripts) else "udf"
                rows[at] = failure(name, thrown)
        return rows

    def _opened(self) -> Child:
        child = self._stack.enter_context(self._runtime.function_pool.lease())
        texts = [(one.id, one.body["body"]) for one in self._scripts]
        answer = self._asked(child, b"F", marshal.dumps(texts))
        if answer.kind == "B":
            name, text = orjson.loads(answer.text)
            raise compile_failure(name, text)
        loaded = _decode_loaded(answer.text)
        if loaded.wrong is not None:
            raise compile_failure(loaded.wrong, "The script must begin with a function.")
        self._child = child
        return child

    def _asked(self, child: Child, kind: bytes, data: bytes) -> Answer:
        names = ", ".join(one.id for one in self._scripts)
        try:
            answer = child.ask(kind, data, time.monotonic() + self._runtime.bounds.seconds)
        except ChildGone as gone:
            self._strike()
            raise (ScriptTimedOut if gone.timed_out else ScriptOutOfMemory)(name=names) from None
        if answer.kind in ("T", "M"):
            self._strike()
            raise (ScriptTimedOut if answer.kind == "T" else ScriptOutOfMemory)(name=names)
        return answer

    def _strike(self) -> None:
        for script in self._scripts:
            self._runtime.strikes.add(script)
