"""What of a query an index can answer: conditions that find at least every document that matches.

    {age: {$gt: 20}, tags: "x"}  →  age > 20 at /age or /age/[]
                                     AND tags = "x" at /tags or /tags/[]

Only paths that have an index count; null and missing are never asked of one, because documents
without a field have no entry. The exact filter stays with the reader.
"""

from __future__ import annotations

from typing import Any, Final

from bson.datetime_ms import DatetimeMS
from bson.int64 import Int64
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.objectid import ObjectId
from bson.regex import Regex

from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.match.compiled import is_condition
from armillary.encoding.bson.stored import stored_name, to_stored
from armillary.encoding.bson.values import Document, is_nan, is_number
from armillary.errors import BadInput
from armillary.query.expr import nodes
from armillary.store.index.paths import ARRAY

OPERATORS: Final = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
MEMBERS_MAX: Final = 64  # of an `$in` that is asked of an index
VARIANTS_MAX: Final = 4
USUAL: Final = (str, bool, int, Int64, float, ObjectId, DatetimeMS)


def indexed_paths(collection: Collection) -> frozenset[str]:
    found = {"_id"}
    if collection.shard is not None:
        found.add(".".join(collection.shard))
    for index in collection.indexes:
        found |= {path for path, kind in index["key"].items() if not isinstance(kind, str)}
    return frozenset(found - {"_ts"})


def condition_of(collection: Collection, query: Document) -> nodes.Expr | None:
    """None: no index helps, everything has to be read."""
    known = indexed_paths(collection)
    terms = _terms(query, known)
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else nodes.Logical("AND", tuple(terms))


def exact_condition(collection: Collection, query: Document) -> nodes.Expr | None:
    """The whole query, if entries of an index can say exactly which documents match: equality,
    ranges and `$in` over values of the usual types. None: they can't."""
    known = indexed_paths(collection)
    terms: list[nodes.Expr] = []
    for name, value in query.items():
        if name[:1] == "$" or not _has_index(name, known):
            return None
        is_shard = collection.shard is not None and name == ".".join(collection.shard)
        asked = value if is_condition(value) else {"$eq": value}
        for operator, argument in asked.items():
            term = _exactly(name, operator, argument, is_shard=is_shard)
            if term is None:
                return None
            terms.append(term)
    return terms[0] if len(terms) == 1 else nodes.Logical("AND", tuple(terms))


def _exactly(name: str, operator: str, argument: Any, *, is_shard: bool) -> nodes.Expr | None:
    if operator == "$in":
        if not isinstance(argument, list) or not 0 < len(argument) <= MEMBERS_MAX:
            return None
        parts = [_exactly(name, "$eq", one, is_shard=is_shard) for one in argument]
        known = tuple(one for one in parts if one is not None)
        if len(known) < len(parts):
            return None
        return known[0] if len(known) == 1 else nodes.Logical("OR", known)
    if operator not in OPERATORS or type(argument) not in USUAL or is_nan(argument):
        return None
    variants = [tuple(_parts(name))] if is_shard else _variants(name)  # a shard key is no array
    if len(variants) > VARIANTS_MAX:
        return None
    stored = to_stored(argument)
    made: list[nodes.Expr] = []
    for path in variants:
        term: nodes.Expr = nodes.AtPath(path, OPERATORS[operator], stored)  # type: ignore[arg-type]
        if operator in ("$lt", "$lte") and is_number(argument):  # NaN is less than no number
            least = nodes.AtPath(path, ">=", to_stored(float("-inf")))
            term = nodes.Logical("AND", (least, term))
        made.append(term)
    return made[0] if len(made) == 1 else nodes.Logical("OR", tuple(made))


def _parts(name: str) -> list[str]:
    first, *rest = name.split(".")
    return [stored_name(first), *rest]


def _variants(name: str) -> list[tuple[Any, ...]]:
    """The path of a field, and the same through arrays on the way."""
    variants: list[tuple[Any, ...]] = [()]
    for part in _parts(name):
        variants = [(*one, part, *more) for one in variants for more in ((), (ARRAY,))]
    return variants


def _terms(query: Document, known: frozenset[str]) -> list[nodes.Expr]:
    terms: list[nodes.Expr] = []
    for name, value in query.items():
        if name == "$and" and isinstance(value, list):
            for one in value:
                terms += _terms(one, known)
        elif name == "$or" and isinstance(value, list) and value:
            parts = [_terms(one, known) for one in value]
            if all(parts):  # each alternative is found by an index
                joined = [p[0] if len(p) == 1 else nodes.Logical("AND", tuple(p)) for p in parts]
                terms.append(joined[0] if len(joined) == 1 else nodes.Logical("OR", tuple(joined)))
        elif name[:1] != "$" and _has_index(name, known):
            terms += _of_field(name, value)
    return terms


def _has_index(name: str, known: frozenset[str]) -> bool:
    if name in known or "$**" in known:
        return not any(part.isdigit() for part in name.split("."))
    return any(name.startswith(one[:-3]) for one in known if one.endswith(".$**"))


def _of_field(name: str, value: Any) -> list[nodes.Expr]:
    if not is_condition(value):
        return _compared(name, "=", value)
    terms: list[nodes.Expr] = []
    bounds = [(OPERATORS[one], value[one]) for one in value if one in OPERATORS]
    if "." not in name and len(bounds) > 1:
        # Both bounds on one index: a value at one name is an array or is none.
        sides = [_compared(name, *one) for one in bounds]
        if all(sides):
            alone = nodes.Logical("AND", tuple(_alternatives(one)[0] for one in sides))
            inside = nodes.Logical("AND", tuple(_alternatives(one)[1] for one in sides))
            terms.append(nodes.Logical("OR", (alone, inside)))
            bounds = []
    for operator, argument in bounds:
        terms += _compared(name, operator, argument)
    for operator, argument in value.items():
        if operator in OPERATORS:
            continue
        if operator == "$in" and isinstance(argument, list):
            if 0 < len(argument) <= MEMBERS_MAX:
                members = [_compared(name, "=", one) for one in argument]
                if all(members):
                    flat = [one for part in members for one in part]
                    terms.append(flat[0] if len(flat) == 1 else nodes.Logical("OR", tuple(flat)))
        elif operator == "$elemMatch" and isinstance(argument, dict) and is_condition(argument):
            terms += _of_field(name, argument)
    return terms


def _alternatives(terms: list[nodes.Expr]) -> tuple[nodes.Expr, ...]:
    (term,) = terms
    assert isinstance(term, nodes.Logical)
    return term.terms


def _compared(name: str, operator: str, value: Any) -> list[nodes.Expr]:
    """Some value at the path, through any arrays on the way."""
    if value is None or isinstance(value, dict | list | Regex | MinKey | MaxKey) or is_nan(value):
        return []
    try:
        stored = to_stored(value)
    except BadInput:
        return []
    variants = _variants(name)
    if len(variants) > VARIANTS_MAX:
        return []
    made = tuple(nodes.AtPath(one, operator, stored, hint=True) for one in variants)  # type: ignore[arg-type]
    return [nodes.Logical("OR", made)]
