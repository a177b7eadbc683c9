"""Update operators on fields: each changes the value at one plain path, in place.

operator(document, path, argument, context) → None
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from bson.int64 import Int64
from bson.timestamp import Timestamp

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.values import add, multiply
from armillary.api.mongo.language import MISSING, Language
from armillary.api.mongo.shown import shown
from armillary.api.mongo.update.paths import Path, check_viable, get_at, set_at, unset_at
from armillary.encoding.bson.values import is_number, sort_key, type_name


@dataclass(frozen=True, slots=True)
class Context:
    language: Language
    inserting: bool = False
    matched: Callable[[], int | None] = lambda: None
    filters: dict[str, Callable[[Any], bool]] = field(default_factory=dict)


Operator: TypeAlias = Callable[[dict[str, Any], Path, Any, Context], None]


def document_id(document: dict[str, Any]) -> str:
    return "{_id: " + shown(document.get("_id")) + "}"


def _set(document: dict[str, Any], path: Path, argument: Any, context: Context) -> None:
    set_at(document, path, argument)


def _set_on_insert(document: dict[str, Any], path: Path, argument: Any, context: Context) -> None:
    if context.inserting:
        set_at(document, path, argument)


def _unset(document: dict[str, Any], path: Path, argument: Any, context: Context) -> None:
    unset_at(document, path)


def _arithmetic(name: str, verb: str, compute: Callable[..., Any], start: Any) -> Operator:
    def run(document: dict[str, Any], path: Path, argument: Any, context: Context) -> None:
        if not is_number(argument):
            raise MongoError(
                14,
                f"Cannot {verb} with non-numeric argument: {{{'.'.join(path)}: {shown(argument)}}}",
            )
        old = get_at(document, path)
        if old is MISSING:
            set_at(document, path, argument if start is None else multiply([argument, start]))
            return
        if not is_number(old):
            raise MongoError(
                14,
                f"Cannot apply {name} to a value of non-numeric type. {document_id(document)} has "
                f"the field '{path[-1]}' of non-numeric type {type_name(old)}",
            )
        try:
            set_at(document, path, compute([old, argument], overflow="error"))
        except MongoError as error:
            if error.code != 2:
                raise
            raise MongoError(
                2,
                f"Failed to apply {name} operations to current value ({_typed(old)}) for document "
                f"{document_id(document)}",
            ) from error

    return run


def _typed(value: Any) -> str:
    return f"(Number{type_name(value).capitalize()}){value}"


def _extreme(keep_new: Callable[[Any, Any], bool]) -> Operator:
    def run(document: dict[str, Any], path: Path, argument: Any, context: Context) -> None:
        old = get_at(document, path)
        if old is MISSING or keep_new(sort_key(argument), sort_key(old)):
            set_at(document, path, argument)

    return run


def _current_date(document: dict[str, Any], path: Path, argument: Any, context: Context) -> None:
    kind = "date"
    if isinstance(argument, dict):
        kind = argument.get("$type", "")
        if set(argument) != {"$type"} or kind not in ("date", "timestamp"):
            raise MongoError(
                2,
                "The '$type' string field is required to be 'date' or 'timestamp': "
                "{$currentDate: {field : {$type: 'date'}}}",
            )
    elif not isinstance(argument, bool):
        raise MongoError(
            2,
            f"{type_name(argument)} is not valid type for $currentDate. Please use a boolean "
            "('true') or a $type expression ({$type: 'timestamp/date'}).",
        )
    now = context.language.now
    set_at(document, path, now if kind == "date" else Timestamp(int(now) // 1000, 1))


def _bit(document: dict[str, Any], path: Path, argument: Any, context: Context) -> None:
    if not isinstance(argument, dict) or not argument:
        raise MongoError(
            2,
            "The $bit modifier is not compatible with this value. "
            "You must pass in an embedded document: {$bit: {field: "
            "{and/or/xor: #}}}",
        )
    old = get_at(document, path)
    value = 0 if old is MISSING else old
    if type(value) not in (int, Int64):
        raise MongoError(
            2,
            f"Cannot apply $bit to a value of non-integral type. {document_id(document)} has the "
            f"field {path[-1]} of non-integer type {type_name(value)}",
        )
    wide = isinstance(value, Int64)
    found = int(value)
    for name, mask in argument.items():
        if type(mask) not in (int, Int64):
            raise MongoError(
                2,
                "The $bit modifier field must be an Integer(32/64 bit); "
                f"a '{type_name(mask)}' is not supported here: {{{name}: "
                f"{shown(mask)}}}",
            )
        wide = wide or isinstance(mask, Int64)
        match name:
            case "and":
                found &= int(mask)
            case "or":
                found |= int(mask)
            case "xor":
                found ^= int(mask)
            case _:
                raise MongoError(
                    2,
                    "The $bit modifier only supports 'and', 'or', and "
                    f"'xor', not '{name}' which is an unknown operator: "
                    f"{{{name}: {shown(mask)}}}",
                )
    set_at(document, path, Int64(found) if wide else found)


def rename(document: dict[str, Any], source: Path, target: Path) -> None:
    check_viable(document, source)
    value = get_at(document, source)
    if value is MISSING:
        return
    for path in (source, target):
        for depth in range(1, len(path)):
            if type(get_at(document, path[:depth])) is list:
                which = "source" if path is source else "destination"
                raise MongoError(
                    2,
                    f"The {which} field cannot be an array element, '{'.'.join(path)}' in doc with "
                    f"_id: {shown(document.get('_id'))} has an array field "
                    f"called '{path[depth - 1]}'",
                )
    unset_at(document, source)
    set_at(document, target, value)


FIELDS: Final[dict[str, Operator]] = {
    "$set": _set,
    "$setOnInsert": _set_on_insert,
    "$unset": _unset,
    "$inc": _arithmetic("$inc", "increment", add, None),
    "$mul": _arithmetic("$mul", "multiply", multiply, 0),
    "$min": _extreme(lambda new, old: new < old),
    "$max": _extreme(lambda new, old: new > old),
    "$currentDate": _current_date,
    "$bit": _bit,
}
