"""What happens to a simulated container at a given time, as its user writes it:

    {"at": "3d",  "throughput": "20M"}                       another throughput; 423 if busy
    {"at": "10d", "load": 8, "for": "12h"}                   so many times the load
    {"at": "2d",  "region": "east", "for": "6h"}             a region is lost
    {"at": "2d",  "node": 3}                                 machines are lost: so many replicas
    {"at": "5d",  "merge": true}                             merge what may merge
    {"at": "5d",  "redistribute": {"0": 5000, "1": 20000}}   RU/s of single ranges
    {"at": "6d",  "evenly": true}                            back to equal shares

In a TOML or JSON file as `events`, or one JSON object per line in a file of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from armillary.errors import BadInput
from armillary.sim.quantities import parse_count, parse_seconds

Kind: TypeAlias = Literal["throughput", "load", "region", "node", "merge", "redistribute", "evenly"]
KINDS: tuple[Kind, ...] = (
    "throughput",
    "load",
    "region",
    "node",
    "merge",
    "redistribute",
    "evenly",
)
LASTING = ("load", "region")


@dataclass(frozen=True, slots=True)
class Happening:
    at_s: float
    kind: Kind
    number: float = 0.0
    """RU/s, a factor of the load, or lost replicas."""
    name: str = ""
    """Of a region."""
    seconds: float = 0.0
    """How long a load or a loss lasts."""
    targets: tuple[tuple[int, float], ...] = ()

    @property
    def end_s(self) -> float:
        return self.at_s + self.seconds


def parse_happening(given: object) -> Happening:
    if not isinstance(given, Mapping):
        raise BadInput(f"An event has to be an object with 'at' and what happens, not {given!r}.")
    kinds = [kind for kind in KINDS if kind in given]
    if len(kinds) != 1 or "at" not in given:
        raise BadInput(f"The event {dict(given)!r} needs 'at' and one of {', '.join(KINDS)}.")
    kind = kinds[0]
    unknown = set(given) - {"at", "for", kind}
    if unknown:
        raise BadInput(f"The event {dict(given)!r} has the unknown {sorted(unknown)[0]!r}.")
    if (kind in LASTING) != ("for" in given):
        raise BadInput(
            f"The event {dict(given)!r} "
            + ("needs 'for': how long it lasts." if kind in LASTING else "can't have 'for'.")
        )
    at = parse_seconds(given["at"], "The time of an event")
    lasts = parse_seconds(given["for"], "How long an event lasts") if kind in LASTING else 0.0
    value = given[kind]
    if kind in ("merge", "evenly"):
        if value is not True:
            raise BadInput(f"The event {dict(given)!r} has {kind} = {value!r}; it has to be true.")
        return Happening(at, kind)
    if kind == "region":
        if not isinstance(value, str) or not value:
            raise BadInput(f"The event {dict(given)!r} has to name a region.")
        return Happening(at, kind, name=value, seconds=lasts)
    if kind == "redistribute":
        return Happening(at, kind, targets=_targets(value))
    number = parse_count(value, f"The {kind} of an event")
    if number <= 0:
        raise BadInput(f"The event {dict(given)!r} has {kind} = {value!r}; it has to be above 0.")
    return Happening(at, kind, number, seconds=lasts)


def _targets(value: object) -> tuple[tuple[int, float], ...]:
    if not isinstance(value, Mapping) or not value:
        raise BadInput("redistribute has to be RU/s by the id of a partition, like {'0': 5000}.")
    found = []
    for ordinal, ru in value.items():
        if not str(ordinal).isdecimal():
            raise BadInput(f"redistribute names the partition {ordinal!r}; ids are numbers.")
        found.append((int(str(ordinal)), parse_count(ru, "The RU/s of a partition")))
    return tuple(sorted(found))
