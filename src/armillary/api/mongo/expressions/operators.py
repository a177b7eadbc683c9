"""How an operator is written down: `Simple` for a function of its evaluated arguments, or a
function that compiles its argument itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.values import is_nothing
from armillary.api.mongo.language import MISSING, Scratch

Variables: TypeAlias = Mapping[str, Any]
Expression: TypeAlias = Callable[[Any, Any], Any]


TEXT_BYTES = 49  # of an empty text
REFERENCE_BYTES = 8  # in an array
ELEMENT_BYTES = 64  # a small value in an array that was made for it
STEP_CHARACTERS = 64  # of a text that cost as much as one element of an array


class Inner(Protocol):
    """Compiles a part of the argument; `more` are variables that it may use."""

    @property
    def scratch(self) -> Scratch: ...

    def __call__(self, part: Any, more: frozenset[str] = ...) -> Expression: ...


Special: TypeAlias = Callable[[str, Any, Inner], Expression]


@dataclass(frozen=True, slots=True)
class Simple:
    run: Callable[..., Any]
    least: int = 1
    most: int | None = 1
    nothing: bool = True
    """Null or a missing argument makes the result null, without a call."""
    weigh: Callable[..., int] | None = None
    """Bytes that the call is going to make, for those that can make much of little."""

    def compile(self, name: str, argument: Any, inner: Inner) -> Expression:
        given = argument if isinstance(argument, list) else [argument]
        self._check(name, len(given))
        parts = [inner(one) for one in given]
        run, nothing, weigh, scratch = self.run, self.nothing, self.weigh, inner.scratch
        if len(parts) == 1:
            (only,) = parts

            def single(document: Any, variables: Any) -> Any:
                value = only(document, variables)
                if nothing and is_nothing(value):
                    return None
                scratch.spend(steps_of(value))
                if weigh is not None:
                    scratch.hold(weigh(value))
                return run(value)

            return single

        def several(document: Any, variables: Any) -> Any:
            values = [part(document, variables) for part in parts]
            if nothing and any(map(is_nothing, values)):
                return None
            scratch.spend(sum(map(steps_of, values)))
            if weigh is not None:
                scratch.hold(weigh(*values))
            return run(*values)

        return several

    def _check(self, name: str, count: int) -> None:
        if self.most == self.least != count:
            raise MongoError(
                16020,
                f"Expression {name} takes exactly {self.least} arguments. {count} were passed in.",
            )
        if count < self.least or (self.most is not None and count > self.most):
            raise MongoError(
                28667,
                f"Expression {name} takes at least {self.least} arguments, and at most "
                f"{self.most}, but {count} were passed in.",
            )


Operator: TypeAlias = Simple | Special


def steps_of(value: Any) -> int:
    """What looking at all of it takes."""
    kind = type(value)
    if kind is list or kind is dict:
        return 1 + len(value)
    return 1 + len(value) // STEP_CHARACTERS if kind is str else 1


def elements_bytes(*values: Any) -> int:
    """Of something made anew for every element: keys to sort by, pieces of a text."""
    return sum(ELEMENT_BYTES * len(one) for one in values if type(one) is list)


def watched(expression: Expression, scratch: Scratch) -> Expression:
    """The same, with its result on the budget: HOT, once for every operator and document."""
    spend, hold = scratch.spend, scratch.hold

    def run(document: Any, variables: Any) -> Any:
        value = expression(document, variables)
        kind = type(value)
        if kind is list:
            spend(1 + len(value))
            hold(REFERENCE_BYTES * len(value))
        elif kind is str:
            spend(1)
            hold(TEXT_BYTES + len(value))
        else:
            spend(1)
        return value

    return run


def named(
    name: str,
    argument: Any,
    inner: Inner,
    required: tuple[str, ...],
    optional: tuple[str, ...] = (),
    code: int = 40415,
) -> dict[str, Expression]:
    """The arguments of an operator that takes a document of them."""
    if not isinstance(argument, dict):
        raise MongoError(9, f"{name} only supports an object as its argument")
    for one in argument:
        if one not in required and one not in optional:
            raise MongoError(code, f"Unrecognized argument to {name}: {one}")
    for one in required:
        if one not in argument:
            raise MongoError(16878, f"Missing '{one}' parameter to {name}")
    return {one: inner(part) for one, part in argument.items()}


def value_of(expression: Expression | None, document: Any, variables: Any, default: Any) -> Any:
    if expression is None:
        return default
    found = expression(document, variables)
    return None if found is MISSING else found
