"""Boolean, comparison, conditional operators, variables and literals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions.operators import Expression, Inner, Operator, Simple, named
from armillary.api.mongo.expressions.values import is_nothing, is_true
from armillary.api.mongo.language import MISSING
from armillary.encoding.bson.values import SortKey, is_text, sort_key

_MISSING_KEY: Final[SortKey] = (0,)


def key_of(value: Any) -> SortKey:
    """A missing value is less than null."""
    return _MISSING_KEY if value is MISSING else sort_key(value)


def compare(one: Any, other: Any) -> int:
    left, right = key_of(one), key_of(other)
    return (left > right) - (left < right)


def _comparison(holds: Callable[[int], Any]) -> Simple:
    return Simple(lambda one, other: holds(compare(one, other)), 2, 2, nothing=False)


def _list(argument: Any) -> list[Any]:
    return argument if isinstance(argument, list) else [argument]


def _and(name: str, argument: Any, inner: Inner) -> Expression:
    parts = [inner(one) for one in _list(argument)]
    return lambda document, variables: all(is_true(one(document, variables)) for one in parts)


def _or(name: str, argument: Any, inner: Inner) -> Expression:
    parts = [inner(one) for one in _list(argument)]
    return lambda document, variables: any(is_true(one(document, variables)) for one in parts)


def _cond(name: str, argument: Any, inner: Inner) -> Expression:
    if isinstance(argument, dict):
        unknown = set(argument) - {"if", "then", "else"}
        if unknown:
            raise MongoError(17083, f"Unrecognized parameter to $cond: {unknown.pop()}")
        for at, one in enumerate(("if", "then", "else")):
            if one not in argument:
                raise MongoError(17080 + at, f"Missing '{one}' parameter to $cond")
        given = [argument["if"], argument["then"], argument["else"]]
    else:
        given = _list(argument)
        if len(given) != 3:
            raise MongoError(
                16020,
                f"Expression $cond takes exactly 3 arguments. {len(given)} were passed in.",
            )
    test, yes, no = (inner(one) for one in given)
    return lambda document, variables: (
        yes(document, variables) if is_true(test(document, variables)) else no(document, variables)
    )


def _if_null(name: str, argument: Any, inner: Inner) -> Expression:
    given = _list(argument)
    if len(given) < 2:
        raise MongoError(1257300, f"$ifNull needs at least two arguments, had: {len(given)}")
    parts = [inner(one) for one in given]

    def run(document: Any, variables: Any) -> Any:
        value: Any = MISSING
        for part in parts:
            value = part(document, variables)
            if not is_nothing(value):
                return value
        return value

    return run


def _switch(name: str, argument: Any, inner: Inner) -> Expression:
    if not isinstance(argument, dict):
        raise MongoError(
            40060, f"$switch requires an object as an argument, found: {type(argument)}"
        )
    branches = argument.get("branches")
    if not isinstance(branches, list):
        raise MongoError(40061, "$switch expected an array for 'branches'")
    if not branches:
        raise MongoError(40068, "$switch requires at least one branch.")
    unknown = set(argument) - {"branches", "default"}
    if unknown:
        raise MongoError(40067, f"$switch found an unknown argument: {unknown.pop()}")
    made = []
    for one in branches:
        if not isinstance(one, dict):
            raise MongoError(40062, "$switch expected each branch to be an object")
        if "case" not in one:
            raise MongoError(40064, "$switch requires each branch have a 'case' expression")
        if "then" not in one:
            raise MongoError(40065, "$switch requires each branch have a 'then' expression.")
        made.append((inner(one["case"]), inner(one["then"])))
    default = inner(argument["default"]) if "default" in argument else None

    def run(document: Any, variables: Any) -> Any:
        for case, then in made:
            if is_true(case(document, variables)):
                return then(document, variables)
        if default is None:
            raise MongoError(
                40066,
                "$switch could not find a matching branch for an input, "
                "and no default was specified.",
            )
        return default(document, variables)

    return run


def _let(name: str, argument: Any, inner: Inner) -> Expression:
    if not isinstance(argument, dict):
        raise MongoError(16874, "$let only supports an object as its argument")
    unknown = set(argument) - {"vars", "in"}
    if unknown:
        raise MongoError(16875, f"Unrecognized parameter to $let: {unknown.pop()}")
    for code, one in ((16876, "vars"), (16877, "in")):
        if one not in argument:
            raise MongoError(code, f"Missing '{one}' parameter to $let")
    if not isinstance(argument["vars"], dict):
        raise MongoError(10065, "invalid parameter: expected an object (vars)")
    variables_of = {one: inner(part) for one, part in argument["vars"].items()}
    body = inner(argument["in"], frozenset(variables_of))

    def run(document: Any, variables: Any) -> Any:
        more = {one: part(document, variables) for one, part in variables_of.items()}
        return body(document, {**variables, **more})

    return run


def _literal(name: str, argument: Any, inner: Inner) -> Expression:
    return lambda document, variables: argument


def _get_field(name: str, argument: Any, inner: Inner) -> Expression:
    if isinstance(argument, dict) and "field" in argument:
        field, source = argument["field"], argument.get("input", "$$CURRENT")
    else:
        field, source = argument, "$$CURRENT"
    read = inner(field if not is_text(field) or field[:1] != "$" else {"$literal": field})
    read_source = inner(source)

    def run(document: Any, variables: Any) -> Any:
        wanted = read(document, variables)
        value = read_source(document, variables)
        if not is_text(wanted):
            raise MongoError(3041704, f"{name} requires 'field' to be a string, found: {wanted}")
        if is_nothing(value):
            return None if value is None else MISSING
        return value.get(wanted, MISSING) if isinstance(value, dict) else MISSING

    return run


def _set_field(name: str, argument: Any, inner: Inner) -> Expression:
    needed = ("field", "input", "value") if name == "$setField" else ("field", "input")
    if isinstance(argument, dict) and is_text(argument.get("field")):
        argument = argument | {"field": {"$literal": argument["field"]}}
    parts = named(name, argument, inner, needed, (), 4161101)
    field, source, value = parts["field"], parts["input"], parts.get("value")

    def run(document: Any, variables: Any) -> Any:
        found = source(document, variables)
        if is_nothing(found):
            return None
        if not isinstance(found, dict):
            raise MongoError(4161105, f"{name} requires 'input' to evaluate to type Object")
        key = field(document, variables)
        if not is_text(key):
            raise MongoError(4161107, f"{name} requires 'field' to be a string, found: {key}")
        made = MISSING if value is None else value(document, variables)
        rest = dict(found)
        if made is MISSING:
            rest.pop(key, None)
        else:
            rest[key] = made
        return rest

    return run


OPERATORS: Final[dict[str, Operator]] = {
    "$cmp": _comparison(lambda order: order),
    "$eq": _comparison(lambda order: order == 0),
    "$ne": _comparison(lambda order: order != 0),
    "$gt": _comparison(lambda order: order > 0),
    "$gte": _comparison(lambda order: order >= 0),
    "$lt": _comparison(lambda order: order < 0),
    "$lte": _comparison(lambda order: order <= 0),
    "$and": _and,
    "$or": _or,
    "$not": Simple(lambda value: not is_true(value), nothing=False),
    "$cond": _cond,
    "$ifNull": _if_null,
    "$switch": _switch,
    "$let": _let,
    "$literal": _literal,
    "$const": _literal,
    "$getField": _get_field,
    "$setField": _set_field,
    "$unsetField": _set_field,
}
