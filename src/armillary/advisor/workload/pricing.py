"""What an operation of a trace or workload costs, by the product's own formula.

    on one key          the point operation
    on several places   a query: every physical partition that is asked has its price, and what
                        is found and written is paid once

A measured charge is believed for the work. What a query paid for being asked at all is not part of
it: that depends on the key, and is what the comparison is about.
"""

from typing import Final, NamedTuple

import orjson

from armillary.advisor.workload.operations import TimedOperation
from armillary.advisor.workload.places import Fields
from armillary.partition import request_units
from armillary.partition.request_units import DEFAULT, Coefficients

#: Indexed values of an item of which only the size is known.
LEAVES_DEFAULT: Final = 10
#: Indexed values that an update changes, by default.
CHANGED_DEFAULT: Final = 1


class Price(NamedTuple):
    ru: float
    """Of the work."""
    range_ru: float = 0.0
    """Of every physical partition that is asked."""


def price(
    operation: TimedOperation,
    *,
    is_point: bool,
    replaces: bool = False,
    profile: Coefficients = DEFAULT,
) -> Price:
    """`is_point`: one key is asked. `replaces`: an upsert finds an item there."""
    if operation.kind == "query":
        return _query(operation, profile)
    measured = operation.charge_ru
    point_ru = _point(operation, replaces, profile) if measured is None else measured
    if is_point or operation.kind == "batch":
        return Price(point_ru)
    found = request_units.query_ru(
        0, 1, operation.body_bytes, operation.body_bytes, profile=profile
    )
    # It can't be read or written before it is found. A read is done then.
    work_ru = found if operation.kind == "read" else found + point_ru
    return Price(work_ru, profile.query_range)


def _query(operation: TimedOperation, profile: Coefficients) -> Price:
    if operation.charge_ru is not None:
        return Price(max(0.0, operation.charge_ru - profile.query_range), profile.query_range)
    size = operation.results * operation.body_bytes
    work_ru = request_units.query_ru(0, operation.results, size, size, profile=profile)
    return Price(work_ru, profile.query_range)


def _point(operation: TimedOperation, replaces: bool, profile: Coefficients) -> float:
    size = operation.body_bytes
    match operation.kind:
        case "read":
            return request_units.read_ru(size, profile=profile)
        case "delete":
            leaves = leaves_of(operation.fields, size)
            return request_units.delete_ru(size, leaves, profile=profile)
        case "patch":
            changed = CHANGED_DEFAULT
            return request_units.patch_ru(size, size, changed, changed, changed, profile=profile)
        case "batch":
            parts = operation.items or (operation.fields,)
            each = size // max(1, len(parts))
            return sum(
                request_units.create_ru(each, leaves_of(fields, each), profile=profile)
                for fields in parts
            )
        case "replace" | "upsert" if replaces or operation.kind == "replace":
            changed = CHANGED_DEFAULT
            return request_units.replace_ru(size, size, changed, changed, profile=profile)
        case _:
            leaves = leaves_of(operation.fields, size)
            return request_units.create_ru(size, leaves, profile=profile)


def leaves_of(fields: Fields, body_bytes: int) -> int:
    """Indexed values of an item: those that are known, if they can be all of it."""
    if sum(len(orjson.dumps(value, default=str)) for value in fields.values()) * 3 >= body_bytes:
        return max(1, sum(_leaves(value) for value in fields.values()))
    return max(LEAVES_DEFAULT, len(fields))


def _leaves(value: object) -> int:
    match value:
        case list():
            return sum(map(_leaves, value))
        case dict():
            return sum(map(_leaves, value.values()))
    return 1
