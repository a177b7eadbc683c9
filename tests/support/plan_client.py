"""A client that follows a query plan, as small as can be: what SDKs do with `queryInfo`.

    source (merged by order, or one range after the other) → aggregate → distinct → group by →
    offset → limit → top → count of what is distinct              (nosql-query 9.2)

Written from the reference, not from the planner: the two check each other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from tests.property.naive_values import compare

from armillary.values import UNDEFINED, identity

FILTER = "{documentdb-formattableorderbyquery-filter}"
#: Rows of a text on one range, given by its bounds in hex.
Ask = Callable[[str, str, str], list[Any]]


def follow(plan: dict[str, Any], text: str, ranges: list[tuple[str, str]], ask: Ask) -> list[Any]:
    info = plan["queryInfo"]
    sent = info["rewrittenQuery"].replace(FILTER, "true") or text
    asked = [each for each in ranges if any(_touches(one, *each) for one in plan["queryRanges"])]
    rows = [row for low, high in asked for row in ask(sent, low, high)]
    if info["orderBy"]:
        rows = [row["payload"] for row in _merged(rows, info["orderBy"])]
    if info["groupByAliases"] or info["groupByExpressions"]:
        rows = _grouped(info, rows)
    elif info["aggregates"]:
        rows = [_folded(info["aggregates"][0], [row[0] for row in rows])]
    rows = [row for row in rows if row is not UNDEFINED]
    if info["distinctType"] != "None":
        rows = list({identity(row): row for row in rows}.values())
    rows = rows[info["offset"] or 0 :]
    for most in (info["limit"], info["top"]):
        rows = rows if most is None else rows[:most]
    if info["dCountInfo"] is not None:
        alias = info["dCountInfo"]["dCountAlias"]
        rows = [{alias: len(rows)} if alias else len(rows)]
    return rows


def _touches(asked: dict[str, Any], low: str, high: str) -> bool:
    """Whether the range [low, high) has something of a range of the plan."""
    ends_after = asked["max"] >= low if asked["isMaxInclusive"] else asked["max"] > low
    return bool(asked["min"] < high and ends_after)


def _merged(rows: list[Any], directions: list[str]) -> list[Any]:
    def order(left: Any, right: Any) -> int:
        pairs = zip(left["orderByItems"], right["orderByItems"], directions, strict=True)
        for one, other, direction in pairs:
            found = compare(one.get("item", UNDEFINED), other.get("item", UNDEFINED))
            if found:
                return -found if direction == "Descending" else found
        return 0

    return sorted(rows, key=cmp_to_key(order))


def _grouped(info: dict[str, Any], rows: list[Any]) -> list[Any]:
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        key = identity(row.get("groupByItems", []))
        # A payload that is undefined is not in the row: the group has no value.
        groups.setdefault(key, []).append(row.get("payload", UNDEFINED))
    if info["groupByAliases"]:
        return [_named(info["groupByAliasToAggregateType"], each) for each in groups.values()]
    if info["aggregates"]:
        return [_folded(info["aggregates"][0], [p[0] for p in each]) for each in groups.values()]
    return [payloads[0] for payloads in groups.values()]


def _named(kinds: dict[str, str | None], payloads: list[Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for alias, kind in kinds.items():
        parts = [payload.get(alias, UNDEFINED) for payload in payloads]
        value = parts[0] if kind is None else _folded(kind, parts)
        if value is not UNDEFINED:
            row[alias] = value
    return row


def _folded(kind: str, parts: list[Any]) -> Any:
    """Partial results as partitions give them, `{"item": …}`; an undefined one lacks its item."""
    items = [part.get("item", UNDEFINED) for part in parts]
    if kind in ("Min", "Max"):
        full = [part for part in parts if part["item2"]["count"]]
        found = [part.get("item", UNDEFINED) for part in full]
        if not found or UNDEFINED in found:
            return UNDEFINED
        best = sorted(found, key=cmp_to_key(compare))
        return best[0] if kind == "Min" else best[-1]
    if kind == "Average":
        sums = [part.get("sum", UNDEFINED) for part in items]
        count = sum(part["count"] for part in items)
        return UNDEFINED if UNDEFINED in sums or not count else sum(sums) / count
    if UNDEFINED in items:
        return UNDEFINED
    if kind == "MakeList":
        return [value for item in items for value in item]
    if kind == "MakeSet":
        return list({identity(value): value for item in items for value in item}.values())
    return sum(items)
