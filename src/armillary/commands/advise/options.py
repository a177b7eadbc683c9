"""Options of `armillary advise` from text: sizes, durations, lists of candidates."""

import re
from typing import Final

from armillary.errors import BadInput
from armillary.units import FACTORS

_BYTES: Final[dict[str, float]] = {
    **{unit.lower(): float(factor) for unit, factor in FACTORS.items()},
    **{unit[0].lower(): float(FACTORS[unit]) for unit in ("KB", "MB", "GB", "TB")},
}
_SECONDS: Final[dict[str, float]] = {
    "": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0,
    "y": 31_557_600.0,
}  # fmt: skip
_NUMBER: Final = re.compile(r"\s*([0-9][0-9_,]*(?:\.[0-9]+)?(?:e[0-9]+)?)\s*([a-z]*)\s*")
#: A bare number up to this means gigabytes: a million bytes need no plan.
GIGABYTES_UP_TO: Final = 1e6


def size(text: str | None, name: str) -> float | None:
    """Bytes: `500GB`, `1.5 TB`, or a number of gigabytes; `5GB/day` for growth."""
    if text is None:
        return None
    number, unit = _parsed(text.lower().removesuffix("/day").removesuffix("/d"), name, _BYTES)
    if not unit and number < GIGABYTES_UP_TO:
        return number * 1e9
    return number * _BYTES[unit]


def duration(text: str | None, name: str) -> float | None:
    """Seconds: `30d`, `12h`, or a number of seconds."""
    if text is None:
        return None
    number, unit = _parsed(text.lower(), name, _SECONDS)
    return number * _SECONDS[unit]


def rate(text: str | None, name: str) -> float | None:
    """RU/s: `60000`, `60,000`, `60k`."""
    if text is None:
        return None
    units = {"": 1.0, "k": 1e3, "m": 1e6, "ru": 1.0}
    number, unit = _parsed(text.lower().removesuffix("/s"), name, units)
    return number * units[unit]


def candidate_texts(given: list[str]) -> list[str]:
    """Each option is one candidate, or several with `;` or line ends between them."""
    return [text.strip() for one in given for text in re.split(r"[;\n]", one) if text.strip()]


def _parsed(text: str, name: str, units: dict[str, float]) -> tuple[float, str]:
    found = _NUMBER.fullmatch(text)
    if found is None or found[2] not in units:
        allowed = ", ".join(unit for unit in units if unit)
        raise BadInput(f"{name} is '{text}'; it must be a number, with one of {allowed} or none.")
    return float(found[1].replace(",", "").replace("_", "")), found[2]
