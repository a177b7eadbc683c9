"""What a generated workload asks for: which key next, and the items that carry it.

    uniform   every key alike                       the good case
    zipf      a few keys much, most keys little     as users and products are
    hot       nine of ten requests to one key       what no throughput can help
    time      the key is the minute                 all writes of a minute on one partition

Randomness and time come in, so a seed makes the same workload again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from random import Random
from typing import Any, Final, Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["uniform", "zipf", "hot", "time"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
ABOUT: Final[Mapping[Kind, tuple[str, str]]] = {
    "uniform": ("Uniform", "Every key is asked for as often as the others: what a good key does."),
    "zipf": ("Zipf", "A few keys get most of the requests, as with users, products and tenants."),
    "hot": ("One hot key", "Nine of ten requests go to one key. It lives on one partition."),
    "time": (
        "Time-ordered",
        "The key is the minute: all writes of a minute meet on one partition.",
    ),
}
HOT_SHARE: Final = 0.9
KEYS_MAX: Final = 100_000
RATE_MAX: Final = 1_000
ITEM_BYTES_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Workload:
    kind: Kind = "hot"
    rate: float = 50.0
    """Requests per second."""
    reads_percent: float = 20.0
    keys: int = 1_000
    item_bytes: int = 1_000

    def __post_init__(self) -> None:
        for name, low, high in (
            ("rate", 0, RATE_MAX),
            ("reads_percent", 0, 100),
            ("keys", 1, KEYS_MAX),
            ("item_bytes", 0, ITEM_BYTES_MAX),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                words = name.replace("_", " ")
                raise ValueError(f"{words} is between {low:,} and {high:,}, not {value:,}.")


class KeyChooser:
    def __init__(self, workload: Workload, random: Random, now_s: Callable[[], float]) -> None:
        self._workload = workload
        self._random = random
        self._now_s = now_s
        self._weights: list[float] = []
        if workload.kind == "zipf":
            self._weights = list(accumulate(1 / rank for rank in range(1, workload.keys + 1)))

    def next(self) -> str:
        keys = self._workload.keys
        match self._workload.kind:
            case "uniform":
                return _name(self._random.randrange(keys))
            case "zipf":
                at = self._random.random() * self._weights[-1]
                return _name(bisect_left(self._weights, at))
            case "hot":
                hot = self._random.random() < HOT_SHARE
                return _name(0 if hot else self._random.randrange(keys))
            case "time":
                return datetime.fromtimestamp(self._now_s(), UTC).strftime("%Y-%m-%dT%H:%M")


def _name(number: int) -> str:
    return f"key-{number:05}"


@dataclass(frozen=True, slots=True)
class Target:
    """How items of a container carry their key."""

    paths: tuple[str, ...]
    is_synthetic: bool = False
    """The server computes the key of these properties; the key itself is not sent."""

    def item(self, key: str, id: str, item_bytes: int) -> dict[str, Any]:
        made: dict[str, Any] = {"id": id}
        for level, path in enumerate(self.paths):
            _put(made, path, key if level == 0 else f"{key}/{level}")
        made["filler"] = "x" * max(0, item_bytes - 200)
        return made

    def key(self, key: str) -> list[Any]:
        if self.is_synthetic:
            return [{}]
        return [key if level == 0 else f"{key}/{level}" for level in range(len(self.paths))]


def target_of(partition_key: Sequence[str], synthetic: Mapping[str, Any] | None) -> Target:
    if not synthetic:
        return Target(tuple(partition_key))
    paths = [str(one) for one in synthetic.get("parts", ())]
    suffix = synthetic.get("suffix") or {}
    if suffix.get("source"):
        paths.append(str(suffix["source"]))
    return Target(tuple(dict.fromkeys(paths)), is_synthetic=True)


def key_of(item: Mapping[str, Any], partition_key: Sequence[str]) -> list[Any]:
    """The key of an item as the server has stored it."""
    found = []
    for path in partition_key:
        value: Any = item
        for name in _names(path):
            value = value.get(name, {}) if isinstance(value, Mapping) else {}
        found.append(value)
    return found


def _put(item: dict[str, Any], path: str, value: str) -> None:
    *way, last = _names(path)
    for name in way:
        item = item.setdefault(name, {})
    if last != "id":  # an item keys itself: its id is its key
        item[last] = value


def _names(path: str) -> list[str]:
    return [one.strip('"') for one in path.strip("/").split("/")]
