"""Numbers as people write them: `100TB`, `10M`, `1e9`, `10%`, `3d`, `90m`, `2TB/day`.

Sizes have the units of `units.py`. A text that can't be read is a `BadInput` that says what was
expected.
"""

import math
import re

from armillary.errors import BadInput
from armillary.units import FACTORS

_NUMBER = re.compile(r"\s*([0-9][0-9_,]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([^\s0-9]*)\s*\Z")
_BYTES = {unit.lower(): float(factor) for unit, factor in FACTORS.items()}
_COUNTS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9}
_SECONDS = {
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "d": 86_400.0,
    "day": 86_400.0,
    "days": 86_400.0,
    "w": 7 * 86_400.0,
    "week": 7 * 86_400.0,
    "month": 730 * 3600.0,
    "y": 365 * 86_400.0,
    "year": 365 * 86_400.0,
}


def _split(text: object, name: str, example: str) -> tuple[float, str]:
    found = None if isinstance(text, bool) else _NUMBER.match(str(text))
    if found is None:
        raise BadInput(f"{name} is {text!r}; it has to be a number like {example}.")
    value = float(found[1].replace("_", "").replace(",", ""))
    if not math.isfinite(value):
        raise BadInput(f"{name} is {text!r}; it has to be a number like {example}.")
    return value, found[2]


def _scaled(text: object, name: str, example: str, units: dict[str, float]) -> float:
    value, unit = _split(text, name, example)
    factor = units.get(unit.lower())
    if factor is None:
        known = ", ".join(sorted(filter(None, units), key=lambda u: units[u]))
        raise BadInput(f"{name} is {text!r}; the unit {unit!r} is not one of {known}.")
    return value * factor


def parse_bytes(text: object, name: str) -> float:
    return _scaled(text, name, "100TB", _BYTES)


def parse_count(text: object, name: str) -> float:
    return _scaled(text, name, "10M or 1e9", _COUNTS)


def parse_seconds(text: object, name: str) -> float:
    """Without a unit: days."""
    value, unit = _split(text, name, "3d, 90m or 2h")
    if not unit:
        return value * _SECONDS["d"]
    return _scaled(text, name, "3d, 90m or 2h", _SECONDS)


def parse_share(text: object, name: str) -> float:
    """`10%` or `0.1`, from 0 to 1."""
    value, unit = _split(text, name, "10% or 0.1")
    if unit not in ("", "%"):
        raise BadInput(f"{name} is {text!r}; it has to be a share like 10% or 0.1.")
    share = value / 100 if unit else value
    if not 0.0 <= share <= 1.0:
        raise BadInput(f"{name} is {text!r}; a share lies between 0 and 100 %.")
    return share


def show_count(value: float) -> str:
    for unit, factor in (("G", 1e9), ("M", 1e6)):
        if value >= factor:
            return f"{value / factor:,.4g} {unit}"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.3g}"
