"""What a picture of a container shows, read from its heat report.

A split leaves its parent's id with its children, so the earlier ranges can be drawn from the
present ones: an ancestor lay over all that descend from it. After a merge the border between two
parents is no longer known; both are then drawn over the whole of their heir.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Arc:
    """One physical partition. Places are from 0 to 1."""

    id: str
    start: float
    end: float
    bytes: int
    items: int
    ru_per_s: float | None
    used_ru: float
    normalised: float
    """Per cent."""
    refused: int
    """Requests answered 429 in the current minute and the one before."""
    status: str
    parents: tuple[str, ...]
    node: str = ""
    """The database server that holds it; empty: the process that answers."""


@dataclass(frozen=True, slots=True)
class HotKey:
    label: str
    at: float
    ru_share: float
    bytes: int
    partition: str


@dataclass(frozen=True, slots=True)
class Piece:
    id: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Move:
    kind: str
    parents: tuple[str, ...]
    children: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Ring:
    database: str
    container: str
    partition_key: tuple[str, ...]
    throughput: int | None
    partition_bytes: int
    logical_bytes: int
    arcs: tuple[Arc, ...]
    moves: tuple[Move, ...] = ()
    keys: tuple[HotKey, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.arcs)

    @property
    def items(self) -> int:
        return sum(one.items for one in self.arcs)

    @property
    def used_ru(self) -> float:
        return sum(one.used_ru for one in self.arcs)

    @property
    def refused(self) -> int:
        return sum(one.refused for one in self.arcs)

    @property
    def hottest(self) -> Arc:
        return max(self.arcs, key=lambda one: one.normalised)

    @property
    def skew(self) -> float | None:
        """The fullest partition against the mean. None: nothing is stored."""
        total = self.bytes
        return max(one.bytes for one in self.arcs) * len(self.arcs) / total if total else None


def read(report: Mapping[str, Any]) -> Ring:
    """From the JSON of `GET …/heat`."""
    return Ring(
        database=report["database"],
        container=report["container"],
        partition_key=tuple(report["partition_key"]),
        throughput=report["throughput"],
        partition_bytes=report["limits"]["partition_bytes"],
        logical_bytes=report["limits"]["logical_bytes"],
        arcs=tuple(map(_arc, report["partitions"])),
        moves=tuple(
            Move(
                one["kind"],
                tuple(one["parents"]),
                tuple(Piece(c["id"], c["from"], c["to"]) for c in one["children"]),
            )
            for one in report["moves"]
        ),
        keys=tuple(
            HotKey(
                key_label(one["key"]), one["at"], one["ru_share"], one["bytes"], one["partition"]
            )
            for one in report["keys"]
        ),
    )


def _arc(one: Mapping[str, Any]) -> Arc:
    return Arc(
        id=one["id"],
        start=one["from"],
        end=one["to"],
        bytes=one["bytes"],
        items=one["items"],
        ru_per_s=one["ru_per_s"],
        used_ru=one["consumed_ru_last_s"],
        normalised=one["normalized_ru"],
        refused=one["throttled_last_min"],
        status=one["status"],
        parents=tuple(one["parents"]),
        node=one.get("node", ""),
    )


def key_label(key: Any) -> str:
    """A key value in a line: texts as they are, other values as JSON, levels with a slash."""
    parts = key if isinstance(key, list) else [key]
    return " / ".join(one if isinstance(one, str) else orjson.dumps(one).decode() for one in parts)


def ancestors(arcs: Sequence[Arc], rows_max: int) -> list[list[Piece]]:
    """The ranges that there were, in rows that do not overlap: the latest in the first row. What
    finds no place in `rows_max` rows is left out; it is the oldest."""
    spans: dict[str, tuple[float, float]] = {}
    for one in arcs:
        for parent in one.parents:
            start, end = spans.get(parent, (one.start, one.end))
            spans[parent] = min(start, one.start), max(end, one.end)
    rows: list[list[Piece]] = []
    for id in sorted(spans, key=int, reverse=True):
        piece = Piece(id, *spans[id])
        # Never outside of one of its heirs: rows are generations.
        below = [n for n, row in enumerate(rows) if any(_overlap(piece, other) for other in row)]
        at = max(below, default=-1) + 1
        if at >= rows_max:
            continue
        if at == len(rows):
            rows.append([])
        rows[at].append(piece)
    return rows


def _overlap(left: Piece, right: Piece) -> bool:
    return left.start < right.end and right.start < left.end
