"""One run of one script: `run(source, arguments, context, budget)`.

    start ──▶ operations ──▶ context.execute, one by one ──▶ results ──▶ operations … ──▶ done

The parent owns the clock: past the soft limit operations are no longer accepted, past the hard one
the child is killed. Whatever a child sends is checked as if a stranger had sent it, because a
script may have changed everything that made it.
"""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec
import orjson

from armillary import limits
from armillary.budget import Budget
from armillary.errors import (
    OutOfTime,
    ScriptFailed,
    ScriptOutOfMemory,
    ScriptTimedOut,
)
from armillary.scripts.children.bounds import Bounds
from armillary.scripts.children.pool import Pool
from armillary.scripts.children.process import Answer, Child, ChildGone
from armillary.scripts.failures import compile_failure, failure


class Asked(msgspec.Struct):
    """One operation, as the library queues it."""

    op: str
    link: str = ""
    body: str = ""
    etag: str | None = None
    if_none_match: str | None = None
    query: str = ""
    parameters: str = "[]"
    page_size: float | None = None
    continuation: str | None = None
    status: int = 0
    text: str = ""


class Thrown(msgspec.Struct):
    name: str = ""
    message: str = ""
    number: float | None = 0
    stack: str = ""
    isError: bool = False  # noqa: N815 - a name of the library
    hasNumber: bool = False  # noqa: N815


class Done(msgspec.Struct):
    log: str = ""
    response: str | None = None
    request: str | None = None


class Message(msgspec.Struct):
    """What a child answers: one of the three."""

    ops: list[Asked] | None = None
    done: Done | None = None
    error: Thrown | None = None
    log: str = ""


class Result(msgspec.Struct, omit_defaults=True):
    """What an operation came to, as the library takes it."""

    status: int
    value: msgspec.Raw | None = None
    error: str | None = None
    continuation: str | None = None
    not_modified: bool = False


class Context(Protocol):
    """What a run may do besides computing."""

    name: str
    """Of the script, for messages."""

    def setup(self) -> dict[str, Any]:
        """What the library is made of: links, request, response, quotas."""
        ...

    def execute(self, asked: Asked) -> Result: ...

    def accepts(self) -> bool:
        """Whether further operations may be queued: there is budget for them."""
        ...


@dataclass(slots=True)
class Ran:
    response: bytes = b'""'
    """JSON."""
    request: bytes = b"null"
    """JSON: the body that a pre-trigger leaves."""
    log: str = ""
    cpu_seconds: float = 0.0


@dataclass(slots=True)
class _Clock:
    began: float
    bounds: Bounds
    cpu_seconds: float = field(default=0.0)

    @property
    def deadline(self) -> float:
        return self.began + self.bounds.seconds

    @property
    def is_late(self) -> bool:
        return time.monotonic() - self.began >= self.bounds.soft_seconds


#: Where the text and the arguments of a script begin in the frame that starts it.
START: Final = struct.Struct(">II")
ENTRY: Final = "$entry"
#: What each operation has in the text of a child. Inside of a string its quotes would be escaped.
OPERATION: Final = b'"op":'

_decode = msgspec.json.Decoder(Message).decode
_encode = msgspec.json.Encoder().encode


def run(source: str, arguments: bytes, context: Context, budget: Budget, pool: Pool) -> Ran:
    """Run a script to its end. Raises ScriptFailed when it throws; what it did is the context's to
    undo. `arguments` is the JSON that the caller sent. What the script asks the context for has no
    more time than the script has."""
    budget.check()
    given = budget.deadline
    clock = _Clock(time.monotonic(), pool.bounds)
    try:
        with pool.lease() as child:
            clock.began = time.monotonic()  # waiting for a child is not the script's time
            budget.deadline = min(given, clock.deadline)
            return _run(child, source, arguments, context, budget, clock)
    except ChildGone as gone:
        spent = time.monotonic() - clock.began
        raise _gone(context.name, gone.timed_out, max(clock.cpu_seconds, spent)) from None
    except ScriptFailed as error:
        error.facts.setdefault("cpu_seconds", clock.cpu_seconds)
        raise
    finally:
        budget.deadline = given


def _run(
    child: Child,
    source: str,
    arguments: bytes,
    context: Context,
    budget: Budget,
    clock: _Clock,
) -> Ran:
    setup = orjson.dumps(context.setup() | {"limits": limits_of(clock.bounds), "entry": ENTRY})
    text = source.encode("utf-8", "surrogatepass")
    text_at = START.size + len(setup)
    start = START.pack(text_at, text_at + len(text)) + setup + text + arguments
    message = _read(child.ask(b"S", start, clock.deadline), context, clock)
    while message.ops is not None:
        results = []
        try:
            for asked in message.ops:
                budget.spend()
                budget.check()
                results.append(context.execute(asked))
            budget.check()
        except ScriptTimedOut:  # of a function that a query calls
            raise
        except OutOfTime as error:
            raise _gone(context.name, True, clock.cpu_seconds) from error
        accepting = context.accepts() and not clock.is_late
        frame = _encode({"accepting": accepting, "results": results})
        message = _read(child.ask(b"R", frame, clock.deadline), context, clock)
    if message.done is None:
        raise failure(context.name, message.error or Thrown(), message.log)
    done = message.done
    return Ran(
        (done.response or '""').encode(),
        (done.request or "null").encode(),
        done.log[: limits.SCRIPT_LOG_CHARACTERS_MAX],
        clock.cpu_seconds,
    )


def _read(answer: Answer, context: Context, clock: _Clock) -> Message:
    clock.cpu_seconds += answer.cpu_seconds
    match answer.kind:
        case "T":
            raise _gone(context.name, True, clock.cpu_seconds)
        case "M":
            raise _gone(context.name, False, clock.cpu_seconds)
        case "B":
            raise compile_failure(context.name, answer.text.decode("utf-8", "replace"))
    if answer.text.count(OPERATION) > limits.SCRIPT_BLOCK_OPERATIONS:  # not of our library's making
        raise _gone(context.name, False, clock.cpu_seconds)
    try:
        message = _decode(answer.text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Lone surrogates, or a script that changed how objects become JSON.
        raise failure(
            context.name, Thrown("TypeError", "The script produced text that is not JSON.")
        ) from None
    return message


def _gone(name: str, timed_out: bool, cpu_seconds: float) -> ScriptTimedOut | ScriptOutOfMemory:
    kind = ScriptTimedOut if timed_out else ScriptOutOfMemory
    return kind(name=name, cpu_seconds=cpu_seconds)


def limits_of(bounds: Bounds) -> dict[str, float]:
    """The part of the bounds that the library keeps to by itself, so that a script can react."""
    return {
        "soft_ms": bounds.soft_seconds * 1000,
        "pending_max": limits.SCRIPT_PENDING_MAX,
        "pending_bytes": limits.SCRIPT_PENDING_BYTES,
        "block": limits.SCRIPT_BLOCK_OPERATIONS,
        "message_characters": limits.SCRIPT_MESSAGE_CHARACTERS_MAX,
        "answer_characters": limits.SCRIPT_ANSWER_CHARACTERS_MAX,
        "log_characters": limits.SCRIPT_LOG_CHARACTERS_MAX,
        "polygon_points": limits.POLYGON_POINTS_MAX,
    }
