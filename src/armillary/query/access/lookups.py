"""What is asked of indexes, as values: one range index, or several together.

A lookup finds every item that can pass (never fewer). When it is `exact` it finds no others, and
counting its entries is counting the items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


# --- indexes of several paths, and of an order ----------------------------------------------------


class JointLookup(msgspec.Struct, frozen=True):
    """What several lookups ask for, as ranges of whole keys of one index; every item has one entry
    in it."""

    name: str
    paths: frozenset[Path]
    ranges: Ranges
    exact: bool
    """Whether it finds no other items than those that the lookups of its paths find."""
    is_points: bool
    """Whether each range has the entries of one key, which are in the order of rids."""


def single_lookups(accesses: Iterable[Access]) -> dict[Path, Lookup]:
    """The lookups that a column of an index of several paths can stand for, by their paths."""
    return {
        each.path: each
        for each in accesses
        if isinstance(each, Lookup) and each.kind == layout.IX and ARRAY not in each.path
    }


class OrderIndex(msgspec.Struct, frozen=True):
    """Entries in the order of some keys. `descending`: which columns are stored complemented."""

    prefix: bytes
    """Of all entries that may be wanted: the index, and values that the filter fixes."""
    low: bytes
    high: bytes
    """Bounds of the entries that the filter lets through."""
    descending: tuple[bool, ...]
    cut: int
    model: ValueModel
    is_reverse: bool
    name: str
    path: Path | None = None
    """Of a single index, in which items without the path are missing; None when the filter wants
    none of these."""
    served: frozenset[Path] = frozenset()
    """Paths whose lookups find exactly what is between the bounds."""


def served(paths: Iterable[Path], lookups: Mapping[Path, Lookup]) -> frozenset[Path]:
    """Those whose lookups are no wider between bounds than they are."""
    found = (path for path in paths if path in lookups and lookups[path].exact)
    return frozenset(path for path in found if len(lookups[path].ranges) == 1)
