"""Composite indexes for filters: what several lookups ask for, as ranges of one composite index.

    composite /tenant ASC, /at DESC      c.tenant = "a" AND c.at > 3   →   keys from a,9… to a,3

The leading columns have to be compared for equality (or with a list), one more may be compared by
order; columns behind it say nothing (nosql-query 7.2). Lookups speak of terms in an index of one
path; a composite index cuts strings shorter and complements descending columns, so their bounds are
made again. Pure functions: whether the index may be used, and is worth it, is decided in
`index_read.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from armillary.encoding.models import ValueModel
from armillary.encoding.terms import descending
from armillary.query.access.lookups import Access, Lookup
from armillary.query.access.term_ranges import Range, Ranges
from armillary.store.index.composite import Column, Composite
from armillary.store.index.paths import ARRAY, Path, path_text
from armillary.store.rows import layout
from armillary.store.rows.layout import after

RANGES_MAX: Final = 256  # lists of values multiply
LOOKUPS_LEAST: Final = 2  # with fewer, the index of the one path is as good


@dataclass(frozen=True, slots=True)
class CompositeLookup:
    """Ranges of whole keys; every item has one entry in the index."""

    name: str
    paths: frozenset[Path]
    ranges: Ranges
    exact: bool
    """Whether it finds no other items than those that the lookups of its paths find."""
    is_points: bool
    """Whether each range has the entries of one key, which are in the order of rids."""


def single_lookups(accesses: Iterable[Access]) -> dict[Path, Lookup]:
    """The lookups that a column of a composite index can stand for, by their paths."""
    return {
        each.path: each
        for each in accesses
        if isinstance(each, Lookup) and each.kind == layout.IX and ARRAY not in each.path
    }


def composite_lookups(
    composites: Iterable[Composite], lookups: Mapping[Path, Lookup]
) -> list[CompositeLookup]:
    found = (_lookup(composite, lookups) for composite in composites)
    return [each for each in found if each is not None]


def _lookup(composite: Composite, lookups: Mapping[Path, Lookup]) -> CompositeLookup | None:
    if composite.array is not None:
        return None
    beginnings = [composite.prefix]
    ranges: list[Range] = []
    used: list[Lookup] = []
    exact = True
    for column in composite.columns:
        lookup = None if column.place == "nowhere" else lookups.get(column.names)
        if lookup is None or len(beginnings) * len(lookup.ranges) > RANGES_MAX:
            break
        terms = points(lookup, column, composite.cut)
        used.append(lookup)
        if terms is None:
            bounds = [
                column_range(each, column, composite.cut, lookup.model) for each in lookup.ranges
            ]
            exact &= lookup.exact and not any(is_cut for _, is_cut in bounds)
            ranges = [(at + low, at + high) for at in beginnings for (low, high), _ in bounds]
            break
        exact &= lookup.exact and all(is_whole for _, is_whole in terms)
        beginnings = [at + part for at in beginnings for part, _ in terms]
    if len(used) < LOOKUPS_LEAST:
        return None
    is_points = not ranges and len(used) == len(composite.columns)
    return CompositeLookup(
        composite_name(composite),
        frozenset(lookup.path for lookup in used),
        tuple(sorted(ranges or [(each, after(each)) for each in beginnings])),
        exact,
        is_points,
    )


def points(lookup: Lookup, column: Column, cut: int) -> list[tuple[bytes, bool]] | None:
    """The terms of a column for each value of a lookup, and whether each stands for that value
    alone. None when the lookup is not about single values, or does not know them.
    """
    if not lookup.is_points:
        return None
    terms: list[tuple[bytes, bool]] = []
    for found, _ in lookup.ranges:
        again = lookup.model.recut(found, cut)
        if again is None:
            return None
        part, is_whole = again
        terms.append((descending(part) if column.descending else part, is_whole))
    return terms


def column_range(found: Range, column: Column, cut: int, model: ValueModel) -> tuple[Range, bool]:
    """A range of terms as one of a column, and whether it had to be made wider."""
    start, end = found
    low, high = start[: model.shared_bytes(start, cut)], end[: model.shared_bytes(end, cut)]
    is_cut = low != start or high != end
    if high != end:
        high = after(high)
    if column.descending:
        # What is at the end, and all that begins with it, is outside; what begins with the start
        # is inside.
        low, high = after(descending(high)), after(descending(low))
    return (low, high), is_cut


def composite_name(composite: Composite) -> str:
    """As the metrics tell it: `/a ASC,/b DESC`."""
    return ",".join(
        f"{path_text(column.names)} {'DESC' if column.descending else 'ASC'}"
        for column in composite.columns
    )
