"""StringTo* and ToString (reference 6.5): strict JSON in, compact JSON out."""

from collections.abc import Callable

import orjson

from armillary.limits import ITEM_DEPTH_MAX
from armillary.query.expr.output import text
from armillary.query.functions.base import INT64_MAX, INT64_MIN, Function, check_string
from armillary.values import JSON, UNDEFINED


def parsed(value: JSON, kinds: tuple[type, ...]) -> JSON:
    """Surrounding whitespace is fine; single quotes, hex, NaN and trailing commas are not."""
    if type(value) is not str:
        return UNDEFINED
    try:
        result = orjson.loads(value)
    except orjson.JSONDecodeError:
        return UNDEFINED
    return _stored_form(result, ITEM_DEPTH_MAX) if type(result) in kinds else UNDEFINED


def _stored_form(value: JSON, depth: int) -> JSON:
    """Integers beyond 64 bits become doubles, and deeper nesting than an item may have is refused:
    everything that walks values relies on both.
    """
    if type(value) is int:
        return value if INT64_MIN <= value <= INT64_MAX else float(value)
    if type(value) is not list and type(value) is not dict:
        return value
    if depth == 0:
        return UNDEFINED
    inner = value if isinstance(value, list) else list(value.values())
    walked = [_stored_form(each, depth - 1) for each in inner]
    if UNDEFINED in walked:
        return UNDEFINED
    return walked if type(value) is list else dict(zip(value, walked, strict=True))


def to_string(value: JSON) -> JSON:
    if value is UNDEFINED or type(value) is str:
        return value
    result = text(value)
    check_string(len(result))
    return result


def _parser(*kinds: type) -> Callable[[JSON], JSON]:
    return lambda value: parsed(value, kinds)


FUNCTIONS = (
    Function("StringToArray", 1, 1, _parser(list)),
    Function("StringToBoolean", 1, 1, _parser(bool)),
    Function("StringToNull", 1, 1, _parser(type(None))),
    Function("StringToNumber", 1, 1, _parser(int, float)),
    Function("StringToObject", 1, 1, _parser(dict)),
    Function("ToString", 1, 1, to_string),
)
