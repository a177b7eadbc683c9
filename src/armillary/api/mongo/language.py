"""What every part of the language is given: variables, the time, the budget, how strict we are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bson.datetime_ms import DatetimeMS

from armillary.budget import Budget, unbounded


class Missing:
    """A field that is not there. Not null: `$exists`, projections and `$ifNull` tell them apart."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing()


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


PLAIN: Final = Language()
