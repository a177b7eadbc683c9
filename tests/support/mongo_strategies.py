"""Documents, filters, updates and pipelines for hypothesis: few names and few values, so that they
meet each other."""

from __future__ import annotations

from typing import Any

from bson import Decimal128, Int64, ObjectId, Regex
from bson.datetime_ms import DatetimeMS
from hypothesis import strategies as st

Document = dict[str, Any]

PATHS = ("a", "b", "a.b", "a.c", "b.a", "a.0", "a.0.b")
NUMBERS: tuple[Any, ...] = (
    0,
    1,
    2,
    -1,
    1.0,
    1.5,
    -2.5,
    Int64(1),
    Int64(2**40),
    Decimal128("1"),
    Decimal128("2.5"),
    2**31 - 1,
)
SCALARS: tuple[Any, ...] = (
    *NUMBERS,
    None,
    True,
    False,
    "",
    "a",
    "ab",
    "b",
    "é",
    ObjectId("65f000000000000000000001"),
    ObjectId("65f000000000000000000002"),
    DatetimeMS(1_700_000_000_000),
    DatetimeMS(-5),
)

# Deferred ones are named in reports, not written out.
_sampled_numbers = st.sampled_from(NUMBERS)
_sampled_scalars = st.sampled_from(SCALARS)
numbers: st.SearchStrategy[Any] = st.deferred(lambda: _sampled_numbers)
scalars: st.SearchStrategy[Any] = st.deferred(lambda: _sampled_scalars)
inner = st.dictionaries(st.sampled_from(["a", "b", "c"]), scalars, max_size=2)
arrays = st.lists(scalars | inner | st.lists(scalars, max_size=2), max_size=3)
values: st.SearchStrategy[Any] = st.deferred(lambda: scalars | scalars | inner | arrays)
paths = st.sampled_from(PATHS)
names = st.sampled_from(["a", "b", "c"])


@st.composite
def documents(draw: st.DrawFn, most: int = 6) -> list[Document]:
    made = draw(st.lists(st.dictionaries(names, values, max_size=3), min_size=1, max_size=most))
    keys = st.sampled_from(["x", "y", 1])
    return [{"_id": at, "k": draw(keys), **one} for at, one in enumerate(made)]


# --- filters --------------------------------------------------------------------------------------

_COMPARED = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")
_TYPES = ("double", "string", "object", "array", "bool", "null", "int", "long", "number", "date")


def _one(name: str, argument: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return st.builds(lambda value: {name: value}, argument)


_plain_conditions = st.one_of(
    *(_one(name, scalars) for name in _COMPARED),
    *(_one(name, values) for name in ("$eq", "$ne")),
    _one("$in", st.lists(values, max_size=3)),
    _one("$nin", st.lists(values, max_size=3)),
    _one("$exists", st.booleans()),
    _one("$type", st.sampled_from(_TYPES)),
    _one("$size", st.integers(0, 2)),
    _one("$mod", st.sampled_from([[2, 0], [2, 1], [3, -1]])),
    _one("$all", st.lists(scalars, max_size=2)),
    st.builds(lambda low, high: {"$gte": low, "$lt": high}, numbers, numbers),
)
plain_conditions: st.SearchStrategy[Any] = st.deferred(lambda: _plain_conditions)
element = st.one_of(
    _one("$elemMatch", plain_conditions),
    _one("$elemMatch", st.dictionaries(names, scalars | plain_conditions, min_size=1, max_size=2)),
)
conditions: st.SearchStrategy[Any] = st.deferred(
    lambda: st.one_of(plain_conditions, plain_conditions, element, _one("$not", plain_conditions))
)
patterns = st.sampled_from([Regex("^a"), Regex("B", 2), Regex("b$")])
leaves = st.dictionaries(paths, values | conditions | patterns, min_size=1, max_size=2)
_filters = st.recursive(
    leaves,
    lambda below: st.one_of(
        *(_one(name, st.lists(below, min_size=1, max_size=2)) for name in ("$and", "$or", "$nor"))
    ),
    max_leaves=3,
)
filters: st.SearchStrategy[Document] = st.deferred(lambda: _filters)
keyed_filters = st.builds(
    lambda key, rest: {"k": key, **rest}, st.sampled_from(["x", "y", 1, 1.0]), filters
)

# --- sorts and updates ----------------------------------------------------------------------------

sorts = st.dictionaries(
    st.sampled_from(["a", "b", "a.b", "k"]), st.sampled_from([1, -1]), min_size=1, max_size=2
)

_push = st.builds(
    lambda each, more: {"$each": each, **more},
    st.lists(scalars, max_size=3),
    st.fixed_dictionaries(
        {},
        optional={
            "$position": st.integers(-3, 3),
            "$slice": st.integers(-3, 3),
            "$sort": st.sampled_from([1, -1]),
        },
    ),
)
_places = st.sampled_from(["a", "b", "c", "a.b", "a.c", "a.0", "a.1", "b.a", "b.2"])


def _for(name: str, argument: st.SearchStrategy[Any], most: int = 2) -> Any:
    return _one(name, st.dictionaries(_places, argument, min_size=1, max_size=most))


update_parts = st.one_of(
    _for("$set", values),
    _for("$unset", st.just("")),
    _for("$inc", numbers),
    _for("$mul", numbers),
    _for("$min", scalars),
    _for("$max", scalars),
    _for("$rename", st.sampled_from(["n", "m"]), 1),
    _for("$push", scalars | _push),
    _for("$addToSet", scalars | _one("$each", st.lists(scalars, max_size=3))),
    _for("$pop", st.sampled_from([1, -1])),
    _for("$pull", scalars),
    _for("$pull", st.dictionaries(st.sampled_from(["a", "b"]), scalars, min_size=1, max_size=1)),
    _for("$pullAll", st.lists(scalars, max_size=2)),
)


@st.composite
def updates(draw: st.DrawFn) -> Document:
    made: Document = {}
    for part in draw(st.lists(update_parts, min_size=1, max_size=2)):
        made |= part
    return made


# --- pipelines ------------------------------------------------------------------------------------

_fields = st.sampled_from(["$a", "$b", "$c", "$k", "$a.b", "$_id"])
_operands = _fields | st.sampled_from([1, 2.5, None, "$missing"]) | _one("$literal", scalars)
_expressions = st.recursive(
    _operands,
    lambda below: st.one_of(
        *(
            _one(name, st.lists(below, min_size=2, max_size=2))
            for name in ("$eq", "$ne", "$gt", "$lte", "$and", "$or", "$ifNull")
        ),
        _one("$not", st.lists(below, min_size=1, max_size=1)),
        _one("$cond", st.lists(below, min_size=3, max_size=3)),
        _one("$isArray", below.filter(lambda one: not isinstance(one, list))),
        _one("$type", below),
    ),
    max_leaves=4,
)
expressions: st.SearchStrategy[Any] = st.deferred(lambda: _expressions)
_arithmetic = st.one_of(
    _one("$add", st.lists(_operands, min_size=1, max_size=2)),
    _one("$multiply", st.lists(_operands, min_size=1, max_size=2)),
    _one("$concat", st.lists(_operands, min_size=1, max_size=2)),
    _one("$size", _fields),
)
_accumulators = st.one_of(
    *(_one(name, _fields) for name in ("$sum", "$avg", "$min", "$max", "$push", "$addToSet")),
    _one("$sum", st.just(1)),
)
_groups = st.builds(
    lambda key, fields: {"_id": key, **fields},
    st.one_of(st.none(), _fields, st.builds(lambda one: {"x": one}, _fields)),
    st.dictionaries(st.sampled_from(["n", "m"]), _accumulators, max_size=2),
)
_all_stages = st.one_of(
    _one("$match", filters),
    _one("$sort", st.builds(lambda spec: {**spec, "_id": 1}, sorts)),
    _one("$limit", st.integers(1, 4)),
    _one("$skip", st.integers(0, 2)),
    _one("$project", st.dictionaries(st.sampled_from(["a", "b.a", "k", "c"]), st.just(1),
                                     min_size=1, max_size=2)),
    _one("$project", st.dictionaries(st.sampled_from(["a.b", "b", "_id"]), st.just(0),
                                     min_size=1, max_size=2)),
    _one("$addFields", st.dictionaries(st.sampled_from(["n", "a.z", "b"]),
                                       expressions | _arithmetic, min_size=1, max_size=2)),
    _one("$unset", st.sampled_from(["a", "a.b", "b"])),
    _one("$unwind", st.sampled_from(["$a", "$b", "$a.b"])),
    _one("$unwind", st.just({"path": "$a", "preserveNullAndEmptyArrays": True,
                             "includeArrayIndex": "at"})),
)  # fmt: skip
_stages: st.SearchStrategy[Any] = st.deferred(lambda: _all_stages)
_last_stages = st.one_of(
    _one("$group", _groups),
    _one("$count", st.just("n")),
    _one("$sortByCount", _fields),
    _one("$lookup", st.builds(
        lambda local, foreign: {"from": "other", "localField": local, "foreignField": foreign,
                                "as": "found"},
        st.sampled_from(["a", "b", "a.b", "_id"]), st.sampled_from(["a", "b", "a.b", "_id"]),
    )),
    _one("$bucket", st.builds(
        lambda by: {"groupBy": by, "boundaries": [0, 1, 2], "default": "other"}, _fields,
    )),
    _one("$facet", st.builds(lambda one, other: {"x": [one], "y": [other]}, _stages, _stages)),
)  # fmt: skip
pipelines = st.builds(
    lambda first, last: first + last,
    st.lists(_stages, max_size=3),
    st.lists(_last_stages, max_size=1),
)
