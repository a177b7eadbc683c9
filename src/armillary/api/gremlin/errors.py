"""What a script can do wrong, by what the service calls it. Wire codes are in `api/errors.py`.

A `ScriptError` says what is wrong with the text or happened while it ran; what the store refuses
(conflict, throttling, no such owner) stays the `DbError` that it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal[
    "binding", "symbol", "parse", "syntax", "runtime", "value", "unsupported", "malformed",
    "serialization", "limit", "busy",
]  # fmt: skip


class Position(NamedTuple):
    """1-based, in the submitted text."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"@ line {self.line}, column {self.column}."


@dataclass(frozen=True, slots=True)
class Naming:
    """How the service names a kind of error in its messages (gremlin reference 4)."""

    type: str
    code: str
    scope: str
    prefix: str = ""
    context: str = "graphcompute"


_COMPILE: Final = ("GraphCompileException", "QuerySyntaxError")
_QUERY: Final = "Gremlin Query Compilation Error: "
NAMES: Final[dict[str, Naming]] = {
    "binding": Naming(*_COMPILE, "graphparse-translate-csharpexpressionbinding", _QUERY),
    "symbol": Naming(*_COMPILE, "graphparse-translate-validatesymbolresolution", _QUERY),
    "parse": Naming(*_COMPILE, "graphparse-translate-outer", _QUERY + "Script compile error: "),
    "syntax": Naming(
        "GraphSyntaxException",
        "QuerySyntaxError",
        "graphcmd-invoke",
        "Gremlin query syntax error: ",
    ),
    "runtime": Naming(
        "GraphRuntimeException",
        "GraphRuntimeError",
        "graphcomp-execquery",
        "Gremlin Query Execution Error: ",
    ),
    "value": Naming(
        "GraphRuntimeException",
        "GraphRuntimeError",
        "graphstg-logplan",
        "Gremlin Query Execution Error: ",
    ),
    "unsupported": Naming(
        "GraphRuntimeException",
        "UnsupportedQuery",
        "graphcomp-execquery",
        "Gremlin Query Execution Error: ",
    ),
    "malformed": Naming(
        "GraphMalformedException",
        "MalformedRequest",
        "gremlinrequest",
        "Gremlin Malformed Request: ",
        "global",
    ),
    "serialization": Naming(
        "GraphSerializationException", "GraphSerializationError", "graphcomp-serialize"
    ),
    "limit": Naming("GraphLimitException", "LimitExceeded", "graphcomp-limits"),
    "busy": Naming("GraphBusyException", "ConnectionBusy", "gremlinrequest", "", "global"),
}


class ScriptError(Exception):
    """Raised by the parser, the binder and the steps. No `DbError`: no other protocol meets it."""

    def __init__(self, message: str, kind: Kind = "runtime", at: Position | None = None) -> None:
        super().__init__(message if at is None else f"{message} {at}")
        self.kind: Kind = kind
        self.at = at

    @property
    def message(self) -> str:
        return str(self.args[0])


def no_method(name: str, at: Position) -> ScriptError:
    return ScriptError(f"Unable to find any method '{name}'", "binding", at)


def no_binding(name: str, types: str, at: Position) -> ScriptError:
    text = f"Unable to bind to method '{name}', with arguments of type: ({types})"
    return ScriptError(text, "binding", at)


def no_symbol(name: str, at: Position) -> ScriptError:
    text = f"Unable to resolve symbol '{name}' in the current context."
    return ScriptError(text, "symbol", at)
