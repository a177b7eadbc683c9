"""Where one operation goes under one key: its place on the ring, not only how many places.

    create {"date": "2026-04-09", "vin": "1H…"}     /date+"."+hash(/vin,400)  ──▶ one key, one EPK
    read   {"id": "7"}                              /tenant                   ──▶ the whole ring
    query  {"tenant": "a"}                          /tenant,/user             ──▶ a part of it

Values come from the operation, hashes from `encoding/hashing.py`, and the keys that are possible
when not everything is known from `keys/`: the functions that clients and server use.
`workload.route` says the same of an operation whose values are not known yet.
"""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple, TypeAlias

import orjson

from armillary.advisor.keys.candidates import Candidate
from armillary.advisor.workload.model import WHOLE_ITEM
from armillary.advisor.workload.operations import TimedOperation
from armillary.encoding.hashing import EPK_MAX, EPK_MIN, epk, prefix_range
from armillary.encoding.partition_key import KeyValues, check_key
from armillary.encoding.paths import Path
from armillary.errors import BadInput, NotTargetable
from armillary.keys.synthetic import Interval
from armillary.values import JSON, UNDEFINED

Fields: TypeAlias = Mapping[Path, JSON]
#: [start, end) of hashes.
Piece: TypeAlias = tuple[bytes, bytes]

LISTS_KEPT: Final = 10_000
RING: Final[Piece] = (EPK_MIN, EPK_MAX)


class Target(NamedTuple):
    pieces: tuple[Piece, ...]
    """The parts of the ring that must be asked."""
    key: str | None = None
    """The one logical partition it is about, as JSON; None: several, or not known."""

    @property
    def is_point(self) -> bool:
        return self.key is not None


EVERYWHERE: Final = Target((RING,))


class Router:
    """The places of operations under one candidate. Chance is for random suffixes."""

    def __init__(self, candidate: Candidate, random: Random) -> None:
        self.candidate = candidate
        self.definition = candidate.definition
        self._paths = candidate.paths
        self._synthetic = candidate.synthetic
        self._made_of = candidate.made_of
        self._random = random
        self._lists: dict[str, Target] = {}

    def target(self, operation: TimedOperation) -> Target:
        """Raises BadInput when an item can't have this key."""
        if operation.kind in WHOLE_ITEM:
            return self.place(operation.fields)
        if operation.kind == "batch":
            return self._batch(operation.items or (operation.fields,))
        found = [self._known(fields, operation) for fields in alternatives(operation)]
        if len(found) == 1:
            return found[0]
        return Target(tuple(dict.fromkeys(piece for one in found for piece in one.pieces)))

    def place(self, fields: Fields) -> Target:
        """Where an item lives."""
        return self._point(self.key(fields))

    def key(self, fields: Fields) -> KeyValues:
        """The key of an item with these values."""
        if self._synthetic is None:
            values: KeyValues = tuple(_component(fields, path) for path in self._paths)
        else:
            item = nested({path: fields[path] for path in self._made_of if path in fields})
            values = (self._synthetic.value_for(item, self._random),)
        return check_key(values, self.definition)

    def _batch(self, items: Sequence[Fields]) -> Target:
        """Items of one key are one transaction; otherwise each goes its own way."""
        targets = [self._point(self.key(fields)) for fields in items]
        if len({one.key for one in targets}) == 1:
            return targets[0]
        return Target(tuple(piece for one in targets for piece in one.pieces))

    def _known(self, fields: Fields, operation: TimedOperation) -> Target:
        if self._synthetic is not None:
            return self._known_synthetic(fields, operation)
        known = [path for path in self._paths if path in fields]
        if len(known) == len(self._paths):
            return self._point(self.key(fields))
        values = check_prefix(fields, self._paths)
        return Target((prefix_range(values, self.definition),)) if values else EVERYWHERE

    def _known_synthetic(self, fields: Fields, operation: TimedOperation) -> Target:
        assert self._synthetic is not None
        known = nested({path: fields[path] for path in self._made_of if path in fields})
        try:
            keys = self._synthetic.possible(known, between=self._interval(operation))
        except (NotTargetable, BadInput):
            return EVERYWHERE
        if len(keys) == 1:
            return self._point((keys[0],))
        found = self._lists.get(keys[0])
        if found is None or len(found.pieces) != len(keys):
            # Hundreds of hashes for one stem, and the same stem again and again.
            places = (epk((key,), self.definition) for key in keys)
            found = Target(tuple(map(one_place, places)))
            if len(self._lists) < LISTS_KEPT:
                self._lists[keys[0]] = found
        return found

    def _interval(self, operation: TimedOperation) -> Interval | None:
        """What a query says of the instant that the key has a bucket of."""
        template = operation.template
        if template is None or template.filters is None:
            return None
        for path in self._made_of:
            bounds = template.filters.ranges.get(path)
            if bounds is not None and UNDEFINED not in (bounds.low, bounds.high):
                return bounds.low, bounds.high
        return None

    def _point(self, values: KeyValues) -> Target:
        place = one_place(epk(values, self.definition))
        return Target((place,), orjson.dumps([_shown(value) for value in values]).decode())


def alternatives(operation: TimedOperation) -> Iterator[Fields]:
    """What may be known: one set of values, or several when a filter lists them."""
    yield from operation.items or (operation.fields,)


def one_place(place: bytes) -> Piece:
    return place, place + b"\x00"


def check_prefix(fields: Fields, paths: Sequence[Path]) -> KeyValues:
    """The leading levels that are known."""
    values: list[JSON] = []
    for path in paths:
        if path not in fields:
            break
        values.append(_component(fields, path))
    return tuple(values)


def nested(fields: Fields) -> dict[str, JSON]:
    """An item with these values: {("a", "b"): 1} → {"a": {"b": 1}}."""
    item: dict[str, JSON] = {}
    for path, value in fields.items():
        here = item
        for step in path[:-1]:
            inner = here.setdefault(step, {})
            if not isinstance(inner, dict):
                break  # the path leads through a value: the longer path is not there
            here = inner
        else:
            here[path[-1]] = value
    return item


def _component(fields: Fields, path: Path) -> JSON:
    value = fields.get(path, UNDEFINED)
    return UNDEFINED if isinstance(value, dict) else value


def _shown(value: JSON) -> JSON:
    return {} if value is UNDEFINED else value
