"""What is asked of indexes, as values: one range index, or several together.

A lookup finds every item that can pass (never fewer). When it is `exact` it finds no others, and
counting its entries is counting the items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.models import ValueModel
from armillary.query.access.term_ranges import Ranges
from armillary.query.expr import nodes
from armillary.store.index.paths import ARRAY, Path
from armillary.store.rows import layout
from armillary.store.rows.layout import after

#: Names of expressions → the paths they stand for: c → (), t IN c.tags → (tags, ARRAY).
Places: TypeAlias = Mapping[str, Path]


class Lookup(msgspec.Struct, frozen=True):
    """Entries of one path."""

    path: Path
    ranges: Ranges
    exact: bool
    kind: bytes = layout.IX
    model: ValueModel = JSON_MODEL
    term_at: int | None = 0
    """Where in a bound its term begins; None: bounds are no terms."""

    @property
    def counts_items(self) -> bool:
        """Whether no item has two entries in it."""
        is_single = self.kind == layout.IX and ARRAY not in self.path
        return is_single or (len(self.ranges) == 1 and self.is_points)

    @property
    def is_points(self) -> bool:
        """Whether each range is one term, whose entries are in the order of rids."""
        at, is_term = self.term_at, self.model.is_term
        if at is None:
            return False
        return all(is_term(start[at:]) and end == after(start) for start, end in self.ranges)


class Unplaced(msgspec.Struct, frozen=True):
    """What is wanted at a path, where only its index can say which ranges that are: the kind's
    `lookup` makes one of it."""

    path: Path
    kind: bytes
    wanted: Any
    exact: bool = False


class Both(msgspec.Struct, frozen=True):
    """Items that every part finds; any one part will do. When it is exact, all parts together find
    no others.
    """

    parts: tuple[Access, ...]
    exact: bool = False


class Either(msgspec.Struct, frozen=True):
    """Items that some part finds; all parts are needed."""

    parts: tuple[Access, ...]

    @property
    def exact(self) -> bool:
        return all(part.exact for part in self.parts)


Access: TypeAlias = Lookup | Unplaced | Both | Either


def path_at(expr: nodes.Expr, places: Places) -> Path | None:
    """The indexed path that an expression speaks of, if it is one."""
    names: list[str] = []
    while isinstance(expr, nodes.Member):
        names.append(expr.name)
        expr = expr.base
    if not isinstance(expr, nodes.Identifier) or expr.name not in places:
        return None
    return (*places[expr.name], *reversed(names))
