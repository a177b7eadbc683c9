"""Type checks (reference 6.1). Total: they answer true or false for everything, undefined too."""

import math

from armillary.query.functions.base import Function, integer, is_number
from armillary.query.functions.dates import parse
from armillary.values import JSON, UNDEFINED


def is_finite_number(value: JSON) -> bool:
    return is_number(value) and math.isfinite(value)


def is_datetime(value: JSON) -> bool:
    return type(value) is str and parse(value) is not None


def is_primitive(value: JSON) -> bool:
    return value is not UNDEFINED and type(value) not in (list, dict)


FUNCTIONS = tuple(
    Function(name, 1, 1, run)
    for name, run in {
        "IS_ARRAY": lambda value: type(value) is list,
        "IS_BOOL": lambda value: type(value) is bool,
        "IS_BOOLEAN": lambda value: type(value) is bool,
        "IS_DATETIME": is_datetime,
        "IS_DEFINED": lambda value: value is not UNDEFINED,
        "IS_FINITE_NUMBER": is_finite_number,
        "IS_INTEGER": lambda value: integer(value) is not None,
        "IS_NULL": lambda value: value is None,
        "IS_NUMBER": is_number,
        "IS_OBJECT": lambda value: type(value) is dict,
        "IS_PRIMITIVE": is_primitive,
        "IS_STRING": lambda value: type(value) is str,
    }.items()
)
