"""A small value model with tagged values, for tests: exact integers of any size, and moments.

    {"$n": "123"}   an integer of any size     code 5, with plain numbers and in order with them
    {"$at": 17}     a moment, seconds          code 9
    other values    as in JSON, strings by UTF-8

An object with one of the tags is one value.
"""

from __future__ import annotations

from fractions import Fraction

from armillary.encoding.framed_model import UNDEFINED_CODE, FramedModel, Scalar
from armillary.encoding.partition_key import Component
from armillary.encoding.terms import number_bytes
from armillary.errors import BadInput
from armillary.values import JSON, UNDEFINED

_CODES = {type(None): 2, bool: 3, int: 5, float: 5, str: 6, list: 7, dict: 8}
_MOMENT = 9


class TaggedModel(FramedModel):
    name = "tagged"
    inner_names = frozenset({"$n", "$at"})

    def is_scalar(self, value: JSON) -> bool:
        if type(value) is dict:
            return len(value) == 1 and ("$n" in value or "$at" in value)
        return type(value) is not list

    def scalar(self, value: JSON) -> Scalar:
        if value is UNDEFINED:
            return Scalar(UNDEFINED_CODE)
        kind = type(value)
        if kind is dict and self.is_scalar(value):
            if "$at" in value:
                return Scalar(_MOMENT, number_bytes(value["$at"]))
            return Scalar(5, _number(Fraction(int(value["$n"]))))
        code = _CODES[kind]
        if kind is bool:
            return Scalar(code, b"\x01" if value else b"\x00")
        if kind in (int, float):
            return Scalar(code, _number(Fraction(value)))
        if kind is str:
            return Scalar(code, value.encode("utf-8", "surrogatepass"))
        return Scalar(code, exact=value is None)

    def key(self, value: JSON) -> Component:
        if type(value) is dict and self.is_scalar(value):
            if "$at" in value:
                return f"at:{value['$at']}"
            number = int(value["$n"])
            return number if abs(number) <= 1 << 53 else str(number)
        if type(value) in (dict, list):
            raise BadInput("it holds no scalar.")
        found: Component = value
        return found

    def check_body(self, document: dict[str, JSON]) -> None:
        if "forbidden" in document:
            raise BadInput("An item of this container must not have a property 'forbidden'.")


def _number(value: Fraction) -> bytes:
    """Exact and in order: the integral part, then 1,100 bits of the fraction without trailing 0."""
    whole = value.numerator // value.denominator
    rest = value - whole
    bits = int(rest * (1 << 1104)).to_bytes(138, "big").rstrip(b"\x00")
    return (whole + (1 << 1030)).to_bytes(130, "big") + bits


TAGGED_MODEL = TaggedModel()
