"""Choosing among indexes in one snapshot: which of them say, together, which items a filter means.

Of all accesses the one with the fewest entries is read; how many that is, is counted, up to a
bound, because nothing else is as right. Others that are not much larger are read as well, and only
items that all of them find are loaded: an entry costs a fraction of an item. With too many entries
everywhere a scan of the items is as good.

`coverage.py` says which indexes may be used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from armillary.query.access.coverage import covers, other_index
from armillary.query.access.kinds.registry import joint_lookups, placed
from armillary.query.access.lookups import (
    Access,
    Both,
    Either,
    JointLookup,
    Lookup,
    Unplaced,
    single_lookups,
)
from armillary.query.access.rids import (
    FEWEST,
    MANY,
    RID_BYTES,
    WORTH_IT,
    Gathering,
    Way,
    count_exactly,
    entries_of,
    found_by_all,
    is_stream,
)
from armillary.store.index.paths import ARRAY, Path, path_text
from armillary.store.index.plan import path_hash
from armillary.store.rows import layout
from armillary.store.rows.secondary import logical_key, unpack_logical
from armillary.store.rows.shapes import items_with_path
from armillary.store.upkeep.pieces import is_sweep_due

if TYPE_CHECKING:
    from armillary.query.run.items import StoreView

FEW: Final = 200  # entries: not worth asking another index
SOME: Final = 2_000
KEPT_MAX: Final = 100_000  # rids that are kept to count what several indexes have in common


class Choice(msgspec.Struct, frozen=True):
    """How items are found: by every one of the ways, the first of which has the fewest entries."""

    ways: tuple[Way, ...]
    entries: int
    found: frozenset[bytes] | None = None
    """The rids, when all entries were read to choose."""

    @property
    def names(self) -> list[str]:
        """As the metrics tell them."""
        return list(dict.fromkeys(name for way in self.ways for name in names_of(way)))


def names_of(way: Way) -> Iterator[str]:
    if isinstance(way, JointLookup):
        yield way.name
    elif isinstance(way, Lookup | Unplaced):
        yield f"{path_text(way.path)}/?"
    else:
        for part in way.parts:
            yield from names_of(part)


# --- what may be used -----------------------------------------------------------------------------


def usable(view: StoreView, access: Access) -> Access | None:
    """The access without the parts whose paths are not indexed."""
    if isinstance(access, Unplaced):
        return placed(view, access)
    if isinstance(access, Lookup) and access.kind != layout.IX:
        return access if other_index(view, access.kind, access.path) is not None else None
    if isinstance(access, Lookup):
        return access if covers(view, access.path) else None
    parts = [part for each in access.parts if (part := usable(view, each)) is not None]
    if isinstance(access, Either):
        return Either(tuple(parts)) if len(parts) == len(access.parts) else None
    if not parts:
        return None
    return Both(tuple(parts), access.exact and len(parts) == len(access.parts))


# --- choosing -------------------------------------------------------------------------------------


def choose(view: StoreView, accesses: Sequence[Access], most: int = MANY) -> Choice | None:
    """The accesses to read, None when reading all items is as good."""
    if not accesses:
        return None
    everything = _items(view)
    if everything < min(map(_seeks, accesses)):
        return None
    found: list[Way] = [each for access in accesses if (each := usable(view, access)) is not None]
    found += _joint(view, accesses)
    if not found:
        return None
    gathered = [Gathering(view, way) for way in found]
    is_sparse = False
    for bound in sorted({min(FEW, most), min(SOME, most), most}):
        for one in gathered:
            one.go_on(bound)
        if min(one.read for one in gathered) >= everything:
            return None
        small = sorted((one for one in gathered if one.is_done), key=lambda one: one.read)
        if small:
            return _together(small)
        is_sparse = bound == FEW and most >= MANY and _are_sparse(view, gathered)
        if is_sparse:
            break
    streams = tuple(access for access in found if is_stream(access))
    if streams and (is_sparse or everything > 4 * most):
        return Choice(streams, most)
    return None


def _are_sparse(view: StoreView, gathered: list[Gathering]) -> bool:
    """Whether items can be taken from the index as they are needed, without knowing how many there
    are: entries come in the order of rids, and the first of them are far apart.
    """
    if not view.is_whole or not all(is_stream(one.way) for one in gathered):
        return False
    return any(one.spread() >= WORTH_IT * FEW for one in gathered)


def _together(small: list[Gathering]) -> Choice:
    """The smallest, and those whose entries cost less to read than the items that they spare. A
    composite index has said already what the indexes of its paths could say.
    """
    first = small[0]
    ways, known, found = [first.way], _known(first.way), first.found()
    for each in small[1:] if first.read >= FEWEST else ():
        if each.read <= WORTH_IT * first.read and not _known(each.way) & known:
            ways.append(each.way)
            known |= _known(each.way)
            found &= each.found()
    return Choice(tuple(ways), first.read, frozenset(found))


def _known(way: Way) -> frozenset[Path]:
    if isinstance(way, JointLookup):
        return way.paths
    if isinstance(way, Lookup) and way.kind == layout.IX and ARRAY not in way.path:
        return frozenset((way.path,))
    return frozenset()


def _joint(view: StoreView, accesses: Sequence[Access]) -> list[JointLookup]:
    """Indexes for two accesses or more; all items have their entries in them."""
    index = view.state.plan
    if not index.keyed or len(accesses) < 2 or view.meta.stale_items:
        return []
    lookups = single_lookups(accesses)
    for path in [path for path in lookups if path[0] in view.computed]:
        del lookups[path]
    return joint_lookups(index, lookups)


def _items(view: StoreView) -> int:
    if view.piece.key is None:
        return view.meta.items
    row = view.reader.get(logical_key(view.piece.key.epk_key))
    if row is None:
        return 0
    found = unpack_logical(row)
    # Another key with this hash may live here; entries of the index know the hash only.
    return found.items if found.identity == view.piece.key.identity else 0


def _seeks(access: Access) -> int:
    """How often the index has to be asked at least. A thousand keys, each with its id, are a
    thousand small pieces of the ring and a thousand alternatives in each: counting entries in
    every piece would take a million seeks to find a thousand items."""
    match access:
        case Lookup():
            return len(access.ranges)
        case Either(parts):
            return len(parts)
        case Both(parts):
            return min(map(_seeks, parts))
        case Unplaced():
            return 0


def rids(view: StoreView, choice: Choice, start: bytes) -> Iterable[bytes]:
    """The rids that the choice finds, ascending, each once, from `start` on."""
    if choice.found is None:
        return found_by_all(view, choice.ways, start)
    return sorted(rid for rid in choice.found if rid >= start)


# --- answers from the index alone -----------------------------------------------------------------


def nothing_expired(view: StoreView) -> bool:
    """Entries of expired items stay until they are swept; then the index alone can't answer."""
    return not is_sweep_due(view.reader, view.state.definition.default_ttl, view.now_s)


def has_no_items(view: StoreView) -> bool:
    return _items(view) == 0


def count_items(view: StoreView, access: Access | None) -> int | None:
    """How many items an exact access finds (None: all items there are), or None if the index
    can't tell.
    """
    if not nothing_expired(view):
        return None
    if has_no_items(view):
        return 0
    if access is None:
        if view.is_whole:
            return view.meta.items
        return _items(view) if view.piece.key is not None else None
    found = usable(view, access)
    if found is None or not found.exact:
        return _count_joint(view, access)
    if not isinstance(found, Lookup) or not found.counts_items:
        exactly = _count_joint(view, access)
        if exactly is not None:
            return exactly
        return count_exactly(view, found, KEPT_MAX)
    if view.is_whole and found.ranges == (found.model.everything,) and not view.meta.stale_items:
        known = items_with_path(view.reader, path_hash(found.path))
        if known is not None:
            return known
    return sum(1 for _ in entries_of(view, found))


def _count_joint(view: StoreView, access: Access) -> int | None:
    """The entries of a composite index that answers all parts of a filter."""
    parts = access.parts if isinstance(access, Both) and access.exact else ()
    for each in _joint(view, parts):
        if (
            each.exact
            and each.paths == set(single_lookups(parts))
            and len(each.paths) == len(parts)
        ):
            return sum(1 for _ in entries_of(view, each))
    return None


def edge_entry(view: StoreView, path: Path, start: bytes, end: bytes, last: bool) -> bytes | None:
    """The first (or last) term of a path between two bounds."""
    prefix = layout.IX + path_hash(path)
    for key, epk in view.reader.scan(prefix + start, prefix + end, reverse=last):
        if view.is_inside(epk):
            return key[len(prefix) : -RID_BYTES]
    return None
