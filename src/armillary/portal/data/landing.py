"""Where sample keys would land in a new container: which of its hash ranges, by the hash functions
that the server itself uses. Pure; the dialog for a new container draws what this finds.

    samples ──key of each──▶ EPK ──bisect──▶ range 0 1 2 … N-1
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from armillary.encoding.hashing import epk, even_bounds
from armillary.encoding.partition_key import key_of, parse_definition
from armillary.errors import BadInput
from armillary.keys.synthetic import SyntheticKey
from armillary.values import JSON

SAMPLES: Final = 1_000
SHOWN_MAX: Final = 6
FEW: Final = (("de", 55), ("fr", 20), ("nl", 10), ("at", 8), ("ch", 5), ("be", 2))


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """What the dialog has chosen."""

    paths: tuple[str, ...]
    synthetic: Mapping[str, JSON] | None = None

    @property
    def definition(self) -> dict[str, JSON]:
        if self.synthetic is not None:
            return {"paths": [self.synthetic["path"]], "kind": "Hash", "version": 2}
        kind = "MultiHash" if len(self.paths) > 1 else "Hash"
        return {"paths": list(self.paths), "kind": kind, "version": 2}


@dataclass(frozen=True, slots=True)
class Landed:
    key: str
    epk: str
    range: int


@dataclass(frozen=True, slots=True)
class Landing:
    counts: tuple[int, ...]
    """Items per range."""
    keys: int
    """Different keys among the samples."""
    shown: tuple[Landed, ...]
    """The most frequent keys."""

    @property
    def largest_share(self) -> float:
        total = sum(self.counts)
        return max(self.counts) / total if total else 0.0


def land(choice: KeyChoice, samples: Iterable[Mapping[str, JSON]], ranges: int) -> Landing:
    """Raises BadInput for a key that could not be."""
    definition = parse_definition(choice.definition)
    made = None if choice.synthetic is None else SyntheticKey.from_json(dict(choice.synthetic))
    starts = [b"", *even_bounds(definition, ranges)]
    random = Random(1)
    counts = [0] * ranges
    keys: Counter[str] = Counter()
    places: dict[str, Landed] = {}
    for sample in samples:
        item = dict(sample) if made is None else made.apply(sample, random)
        values = key_of(item, definition)
        place = epk(values, definition)
        at = bisect_right(starts, place) - 1
        counts[at] += 1
        text = json.dumps([_shown(one) for one in values], ensure_ascii=False)
        keys[text] += 1
        places.setdefault(text, Landed(text, place.hex().upper(), at))
    shown = tuple(places[text] for text, _ in keys.most_common(SHOWN_MAX))
    return Landing(tuple(counts), len(keys), shown)


def generated(paths: Sequence[str], *, many: bool, count: int = SAMPLES) -> list[dict[str, Any]]:
    """Items with something at each path: a value of its own almost every time, or one of six of
    which one is popular."""
    random = Random(2018)
    names = [name for name, _ in FEW]
    weights = [weight for _, weight in FEW]
    found: list[dict[str, Any]] = []
    for number in range(count):
        item: dict[str, Any] = {"id": f"item-{number}"}
        for depth, path in enumerate(paths):
            value: JSON = f"{path.rsplit('/', 1)[-1]}-{number // 2 ** (len(paths) - 1 - depth)}"
            if not many:
                value = random.choices(names, weights)[0]
            _put(item, path, value)
        found.append(item)
    return found


def own(text: str) -> list[dict[str, Any]]:
    """Items out of a text, one JSON object per line. Raises BadInput."""
    found: list[dict[str, Any]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except json.JSONDecodeError as error:
            raise BadInput(f"Line {number} is not JSON: {error.msg}.") from error
        if not isinstance(item, dict):
            raise BadInput(f"Line {number} is not a JSON object.")
        found.append(item)
    return found


def _put(item: dict[str, Any], path: str, value: JSON) -> None:
    *above, last = path.strip("/").split("/")
    for name in above:
        inner = item.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        item = inner
    item[last] = value


def _shown(value: Any) -> JSON:
    return value if isinstance(value, str | int | float | bool | None) else {}
