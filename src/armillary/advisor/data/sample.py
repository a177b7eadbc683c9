"""Some items of the data, in the order in which they lie there, and how many they stand for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from armillary.advisor.workload.places import Fields
from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.encoding.paths import Path
from armillary.values import JSON


@dataclass(frozen=True, slots=True)
class Sample:
    items: Sequence[Fields]
    """The values of each item by path; objects are taken apart, arrays are not."""
    sizes: Sequence[int]
    """Bytes of each as JSON, without the properties that the server writes."""
    total_items: float
    total_bytes: float

    @property
    def scale(self) -> float:
        """How many items each one stands for."""
        return self.total_items / len(self.items) if self.items else 0.0

    @property
    def bytes_scale(self) -> float:
        held = sum(self.sizes)
        return self.total_bytes / held if held else 0.0


def sample_of(
    items: Iterable[Mapping[str, Any]],
    *,
    total_items: float | None = None,
    total_bytes: float | None = None,
) -> Sample:
    """Without totals the sample is all there is."""
    fields, sizes = [], []
    for item in items:
        own = {name: value for name, value in item.items() if name not in SYSTEM_PROPERTIES}
        fields.append(flattened(own))
        sizes.append(len(orjson.dumps(own, default=str)))
    return Sample(fields, sizes, total_items or len(fields), total_bytes or sum(sizes))


def flattened(item: Mapping[str, JSON]) -> dict[Path, JSON]:
    """{"a": {"b": 1}, "c": [2]} → {("a", "b"): 1, ("c",): [2]}."""
    return dict(_leaves(item, ()))


def _leaves(item: Mapping[str, JSON], before: Path) -> Iterator[tuple[Path, JSON]]:
    for name, value in item.items():
        path = (*before, name)
        if isinstance(value, dict) and value:
            yield from _leaves(value, path)
        else:
            yield path, value
