"""Candidates from the data and the workload (partitioning reference 7.3, last line).

Paths come from what items have; which of them are worth combining follows from what operations know
about the item at once, and from how many values there are. Names of properties decide nothing.

    paths          every property with more than one value
    hierarchical   ordered by how often operations know them, then by how many values they have
    concat         pairs that operations know together
    suffixes       on a path that is too heavy or too hot for one partition, k by the formula of 6.3
    time buckets   on a path whose keys would fill up
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from armillary.advisor.advice.measures import Measured
from armillary.advisor.data.sampled import Sampled
from armillary.advisor.data.timing import TICKS, Clock
from armillary.advisor.keys.candidates import STORED_IN, Candidate, plain, synthetic
from armillary.advisor.keys.naming import names_things
from armillary.advisor.workload.demand import Demand
from armillary.advisor.workload.model import ID, Operation, Workload
from armillary.advisor.workload.targets import LOGICAL_BYTES, OVERLOAD, USABLE, Scale
from armillary.encoding.paths import Path
from armillary.errors import BadInput
from armillary.keys.buckets import UNITS
from armillary.keys.sizing import suffixes_for
from armillary.keys.spec import Part, Suffix
from armillary.limits import SYNTHETIC_SUFFIXES_MAX
from armillary.partition.provisioning.partitions import GB

PATHS_MAX: Final = 24
COMBINED_MAX: Final = 8
PAIRS_MAX: Final = 24
STEMS_MAX: Final = 6
Measure = Callable[[Candidate], Measured]


@dataclass(frozen=True, slots=True)
class Grounds:
    """What candidates are made from."""

    sampled: Sampled
    workload: Workload
    demand: Demand
    clock: Clock
    scale: Scale

    def stored_in(self) -> Path:
        """A property that items do not have."""
        taken = {path[0] for path in self.sampled.survey.seen}
        names = (STORED_IN[0], *(f"{STORED_IN[0]}{number}" for number in range(2, 1000)))
        return (next(name for name in names if name not in taken),)

    def names(self, path: Path) -> bool:
        """Whether its values name something, rather than measure it."""
        return names_things(self.sampled, self.clock, path)

    def known_weight(self, path: Path) -> float:
        """RU/s of the operations, other than of whole items, that know a path."""
        return sum(one.rate for one in self.workload.operations if _knows(one, path))


def _knows(operation: Operation, path: Path) -> bool:
    if operation.kind in ("create", "upsert"):
        return path in operation.by
    return operation.values_of(path) is not None


def single_paths(grounds: Grounds) -> list[Candidate]:
    """Every path with several values, or that operations go by; those first, then by values."""
    columns = grounds.sampled.survey.columns
    usable = [
        path
        for path, column in columns.items()
        if column.distinct > 1 or grounds.known_weight(path) > 0 or grounds.clock.is_time(path)
    ]
    usable.sort(key=lambda path: (-grounds.known_weight(path), -columns[path].distinct, path))
    chosen = usable[:PATHS_MAX]
    if ID in columns and ID not in chosen:
        chosen.append(ID)
    return [plain(path) for path in chosen]


def combinations(grounds: Grounds, singles: dict[Path, Measured]) -> list[Candidate]:
    """Hierarchical keys and concatenations, of the few paths worth it."""
    worth = _worth(grounds, singles)
    levels: list[tuple[Path, ...]] = []
    for above, below in permutations(worth, 2):
        coarse, fine = (singles[path].measures.distinct for path in (above, below))
        if coarse > grounds.sampled.survey.items / 2:
            continue  # hardly two items share it: nothing below it can matter
        if fine > coarse or _together(grounds, above, below):
            levels.append((above, below))
    levels.sort(key=lambda pair: -_pair_weight(grounds, pair))
    triples = [
        (*pair, ID)
        for pair in levels[:4]
        if ID in singles and ID not in pair and singles[ID].measures.presence == 1
    ]
    found = [plain(*paths) for paths in [*levels[:PAIRS_MAX], *triples]]
    stored_in = grounds.stored_in()
    for above, below in levels[:PAIRS_MAX]:
        fine = singles[below].measures.distinct
        if _together(grounds, above, below) and fine <= grounds.sampled.survey.items / 2:
            parts = [Part(above), Part(below)]
            found += _made(parts, None, stored_in, "-")
    return found


def _worth(grounds: Grounds, singles: dict[Path, Measured]) -> list[Path]:
    """Paths that operations know, then those with most values per kind of use."""
    present = [path for path, one in singles.items() if one.measures.presence >= 0.99]
    known = sorted(
        (path for path in present if grounds.known_weight(path) > 0),
        key=lambda path: -grounds.known_weight(path),
    )
    others = sorted(
        (path for path in present if path not in known and not grounds.clock.is_time(path)),
        key=lambda path: (not grounds.names(path), -singles[path].measures.distinct),
    )
    return list(dict.fromkeys([*known[:COMBINED_MAX], *others[:2], *([ID] * (ID in present))]))


def _together(grounds: Grounds, one: Path, other: Path) -> bool:
    return any(
        _knows(operation, one) and _knows(operation, other)
        for operation in grounds.workload.operations
    )


def _pair_weight(grounds: Grounds, pair: tuple[Path, ...]) -> float:
    return sum(grounds.known_weight(path) for path in pair)


# --- synthetic ------------------------------------------------------------------------------------


def suffixed(grounds: Grounds, singles: dict[Path, Measured]) -> list[Candidate]:
    """Keys made of a path that operations know but that one partition can't carry."""
    n = grounds.scale.partitions
    stems = [
        path
        for path, one in singles.items()
        if one.measures.presence >= 0.99
        and one.measures.distinct < 0.5 * grounds.sampled.survey.items
        and (grounds.known_weight(path) > 0 or grounds.clock.is_time(path))
        # Far fewer values than partitions are no natural groups, unless more come every day.
        and (one.measures.distinct_target >= n / 2 or grounds.clock.is_time(path))
        and (
            one.measures.top1_bytes > 1 / n
            or one.measures.heat.share > 1 / n
            or one.measures.largest_key_bytes > LOGICAL_BYTES
        )
    ]
    stems.sort(key=lambda path: -grounds.known_weight(path))
    found: list[Candidate] = []
    stored_in = grounds.stored_in()
    for stem in stems[:STEMS_MAX]:
        k = suffix_count(singles[stem], grounds)
        for source in _sources(grounds, singles, stem):
            suffix = Suffix("computed", k, source)
            found += _made([Part(stem)], suffix, stored_in)
        found += _made([Part(stem)], Suffix("random", k), stored_in)
    return found


def suffix_count(stem: Measured, grounds: Grounds) -> int:
    """k by the formula of the reference, 6.3: from the RU/s and the bytes of the heaviest key."""
    measures, target = stem.measures, grounds.scale
    demand_ru = measures.top1_ru * max(target.throughput_ru, grounds.demand.ideal_ru)
    k = suffixes_for(
        demand_ru,
        ranges=target.suffix_ranges,
        overload=OVERLOAD,
        range_ru=target.range_ru,
        gigabytes_per_key=measures.largest_key_bytes / GB,
        usable=USABLE,
    )
    return min(k, SYNTHETIC_SUFFIXES_MAX)


def _sources(grounds: Grounds, singles: dict[Path, Measured], stem: Path) -> list[Path]:
    """What a suffix may be computed from: what operations know alongside the stem; else the id, or
    whatever has most values."""
    n = grounds.scale.partitions
    fine = [
        path
        for path, one in singles.items()
        if path != stem and one.measures.distinct >= 10 * n and one.measures.presence >= 0.99
        and not grounds.clock.is_time(path)
    ]  # fmt: skip
    known = [path for path in fine if _together(grounds, stem, path)]
    known.sort(key=lambda path: (-grounds.known_weight(path), path))
    if known:
        return known[:3]
    most = sorted(
        fine,
        key=lambda path: (path != ID, not grounds.names(path), -singles[path].measures.distinct),
    )
    return most[:1]


def bucketed(grounds: Grounds, singles: dict[Path, Measured]) -> list[Candidate]:
    """A time bucket after a path whose keys would fill up: the coarsest that keeps them small."""
    axis = grounds.clock.axis
    if axis is None or axis.unit not in UNITS:
        return []
    found: list[Candidate] = []
    for path, one in singles.items():
        measures, n = one.measures, grounds.scale.partitions
        fills = measures.horizon_days < 5 * 365 or measures.largest_key_bytes > LOGICAL_BYTES
        usable = measures.presence >= 0.99 and measures.distinct >= n
        if not fills or not usable or grounds.clock.is_time(path):
            continue
        speed = measures.top1_bytes * grounds.scale.growth_bytes_day / 86_400
        for bucket, tick in TICKS.items():
            if speed * tick <= USABLE * LOGICAL_BYTES:
                parts = [Part(path), Part(axis.path, bucket, axis.unit)]
                found += _made(parts, None, grounds.stored_in())
                break
    return found[:STEMS_MAX]


def _made(
    parts: list[Part], suffix: Suffix | None, stored_in: Path, separator: str = "."
) -> list[Candidate]:
    """None when the specification of keys refuses it: system properties are no parts."""
    try:
        return [synthetic(parts, separator=separator, suffix=suffix, stored_in=stored_in)]
    except BadInput:
        return []
