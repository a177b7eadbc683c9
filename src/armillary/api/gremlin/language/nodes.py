"""What a script says, as data. Positions are 1-based and take no part in comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from armillary.api.gremlin.errors import Position

NOWHERE = Position(1, 1)


@dataclass(frozen=True, slots=True)
class Call:
    """`.name(arguments)`"""

    name: str
    args: tuple[Argument, ...]
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Chain:
    """`g.V().out()`, or without `g` the traversal of a child: `__.out()`, `out()`."""

    calls: tuple[Call, ...]
    rooted: bool = False
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Enum:
    """`T.id` is Enum("T", "id")."""

    type: str
    name: str


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate: `P.gt(3)`, `TextP.startingWith("a")`; `and`, `or` and `negate` have tests in
    their arguments."""

    name: str
    args: tuple[Argument, ...]
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Binding:
    """A bare name: its value comes with the request, or it is that of an enum (`id`, `decr`)."""

    name: str
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    entries: tuple[tuple[Argument, Argument], ...]


@dataclass(frozen=True, slots=True)
class Strategy:
    """`PartitionStrategy.build().partitionKey("pk").create()`"""

    name: str
    settings: tuple[tuple[str, tuple[Argument, ...]], ...]
    at: Position = field(default=NOWHERE, compare=False)


Argument: TypeAlias = Any
"""str, int, float, bool, None, or a node of this module."""
