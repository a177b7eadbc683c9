"""What the clients of a simulated container do, and what it costs by the product's formula.

Shares are of operations. A query that gives no partition key asks every range, so its cost grows
with their number; everything else goes to one range.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from armillary.errors import BadInput
from armillary.partition import request_units
from armillary.sim.quantities import parse_bytes, parse_count, parse_share

KB = 1024


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares of operations; together 1."""

    read: float = 0.7
    create: float = 0.2
    replace: float = 0.1
    query: float = 0.0
    """Over all ranges."""

    @property
    def single(self) -> float:
        """Of operations that go to one range."""
        return self.read + self.create + self.replace


@dataclass(frozen=True, slots=True)
class Workload:
    mix: Mix = Mix()
    item_bytes: int = KB
    leaves: int = 5
    """Indexed values of an item."""
    changed_leaves: int = 2
    """… that a replace changes: each is one removed and one added."""
    query_results: float = 0.0
    strong: bool = False

    @property
    def read_ru(self) -> float:
        return request_units.read_ru(self.item_bytes, strong=self.strong)

    @property
    def write_ru(self) -> float:
        """Mean of creates and replaces."""
        mix = self.mix
        writes = mix.create + mix.replace
        if not writes:
            return 0.0
        create = request_units.create_ru(self.item_bytes, self.leaves)
        changed = self.changed_leaves
        replace = request_units.replace_ru(self.item_bytes, self.item_bytes, changed, changed)
        return (mix.create * create + mix.replace * replace) / writes

    @property
    def delete_ru(self) -> float:
        """Of an expired item."""
        return request_units.delete_ru(self.item_bytes, self.leaves)

    @property
    def single_ru(self) -> float:
        """Mean of the operations that go to one range."""
        mix = self.mix
        if not mix.single:
            return 0.0
        writes = mix.create + mix.replace
        return (mix.read * self.read_ru + writes * self.write_ru) / mix.single

    def query_ru(self, ranges: int) -> float:
        """A query over so many ranges."""
        loaded = self.query_results * self.item_bytes
        return request_units.query_ru(
            ranges, round(self.query_results), round(loaded), round(loaded), strong=self.strong
        )

    def operation_ru(self, ranges: int) -> float:
        """Mean of all."""
        return self.mix.single * self.single_ru + self.mix.query * self.query_ru(ranges)


def parse_mix(given: object) -> Mix:
    """`read=70%,create=30%` or a table. Shares are made to sum to 1."""
    if isinstance(given, str):
        pairs = [part.partition("=") for part in given.split(",") if part.strip()]
        given = {name.strip(): value.strip() for name, _, value in pairs}
    if not isinstance(given, Mapping):
        raise BadInput("The mix has to be shares of operations like read=70%,create=30%.")
    names = [one.name for one in fields(Mix)]
    for name in given:
        if name not in names:
            raise BadInput(f"The mix has {name!r}; operations are {', '.join(names)}.")
    found = {name: parse_share(value, f"The share of {name}") for name, value in given.items()}
    total = sum(found.values())
    if total <= 0:
        raise BadInput("The mix has no operations.")
    return Mix(**{name: found.get(name, 0.0) / total for name in names})


def parse_workload(given: Mapping[str, object]) -> Workload:
    readers = {
        "mix": parse_mix,
        "item": lambda text: int(parse_bytes(text, "The size of an item")),
        "leaves": lambda text: int(parse_count(text, "The number of indexed leaves")),
        "changed_leaves": lambda text: int(parse_count(text, "The number of changed leaves")),
        "query_results": lambda text: parse_count(text, "The number of query results"),
        "strong": _switch,
    }
    found: dict[str, object] = {}
    for name, value in given.items():
        if name not in readers:
            raise BadInput(f"A workload has no {name!r}; it has {', '.join(readers)}.")
        found["item_bytes" if name == "item" else name] = readers[name](value)
    return Workload(**found)  # type: ignore[arg-type]


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"strong is {value!r}; it has to be true or false.")
    return value
