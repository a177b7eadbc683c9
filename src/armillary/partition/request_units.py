"""What an operation costs, in request units. Plain numbers in, one number out.

    read      k·R(kb)
    create    W(new)          + 0.2·terms added
    replace   W(old) + W(new) + 0.2·(terms removed + terms added)      patch: + 0.4 per path
    delete    W(old)          + 0.2·terms removed
    query     k·(2.5·ranges + 0.10·results + 0.0074·loaded kb + 0.058·result kb + 0.019·calls)

R and W are curves through published points, straight between them; kb counts 1,024 bytes of the
user's body; k is 2 for strong and bounded-staleness reads. Every number stands in one
`Coefficients` value, and `docs/request-units.md` shows how far to trust each of them. An operation
has the same charge every time it does the same work: nothing here looks at a clock or the machine.

Who counts bytes, leaves and ranges is the store; who compares the sum with a budget is
`admission.py`. The sum of a batch is the sum of its parts.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from armillary.limits import KB


@dataclass(frozen=True, slots=True)
class Curve:
    """RU by size: flat up to the first point, straight between points, and on along the last
    segment beyond them (only protocols with items over 2 MB get there).
    """

    points: tuple[tuple[int, float], ...]
    """(kb, RU), ascending; at least two."""
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _values: tuple[float, ...] = field(init=False, repr=False, compare=False)
    _slopes: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts = tuple(kb * KB for kb, _ in self.points)
        values = tuple(ru for _, ru in self.points)
        slopes = tuple(
            (values[i + 1] - values[i]) / (starts[i + 1] - starts[i])
            for i in range(len(starts) - 1)
        )
        object.__setattr__(self, "_starts", starts)
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_slopes", (*slopes, slopes[-1]))

    def at(self, size_bytes: float) -> float:
        # HOT: once per item read or written.
        starts = self._starts
        if size_bytes <= starts[0]:
            return self._values[0]
        i = bisect_right(starts, size_bytes) - 1
        return self._values[i] + (size_bytes - starts[i]) * self._slopes[i]


_KB = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
_READ = (1.00, 1.04, 1.14, 1.33, 1.67, 2.19, 4.76, 9.95, 20.28, 40.95, 145.90, 291.80)
# The published table begins with 4.95; 5.00 makes the published worked examples exact.
_WRITE = (5.00, 6.29, 6.67, 7.04, 9.52, 11.23, 22.67, 48.19, 98.29, 184.57, 625.00, 1250.00)


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Every number of the formula. Units: RU per whatever the name says."""

    read: Curve = Curve(tuple(zip(_KB, _READ, strict=True)))
    write: Curve = Curve(tuple(zip(_KB, _WRITE, strict=True)))
    strong_factor: float = 2.0
    """For reads, feeds and queries at strong or bounded staleness: two replicas are read."""
    miss: float = 1.0
    """A read that finds nothing (404) or nothing new (304)."""
    throttled: float = 0.38
    """Shown on a refused request, not taken from any budget."""
    term: float = 0.2
    terms_per_leaf: float = 2.0
    unique_key: float = 0.2
    patched_path: float = 0.4
    feed_page_min: float = 1.0
    query_range: float = 2.5
    query_result: float = 0.10
    query_loaded_kb: float = 0.0074
    query_result_kb: float = 0.058
    query_call: float = 0.019
    query_step: float = 0.001
    """One step of work inside an item (an element joined, or looked at by a function) beyond those
    that are free. Ours: so that long queries are throttled as many short ones are."""
    query_result_read: float = 0.0
    """How much of a point read each result costs: nothing, or (classic) all of it."""
    script_ms: float = 0.01
    script_min: float = 1.0
    metadata_read: float = 1.0
    metadata_write: float = 2.0


DEFAULT = Coefficients()

#: Plan-style sums with the older round figures: 100 KB is 10 RU to read and 50 to write, and a
#: thousand results of 1 KB are 1,000 RU.
CLASSIC = Coefficients(
    read=Curve(((1, 1.0), (100, 10.0))),
    write=Curve(((1, 5.0), (100, 50.0))),
    query_result=0.0,
    query_loaded_kb=0.0,
    query_result_kb=0.0,
    query_call=0.0,
    query_step=0.001,
    query_result_read=1.0,
)

PROFILES: dict[str, Coefficients] = {"default": DEFAULT, "classic": CLASSIC}


@lru_cache(maxsize=8)
def at_strong(profile: Coefficients) -> Coefficients:
    """The same prices at strong or bounded staleness: code that is given it prices reads, feeds and
    queries without asking for the level; writes cost the same at every level."""
    factor = profile.strong_factor
    return replace(
        profile,
        read=Curve(tuple((kb, ru * factor) for kb, ru in profile.read.points)),
        strong_factor=1.0,
        miss=profile.miss * factor,
        query_range=profile.query_range * factor,
        query_result=profile.query_result * factor,
        query_loaded_kb=profile.query_loaded_kb * factor,
        query_result_kb=profile.query_result_kb * factor,
        query_call=profile.query_call * factor,
        query_step=profile.query_step * factor,
    )


# --- reads ----------------------------------------------------------------------------------------


def read_ru(body_bytes: int, *, strong: bool = False, profile: Coefficients = DEFAULT) -> float:
    ru = profile.read.at(body_bytes)
    return ru * profile.strong_factor if strong else ru


def miss_ru(*, strong: bool = False, profile: Coefficients = DEFAULT) -> float:
    return profile.miss * profile.strong_factor if strong else profile.miss


def feed_ru(
    bodies_bytes: Iterable[int], *, strong: bool = False, profile: Coefficients = DEFAULT
) -> float:
    """One page of a change feed or of a list of items."""
    ru = sum(map(profile.read.at, bodies_bytes))
    return max(profile.feed_page_min, ru * profile.strong_factor if strong else ru)


def query_ru(
    ranges: int,
    out_docs: int,
    loaded_bytes: int,
    out_bytes: int,
    scalar_calls: int = 0,
    steps: int = 0,
    *,
    strong: bool = False,
    profile: Coefficients = DEFAULT,
) -> float:
    """One page of a query. `ranges`: physical partitions whose index this page was the first to
    consult, so that the pages of a query add up to the query; an index-only answer loads 0 bytes.
    `steps`: work inside items beyond what every query may do for nothing.
    """
    ru = (
        profile.query_range * ranges
        + profile.query_result * out_docs
        + profile.query_loaded_kb * loaded_bytes / KB
        + profile.query_result_kb * out_bytes / KB
        + profile.query_call * scalar_calls
        + profile.query_step * steps
    )
    if profile.query_result_read and out_docs:
        # The mean size stands for each: exact when all results, or none, are below 1 KB, because
        # the classic curve is one line.
        ru += profile.query_result_read * out_docs * profile.read.at(out_bytes / out_docs)
    return ru * profile.strong_factor if strong else ru


# --- writes: the same at every consistency level --------------------------------------------------


def create_ru(
    body_bytes: int, leaves: int, unique_keys: int = 0, *, profile: Coefficients = DEFAULT
) -> float:
    """`leaves`: values of the item that the indexing policy includes."""
    return profile.write.at(body_bytes) + _index_ru(leaves, unique_keys, profile)


def delete_ru(
    body_bytes: int, leaves: int, unique_keys: int = 0, *, profile: Coefficients = DEFAULT
) -> float:
    """A delete, also one by expiry."""
    return profile.write.at(body_bytes) + _index_ru(leaves, unique_keys, profile)


def replace_ru(
    old_bytes: int,
    new_bytes: int,
    leaves_removed: int,
    leaves_added: int,
    unique_keys: int = 0,
    *,
    profile: Coefficients = DEFAULT,
) -> float:
    """A replace, or an upsert of an item that was there. Only leaves that changed count."""
    sizes = profile.write.at(old_bytes) + profile.write.at(new_bytes)
    return sizes + _index_ru(leaves_removed + leaves_added, unique_keys, profile)


def patch_ru(
    old_bytes: int,
    new_bytes: int,
    leaves_removed: int,
    leaves_added: int,
    modified_paths: int,
    unique_keys: int = 0,
    *,
    profile: Coefficients = DEFAULT,
) -> float:
    return (
        replace_ru(old_bytes, new_bytes, leaves_removed, leaves_added, unique_keys, profile=profile)
        + profile.patched_path * modified_paths
    )


def _index_ru(leaves: int, unique_keys: int, profile: Coefficients) -> float:
    return profile.term * profile.terms_per_leaf * leaves + profile.unique_key * unique_keys


# --- the rest -------------------------------------------------------------------------------------


def script_ru(inner_ru: float, script_ms: float, *, profile: Coefficients = DEFAULT) -> float:
    """A stored procedure or trigger: what it did, and the CPU time it used."""
    return max(profile.script_min, inner_ru + profile.script_ms * script_ms)


def metadata_ru(*, write: bool = False, profile: Coefficients = DEFAULT) -> float:
    """A call about databases, containers or throughput; paid from the account's own budget."""
    return profile.metadata_write if write else profile.metadata_read


def rounded(ru: float) -> float:
    """As the response header says it. Budgets are charged with the exact number."""
    return round(ru, 2)
