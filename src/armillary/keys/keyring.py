"""Where an item may be: the key to write by, those to read by, and the query of a group.

What the two wrappers of `keys/cosmos.py` share, free of azure-cosmos and of waiting.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from armillary.clock import new_random
from armillary.encoding.paths import Path, extract, format_path, parse_path
from armillary.errors import BadInput, NotTargetable
from armillary.keys.buckets import instant_of
from armillary.keys.growth import candidates_over, fits_any
from armillary.keys.spec import Part
from armillary.keys.synthetic import Interval, Item, SyntheticKey
from armillary.keys.views import Among
from armillary.values import JSON, UNDEFINED


@dataclass(frozen=True, slots=True)
class Keyring:
    """What both wrappers need to know: the key to write by, those to read by, and chance."""

    key: SyntheticKey
    earlier: Sequence[SyntheticKey] = ()
    random: Random = field(default_factory=new_random)

    @property
    def keys(self) -> list[SyntheticKey]:
        return [self.key, *self.earlier]

    def new(self, item: Item) -> dict[str, JSON]:
        return self.key.apply(item, self.random)

    def upsert(self, item: Item) -> dict[str, JSON]:
        """The item with the one key under which it lives or would live."""
        if extract(dict(item), self.key.path) is not UNDEFINED:
            return next(self.bodies(item))
        if self.key.is_random or self.earlier:
            raise BadInput(
                f"An upsert needs '{format_path(self.key.path)}' in the item: it may be stored "
                "under several keys, and a second copy would be made. Read it first, or create it."
            )
        return self.new(item)

    def bodies(self, item: Item) -> Iterator[dict[str, JSON]]:
        """The item under each key it may be stored under; a key in the item is the only one."""
        given = extract(dict(item), self.key.path)
        if given is not UNDEFINED and not fits_any(self.keys, item, given):
            self.new(item)  # raises, and says what was expected
        for value in candidates_over(self.keys, item):
            key = next(key for key in self.keys if key.fits(item, value))
            yield key.apply(item, stored=value)

    def places(self, known: Item, among: Among | None, between: Interval | None) -> list[str]:
        return candidates_over(self.keys, known, among=among, between=between)

    def scopes(
        self, known: Item, among: Among | None, between: Interval | None, fan_out: bool
    ) -> list[dict[str, Any]]:
        """The partition keys to query, as options; an empty option means all partitions."""
        try:
            return [{"partition_key": place} for place in self.places(known, among, between)]
        except NotTargetable:
            if not fan_out:
                raise
            return [{}]

    def inside(self, item: Item, known: Item, between: Interval | None) -> bool:
        """Buckets are coarser than the interval: what lies outside it is dropped here."""
        if between is None:
            return True
        view = dict(known)
        parts = self.key.spec.parts
        timed = {p.path: p for p in parts if p.bucket and extract(view, p.path) is UNDEFINED}
        if len(timed) > 1:
            raise BadInput("The interval could be that of several properties; name one in `known`.")
        return all(self._between(part, dict(item), between) for part in timed.values())

    def _between(self, part: Part, item: dict[str, JSON], between: Interval) -> bool:
        value = extract(item, part.path)
        if value is UNDEFINED:
            return False
        where = format_path(part.path)
        start, end = (instant_of(bound, part.unit, where) for bound in between)
        return start <= instant_of(value, part.unit, where) <= end


# --- queries --------------------------------------------------------------------------------------


def filter_query(known: Item, among: Among | None) -> tuple[str, list[dict[str, Any]]]:
    """SQL for the known properties. Needed even inside one partition key: two stems can be one text
    (`a-b` + `c`, `a` + `b-c`), and other groups may share the key then.
    """
    values: list[JSON] = []
    conditions: list[str] = []

    def parameter(value: JSON) -> str:
        values.append(value)
        return f"@p{len(values) - 1}"

    for path, value in _leaves(dict(known), ()):
        conditions.append(f"{_property(path)} = {parameter(value)}")
    for text, choices in (among or {}).items():
        listed = ", ".join(map(parameter, choices))
        conditions.append(f"{_property(parse_path(text))} IN ({listed})" if listed else "false")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    parameters = [{"name": f"@p{i}", "value": value} for i, value in enumerate(values)]
    return f"SELECT * FROM c{where}", parameters


def _leaves(known: dict[str, JSON], above: Path) -> Iterator[tuple[Path, JSON]]:
    for name, value in known.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name), value


def _property(path: Path) -> str:
    quoted = (name.replace("\\", "\\\\").replace('"', '\\"') for name in path)
    return "c" + "".join(f'["{name}"]' for name in quoted)
