"""What every part of the language is given: variables, the time, the budget, how strict we are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bson.datetime_ms import DatetimeMS

from armillary.budget import Budget, unbounded

INDEX_DIGITS_MAX: Final = 12
MANY: Final = 1_000
CLAUSE_BYTES: Final = 1_200  # of a filter
PART_BYTES: Final = 300  # of an expression


def hold_compiled(count: int, size: int, budget: Budget) -> None:
    """Before so many parts are made functions: each takes a hundred times what it took to say."""
    if count > MANY:
        budget.hold(size * count)
        budget.spend(count)


class Missing:
    """A field that is not there. Not null: `$exists`, projections and `$ifNull` tell them apart."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing()


def is_index(part: str) -> bool:
    """Whether a part of a path may be a place in an array."""
    return part.isdigit() and part.isascii() and len(part) <= INDEX_DIGITS_MAX


def rough_bytes(value: Any) -> int:
    """With all that stands in it."""
    if isinstance(value, str | bytes):
        return 48 + len(value)
    if isinstance(value, dict):
        return 64 + sum(len(name) + 56 + rough_bytes(one) for name, one in value.items())
    if isinstance(value, list):
        return 64 + sum(map(rough_bytes, value))
    return 32


class Scratch:
    """What the evaluation of one document has made so far and may still hold, on the budget of the
    command. A loop goes back to what was held before each of its steps, and holds what it keeps of
    the step."""

    __slots__ = ("_document", "budget", "held")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._document: Any = None
        self.held = 0

    def begin(self, document: Any) -> None:
        """Nothing is left of the one before, if it is another."""
        if document is not self._document:
            self._document = document
            self.back_to(0)

    def spend(self, steps: int) -> None:
        self.budget.spend(steps)

    def hold(self, size: int) -> None:
        self.held += size
        self.budget.hold(size)

    def back_to(self, held: int) -> None:
        self.budget.release(self.held - held)
        self.held = held


@dataclass(frozen=True, slots=True)
class Language:
    now: DatetimeMS = field(default_factory=lambda: DatetimeMS(0))
    variables: Mapping[str, Any] = field(default_factory=dict)
    """Of `let`, and NOW."""
    strict: bool = False
    """Refuse what Azure Cosmos DB refuses."""
    budget: Budget = field(default_factory=unbounded)
    random: Callable[[], float] = lambda: 0.5
    new_id: Callable[[], Any] = lambda: None
    fold: Callable[[Any], Any] | None = None
    """Of a collation; None: strings compare by their bytes."""
    scratch: Scratch = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scratch", Scratch(self.budget))


PLAIN: Final = Language()
