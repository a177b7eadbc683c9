"""A query document into one function.

{a: 1, b: {$gt: 2}, $or: […]}  →  all of: a is 1 · b is above 2 · any of …
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from bson.regex import Regex

from armillary.api.mongo.collation import folded_query
from armillary.api.mongo.errors import bad_value
from armillary.api.mongo.expressions.compiled import compile_expression
from armillary.api.mongo.expressions.values import is_true
from armillary.api.mongo.language import CLAUSE_BYTES, Language, hold_compiled
from armillary.api.mongo.match import geo, regexes
from armillary.api.mongo.match.operators import (
    OPERATORS,
    Filter,
    Parts,
    any_of,
    arrays,
    eq,
    matches_regex,
    negated,
)
from armillary.encoding.bson.values import is_number, number_of

REFERENCE: Final = ("$ref", "$id", "$db")
FEW: Final = 8  # conditions
REFUSED: Final = ("$where", "$text", "$jsonSchema")


def compile_filter(query: Any, language: Language) -> Filter:
    if not isinstance(query, dict):
        raise bad_value("the match filter must be an expression in an object")
    if language.fold is not None:
        fold = language.fold
        test = compile_filter(folded_query(query, fold), replace(language, fold=None))
        return lambda document: test(fold(document))
    hold_compiled(len(query), CLAUSE_BYTES, language.budget)
    tests = [_clause(name, value, language) for name, value in query.items()]
    return _all(_watched([one for one in tests if one is not None], language))


def _watched(tests: list[Filter], language: Language) -> list[Filter]:
    """Each may look at every element of an array. Many of them look at the clock as well."""
    if len(tests) <= FEW:
        return tests
    check = language.budget.check

    def looking(test: Filter) -> Filter:
        def run(document: Any) -> bool:
            check()
            return test(document)

        return run

    return list(map(looking, tests))


def _all(tests: list[Filter]) -> Filter:
    if not tests:
        return lambda document: True
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        first, second = tests
        return lambda document: first(document) and second(document)
    return lambda document: all(test(document) for test in tests)


def _clause(name: str, value: Any, language: Language) -> Filter | None:
    if name[:1] != "$":
        return compile_condition(tuple(name.split(".")), value, language)
    if name in ("$and", "$or", "$nor"):
        if not isinstance(value, list):
            raise bad_value(f"{name} must be an array")
        if not value:
            raise bad_value("$and/$or/$nor must be a nonempty array")
        if not all(isinstance(one, dict) for one in value):
            raise bad_value("$or/$and/$nor entries need to be full objects")
        hold_compiled(len(value), CLAUSE_BYTES, language.budget)
        tests = _watched([compile_filter(one, language) for one in value], language)
        if name == "$and":
            return _all(tests)
        some: Filter = lambda document: any(test(document) for test in tests)  # noqa: E731
        return some if name == "$or" else negated(some)
    if name == "$expr":
        holds = compile_expression(value, language)
        return lambda document: is_true(holds(document, {"ROOT": document, "CURRENT": document}))
    if name == "$comment":
        return None
    if name in ("$alwaysTrue", "$alwaysFalse"):
        return lambda document: name == "$alwaysTrue"
    if name == "$sampleRate":
        if not is_number(value) or not 0 <= number_of(value) <= 1:
            raise bad_value("numeric argument to $sampleRate must be in [0, 1]")
        share = float(number_of(value))
        return lambda document: language.random() < share
    if name in REFUSED:
        raise bad_value(f"{name} is not supported")
    raise bad_value(
        f"unknown top level operator: {name}. If you have a field name that starts with a '$' "
        "symbol, consider using $getField or $setField."
    )


def is_condition(value: Any) -> bool:
    """Whether a document after a field is operators rather than a value."""
    if type(value) is not dict or not value:
        return False
    first = next(iter(value))
    return first[:1] == "$" and first not in REFERENCE


def compile_condition(parts: Parts, value: Any, language: Language) -> Filter:
    if isinstance(value, Regex):
        return matches_regex(parts, value, language)
    if not is_condition(value):
        return eq(parts, value, language)
    return _all([_operator(parts, name, value, language) for name in value if name != "$options"])


def _operator(parts: Parts, name: str, condition: dict[str, Any], language: Language) -> Filter:
    argument = condition[name]
    make = OPERATORS.get(name) or _NESTED.get(name)
    if make is not None:
        return make(parts, argument, language)
    if name == "$regex":
        pattern = regexes.part(argument, language.budget, condition.get("$options"))
        budget = language.budget
        return any_of(
            parts,
            lambda value: (
                isinstance(value, str) and regexes.search(pattern, value, budget) is not None
            ),
        )
    if name in geo.OPERATORS:
        return geo.OPERATORS[name](parts, condition, language)
    if name in geo.ARGUMENTS and any(one in condition for one in ("$near", "$nearSphere")):
        return lambda document: True
    if name == "$comment":
        return lambda document: True
    raise bad_value(f"unknown operator: {name}")


def _not(parts: Parts, argument: Any, language: Language) -> Filter:
    if isinstance(argument, Regex):
        return negated(matches_regex(parts, argument, language))
    if not isinstance(argument, dict):
        raise bad_value("$not needs a regex or a document")
    if not argument:
        raise bad_value("$not cannot be empty")
    if not is_condition(argument):
        raise bad_value(f"unknown operator: {next(iter(argument))}")
    return negated(compile_condition(parts, argument, language))


def element_test(argument: dict[str, Any], language: Language) -> Callable[[Any], bool]:
    """Of `$elemMatch` and `$pull`: operators on the element, or a query on a document."""
    if is_condition(argument) and next(iter(argument)) not in ("$and", "$or", "$nor", "$expr"):
        # The element stands for itself: a document with one field of no name, and no unwinding.
        made = compile_condition(("",), argument, language)
        return lambda element: made({"": element} if type(element) is not list else {"": [element]})
    inner = compile_filter(argument, language)
    return lambda element: type(element) in (dict, list) and inner(element)


def _elem_match(parts: Parts, argument: Any, language: Language) -> Filter:
    if not isinstance(argument, dict):
        raise bad_value("$elemMatch needs an Object")
    test = element_test(argument, language)
    return lambda document: any(
        any(test(element) for element in found) for found in arrays(document, parts)
    )


def _all_of(parts: Parts, argument: Any, language: Language) -> Filter:
    if not isinstance(argument, list):
        raise bad_value("$all needs an array")
    if not argument:
        return lambda document: False
    tests: list[Filter] = []
    nested = [isinstance(one, dict) and next(iter(one), "") == "$elemMatch" for one in argument]
    if any(nested) and not all(nested):
        raise bad_value("no $ expressions in $all")
    for one in argument:
        if isinstance(one, dict) and next(iter(one), "") == "$elemMatch":
            tests.append(_elem_match(parts, one["$elemMatch"], language))
        elif isinstance(one, Regex):
            tests.append(matches_regex(parts, one, language))
        elif is_condition(one):
            raise bad_value("no $ expressions in $all")
        else:
            tests.append(eq(parts, one, language))
    return _all(tests)


_NESTED: Final = {"$not": _not, "$elemMatch": _elem_match, "$all": _all_of}
SUPPORTED: Final = sorted(
    {*OPERATORS, *_NESTED, *geo.OPERATORS, "$regex", "$and", "$or", "$nor", "$expr", "$comment"}
)
