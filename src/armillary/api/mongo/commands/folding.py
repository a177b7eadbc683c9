"""The beginning of a pipeline that an index answers: counts of what matches, and of each value of a
field. What drivers send for `count_documents` is one of them.

    [{$match: {city: "x"}}, {$group: {_id: 1, n: {$sum: 1}}}, …]    entries of `city`
    [{$match: …}, {$count: "n"}, …]                                 the same
    [{$group: {_id: "$city", n: {$sum: 1}}}, …]                     runs of equal entries
"""

from __future__ import annotations

from typing import Any, Final

from bson.int64 import Int64

from armillary.api.mongo.call import Call
from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.data.entries import counted, values_of
from armillary.encoding.bson.values import INT32_MAX, Document, is_text

ONES: Final[tuple[Document, ...]] = ({"$sum": 1}, {"$count": {}})
CONSTANTS: Final = (int, bool, str, type(None))


def folded(call: Call, pipeline: list[Document]) -> tuple[list[Document], list[Document]] | None:
    """The rows behind the stages that an index answers, and the stages left; None: there are
    none."""
    query, rest = {}, pipeline
    if rest and isinstance(rest[0].get("$match"), dict):
        query, rest = rest[0]["$match"], rest[1:]
    if not rest or not rest[0].keys() & {"$group", "$count"}:
        return None
    name, names = _counting(rest[0])
    collection = call.hinted_collection() if names else None
    if collection is None:
        return None
    rows: list[Document] | None
    if is_text(name) and name[:1] == "$":
        rows = None if query else _by_field(call, collection, name[1:], names)
    else:
        rows = _all(counted(call, collection, query), name, names)
    if rows is None:
        return None
    if "$count" in rest[0]:
        rows = [{key: row[key] for key in names} for row in rows]
    return rows, rest[1:]


def _counting(stage: Document) -> tuple[Any, list[str]]:
    """What a stage groups by, and the names of its counts; no names: it does something else."""
    if "$count" in stage:
        return None, [stage["$count"]]
    group = stage["$group"]
    if not isinstance(group, dict) or type(group.get("_id", [])) not in CONSTANTS:
        return None, []
    counts = [name for name, value in group.items() if name != "_id"]
    if any(group[name] not in ONES or type(_one(group[name])) is bool for name in counts):
        return None, []
    return group["_id"], counts


def _one(accumulator: Document) -> Any:
    return next(iter(accumulator.values()))


def _number(count: int) -> int:
    return count if count <= INT32_MAX else Int64(count)


def _all(count: int | None, name: Any, names: list[str]) -> list[Document] | None:
    if count is None:
        return None
    return [{"_id": name, **dict.fromkeys(names, _number(count))}] if count else []


def _by_field(
    call: Call, collection: Collection, field: str, names: list[str]
) -> list[Document] | None:
    found = values_of(call, collection, field)
    total = None if found is None else counted(call, collection, {})
    if found is None or total is None:
        return None
    counts = [(one.value, one.documents) for one in found if one.value is not None]
    without = total - sum(count for _, count in counts)  # missing and null are one group
    if without:
        counts.insert(0, (None, without))
    return [{"_id": value, **dict.fromkeys(names, _number(n))} for value, n in counts]
