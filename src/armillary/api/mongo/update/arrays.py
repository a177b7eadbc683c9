"""Update operators on arrays."""

from __future__ import annotations

from typing import Any, Final

from bson.regex import Regex

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.arrays import sort_by
from armillary.api.mongo.expressions.values import whole
from armillary.api.mongo.language import MISSING
from armillary.api.mongo.match.compiled import compile_filter, element_test, is_condition
from armillary.api.mongo.shown import shown
from armillary.api.mongo.update.operators import Context, Operator, document_id
from armillary.api.mongo.update.paths import Path, check_viable, get_at, set_at
from armillary.encoding.bson.values import is_number, number_of, sort_key, type_name

PUSH_OPTIONS: Final = frozenset({"$each", "$slice", "$sort", "$position"})


def _array_of(document: dict[str, Any], path: Path, name: str) -> list[Any]:
    value = get_at(document, path)
    if value is MISSING:
        return []
    if type(value) is not list:
        if name == "$push":
            raise MongoError(
                2,
                f"The field '{'.'.join(path)}' must be an array but is of type {type_name(value)} "
                f"in document {document_id(document)}",
            )
        if name == "$addToSet":
            raise MongoError(
                2,
                "Cannot apply $addToSet to non-array field. Field named "
                f"'{path[-1]}' has non-array "
                f"type {type_name(value)}",
            )
        if name == "$pop":
            raise MongoError(
                14,
                f"Path '{'.'.join(path)}' contains an element of "
                f"non-array type '{type_name(value)}'",
            )
        raise MongoError(2, f"Cannot apply {name} to a non-array value")
    return value


def _push(document: dict[str, Any], path: Path, argument: Any, context: Context) -> None:
    items = list(_array_of(document, path, "$push"))
    if not (isinstance(argument, dict) and "$each" in argument):
        set_at(document, path, [*items, argument])
        return
    unknown = [one for one in argument if one not in PUSH_OPTIONS]
    if unknown:
        raise MongoError(2, f"Unrecognized clause in $push: {unknown[0]}")
    each = argument["$each"]
    if type(each) is not list:
        raise MongoError(
            2,
            "The argument to $each in $push must be an array but it "
            f"was of type: {type_name(each)}",
        )
    place = len(items)
    if "$position" in argument:
        error = MongoError(
            2,
            "The value for $position must be an integer value, not of type: "
            f"{type_name(argument['$position'])}",
        )
        place = whole(argument["$position"], error)
        if place < 0:
            place = max(0, len(items) + place)
    items[place:place] = each
    if "$sort" in argument:
        items = _sorted(items, argument["$sort"])
    if "$slice" in argument:
        error = MongoError(
            2,
            "The value for $slice must be an integer value but was given type: "
            f"{type_name(argument['$slice'])}",
        )
        count = whole(argument["$slice"], error)
        items = items[:count] if count >= 0 else items[count:]
    set_at(document, path, items)


def _sorted(items: list[Any], order: Any) -> list[Any]:
    directions = list(order.values()) if isinstance(order, dict) else [order]
    if not directions or not all(
        is_number(one) and number_of(one) in (1, -1) for one in directions
    ):
        raise MongoError(2, "The $sort element value must be either 1 or -1")
    plain = (
        {name: int(number_of(one)) for name, one in order.items()}
        if isinstance(order, dict)
        else int(number_of(order))
    )
    found: list[Any] = sort_by(plain)(items)
    return found


def _push_all(document: dict[str, Any], path: Path, argument: Any, context: Context) -> None:
    _push(document, path, {"$each": argument}, context)


def _add_to_set(document: dict[str, Any], path: Path, argument: Any, context: Context) -> None:
    items = list(_array_of(document, path, "$addToSet"))
    each = [argument]
    if isinstance(argument, dict) and next(iter(argument), "") == "$each":
        if set(argument) != {"$each"}:
            extra = next(one for one in argument if one != "$each")
            raise MongoError(2, f"Found unexpected fields after $each in $addToSet: {extra}")
        each = argument["$each"]
        if type(each) is not list:
            raise MongoError(
                14,
                "The argument to $each in $addToSet must be an array but it was of type "
                f"{type_name(each)}",
            )
    known = {sort_key(one) for one in items}
    for one in each:
        key = sort_key(one)
        if key not in known:
            known.add(key)
            items.append(one)
    set_at(document, path, items)


def _pop(document: dict[str, Any], path: Path, argument: Any, context: Context) -> None:
    if not is_number(argument) or number_of(argument) not in (1, -1):
        raise MongoError(9, f"$pop expects 1 or -1, found: {shown(argument)}")
    if get_at(document, path) is MISSING:
        check_viable(document, path)
        return
    items = _array_of(document, path, "$pop")
    set_at(document, path, items[:-1] if number_of(argument) == 1 else items[1:])


def _pull(document: dict[str, Any], path: Path, argument: Any, context: Context) -> None:
    if get_at(document, path) is MISSING:
        check_viable(document, path)
        return
    items = _array_of(document, path, "$pull")
    language = context.language
    if is_condition(argument):
        test = element_test(argument, language)
    elif isinstance(argument, Regex):
        inner = compile_filter({"": argument}, language)
        test = lambda one: inner({"": one})  # noqa: E731
    elif isinstance(argument, dict):
        made = compile_filter(argument, language)
        test = lambda one: type(one) is dict and made(one)  # noqa: E731
    else:
        key = sort_key(argument)
        test = lambda one: sort_key(one) == key  # noqa: E731
    set_at(document, path, [one for one in items if not test(one)])


def _pull_all(document: dict[str, Any], path: Path, argument: Any, context: Context) -> None:
    if type(argument) is not list:
        raise MongoError(
            2, f"$pullAll requires an array argument but was given a {type_name(argument)}"
        )
    if get_at(document, path) is MISSING:
        check_viable(document, path)
        return
    keys = {sort_key(one) for one in argument}
    items = _array_of(document, path, "$pullAll")
    set_at(document, path, [one for one in items if sort_key(one) not in keys])


ARRAYS: Final[dict[str, Operator]] = {
    "$push": _push,
    "$pushAll": _push_all,
    "$addToSet": _add_to_set,
    "$pop": _pop,
    "$pull": _pull,
    "$pullAll": _pull_all,
}
