"""An aggregation expression into a function of a document and its variables.

"$a.b"            the value at a path          {$add: ["$a", 1]}   an operator
"$$name.x"        a variable                   {x: "$a"}           a document of expressions
["$a", 2]         an array of them             anything else       itself
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bson.timestamp import Timestamp

from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.expressions import (
    arithmetic,
    arrays,
    conditions,
    conversions,
    dates,
    sets,
    strings,
)
from armillary.api.mongo.expressions.operators import (
    Expression,
    Operator,
    Simple,
    steps_of,
    watched,
)
from armillary.api.mongo.expressions.values import get_path
from armillary.api.mongo.language import MISSING, PART_BYTES, Language, Scratch, hold_compiled
from armillary.encoding.bson.values import is_text

#: Refused in strict mode: the reference does not list them.
NATIVE: Final = frozenset(
    [
        "$getField",
        "$setField",
        "$unsetField",
        "$sortArray",
        "$firstN",
        "$lastN",
        "$maxN",
        "$minN",
        "$dateAdd",
        "$dateDiff",
        "$dateSubtract",
        "$dateTrunc",
        "$first",
        "$last",
        "$rand",
        "$replaceOne",
        "$replaceAll",
        "$isNumber",
        "$bitAnd",
        "$bitOr",
        "$bitXor",
        "$bitNot",
        "$binarySize",
        "$bsonSize",
        "$sampleRate",
        "$tsSecond",
        "$tsIncrement",
        "$cmp",
    ]
) - {"$cmp"}

OPERATORS: Final[dict[str, Operator]] = {
    **arithmetic.OPERATORS,
    **strings.OPERATORS,
    **arrays.OPERATORS,
    **sets.OPERATORS,
    **dates.OPERATORS,
    **conversions.OPERATORS,
    **conditions.OPERATORS,
}
#: `$sum`, `$avg`, `$min`, … over arguments or one array; filled by the accumulators themselves.
ARRAY_ACCUMULATORS: Final[dict[str, Callable[[list[Any]], Any]]] = {}
_SYSTEM: Final = frozenset(
    {"ROOT", "CURRENT", "NOW", "CLUSTER_TIME", "CLUSTERTIME", "REMOVE", "DESCEND", "PRUNE", "KEEP"}
)


class Marker:
    """`$$DESCEND`, `$$PRUNE`, `$$KEEP`: what `$redact` is to do."""

    def __init__(self, name: str) -> None:
        self.name = name


MARKERS: Final = {name: Marker(name) for name in ("DESCEND", "PRUNE", "KEEP")}


def compile_expression(source: Any, language: Language) -> Expression:
    """Evaluated for one document after the other; what it makes is on the budget."""
    expression = _compile(source, language, frozenset())
    if not isinstance(source, dict | list):
        return expression
    begin = language.scratch.begin

    def run(document: Any, variables: Any) -> Any:
        begin(document)
        return expression(document, variables)

    return run


def _compile(source: Any, language: Language, names: frozenset[str]) -> Expression:
    """`names`: variables that stand around this expression."""
    if is_text(source) and source[:1] == "$":
        return _path(source, language, names)
    if isinstance(source, list | dict):
        hold_compiled(len(source), PART_BYTES, language.budget)
    if isinstance(source, list):
        parts = [_compile(one, language, names) for one in source]

        def array(document: Any, variables: Any) -> Any:
            found = (part(document, variables) for part in parts)
            return [None if one is MISSING else one for one in found]

        return array
    if isinstance(source, dict):
        first = next(iter(source), "")
        if first[:1] == "$":
            return _operator(source, language, names)
        return _document(source, language, names)
    return lambda document, variables: source


def _path(source: str, language: Language, names: frozenset[str]) -> Expression:
    if source.startswith("$$"):
        name, *rest = source[2:].split(".")
        if not name:
            raise MongoError(9, "empty variable names are not allowed")
        parts = tuple(rest)
        if name in MARKERS:
            marker = MARKERS[name]
            return lambda document, variables: marker
        if name == "REMOVE":
            return lambda document, variables: MISSING
        if name == "NOW":
            now = language.now
            return lambda document, variables: now
        if name in ("CLUSTER_TIME", "CLUSTERTIME"):
            stamp = Timestamp(int(language.now) // 1000, 1)
            return lambda document, variables: stamp
        if name not in names and name not in _SYSTEM and name not in language.variables:
            raise MongoError(17276, f"Use of undefined variable: {name}")
        fixed = language.variables

        def variable(document: Any, variables: Any) -> Any:
            value = variables[name] if name in variables else fixed.get(name, MISSING)
            return get_path(value, parts) if parts else value

        return variable
    text = source[1:]
    if not text:
        raise MongoError(16872, "'$' by itself is not a valid FieldPath")
    check_path(text)
    path = tuple(text.split("."))
    if len(path) == 1:
        (field,) = path

        def plain(document: Any, variables: Any) -> Any:
            current = variables["CURRENT"]
            if type(current) is dict:
                return current.get(field, MISSING)
            return get_path(current, path)

        return plain
    return lambda document, variables: get_path(variables["CURRENT"], path)


def check_path(text: str) -> None:
    if text.endswith("."):
        raise MongoError(40353, "FieldPath must not end with a '.'.")
    for part in text.split("."):
        if not part:
            raise MongoError(15998, "FieldPath field names may not be empty strings.")
        if part[0] == "$":
            raise MongoError(
                16410,
                "FieldPath field names may not start with '$'. Consider using $getField or "
                "$setField.",
            )


def _document(source: dict[str, Any], language: Language, names: frozenset[str]) -> Expression:
    fields = []
    for name, value in source.items():
        if name[:1] == "$":
            raise MongoError(16410, f"field names may not start with '$': {name}")
        if "." in name:
            raise MongoError(16405, f"dotted field names are only allowed at the top level: {name}")
        fields.append((name, _compile(value, language, names)))

    def made(document: Any, variables: Any) -> Any:
        found = ((name, part(document, variables)) for name, part in fields)
        return {name: value for name, value in found if value is not MISSING}

    return made


def _operator(source: dict[str, Any], language: Language, names: frozenset[str]) -> Expression:
    if len(source) != 1:
        raise MongoError(
            15983,
            "Object expressions must have exactly one field when it is an operator expression; "
            f"found {', '.join(source)}",
        )
    ((name, argument),) = source.items()
    if name == "$rand" and not language.strict:
        return lambda document, variables: language.random()
    operator = OPERATORS.get(name)
    if operator is None and name in ARRAY_ACCUMULATORS:
        given = argument if isinstance(argument, list) else [argument]
        parts = [_compile(one, language, names) for one in given]
        combine, scratch = ARRAY_ACCUMULATORS[name], language.scratch

        def combined(document: Any, variables: Any) -> Any:
            values = [one(document, variables) for one in parts]
            scratch.spend(sum(map(steps_of, values)))
            return combine(values)

        return combined
    if operator is None or (language.strict and name in NATIVE):
        raise MongoError(168, f"Unrecognized expression '{name}'")

    inner = _Inside(language, names)
    if isinstance(operator, Simple):
        made = operator.compile(name, argument, inner)
    else:
        made = operator(name, argument, inner)
    return watched(made, language.scratch)


@dataclass(frozen=True, slots=True)
class _Inside:
    """Compiles what stands inside an operator."""

    language: Language
    names: frozenset[str]

    @property
    def scratch(self) -> Scratch:
        return self.language.scratch

    def __call__(self, part: Any, more: frozenset[str] = frozenset()) -> Expression:
        return _compile(part, self.language, self.names | more)


def evaluate(expression: Expression, document: Any) -> Any:
    return expression(document, {"ROOT": document, "CURRENT": document})
