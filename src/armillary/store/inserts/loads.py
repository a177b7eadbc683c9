"""Many independent new items of any logical partitions of a space as one command of lists.

    caller   columns_of   what each item has, in lists; range entries of all items in their order
    writer   look         ids that are taken, keys that collide: those items go the general path
             add          rows of the others in one walk, entries as one sorted list
             count        meta, logical partitions, shapes
    caller   Loaded       what each of them became, from numbers that begin with the first one's

An operation of its own costs an item as much as its rows do: an object at both ends, a dictionary
of rows, a place to be sorted to. Here a row of an index is one string from the caller's sort to the
block it is written in. Each item is a change with an LSN of its own, as in `items.bulk`; which rows
that leaves is compared by tests/property/test_loads.py.

Not for items with a time to live, unique keys, composite or other indexes, a cut id, or a
condition: `is_plain`.
"""

from __future__ import annotations

from binascii import b2a_base64
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from armillary.encoding.documents import FORMAT_VERSION, HEADER, finish_json
from armillary.encoding.etags import etag_bytes, etag_text, format_etag
from armillary.encoding.rids import item_rid
from armillary.engine.base import Handler, Row, Writer
from armillary.errors import DbError
from armillary.store.index.entries import PATH, Entries, paths_of
from armillary.store.items import operations
from armillary.store.items.requests import Context, Done, Key, Op, Refusal, to_refusal
from armillary.store.items.totals import Added
from armillary.store.items.transaction import Work
from armillary.store.rows import layout
from armillary.store.rows.meta import COUNTER_BITS
from armillary.store.rows.secondary import is_cut, pack_created
from armillary.values import JSON

LOAD: Final = "items.load"
KINDS: Final = frozenset({"create", "upsert"})


class Load(NamedTuple):
    """By position of the item, but for `keys`, `entries` and `places`."""

    kind: str
    """create or upsert"""
    keys: list[Key]
    """Of the logical partitions."""
    owners: list[int]
    """Which of them."""
    id_parts: list[bytes]
    texts: list[bytes]
    shapes: list[bytes]
    leaves: list[int]
    index_bytes: list[int]
    """Of its range entries, with their rids."""
    entries: list[bytes]
    """Of all items, sorted; equal ones by position."""
    places: list[int]
    """Whose each of them is."""


LoadData: TypeAlias = tuple[Context, Load, bool]
"""With whether the caller wants the items that were there as they are stored."""


class Loaded(NamedTuple):
    """Items that went the general path, or were refused, are in the dictionaries; the others are
    creates whose LSNs, rids and etags follow these numbers, in the order of their positions."""

    lsn: int
    rid: int
    etags: int
    ts: int
    others: dict[int, Done]
    refused: dict[int, Refusal]


# --- the caller's side ----------------------------------------------------------------------------


def is_plain(op: Op) -> bool:
    """Whether an operation may go as a line of lists."""
    entries = op.entries
    return (
        op.kind in KINDS
        and entries is not None
        and not (entries.cx or entries.ux or entries.others or op.ttl)
        and op.if_match is None
        and op.if_none_match is None
        and op.expect_lsn is None
        and not (op.rid or op.etag or is_cut(op.id_part))
    )


# HOT: once per item of a bulk load; sorting its entries is most of it.
def columns_of(pairs: Sequence[tuple[Key, Op]]) -> Load:
    """Plain operations of one kind."""
    numbers: dict[bytes, int] = {}
    keys: list[Key] = []
    owners: list[int] = []
    for key, _ in pairs:
        owner = numbers.setdefault(key.identity, len(keys))
        if owner == len(keys):
            keys.append(key)
        owners.append(owner)
    ops = [op for _, op in pairs]
    found: list[Any] = [op.entries for op in ops]
    ix: list[list[bytes]] = [one.ix for one in found]
    shapes = [one.shape for one in found]
    entries, places = _sorted_alike(ix, shapes) or _sorted(ix)
    return Load(
        ops[0].kind,
        keys,
        owners,
        [op.id_part for op in ops],
        [op.text for op in ops],
        shapes,
        [one.leaves for one in found],
        [sum(map(len, one)) + 8 * len(one) for one in ix],
        entries,
        places,
    )


def _sorted(ix: list[list[bytes]]) -> tuple[list[bytes], list[int]]:
    """The entries of all items in order, and whose each is."""
    entries = [entry for one in ix for entry in one]
    places = [at for at, one in enumerate(ix) for _ in one]
    order = sorted(range(len(entries)), key=entries.__getitem__)
    return [*map(entries.__getitem__, order)], [*map(places.__getitem__, order)]


def _sorted_alike(
    ix: list[list[bytes]], shapes: list[bytes]
) -> tuple[list[bytes], list[int]] | None:
    """The same of items that have the same paths in the same order, as those of one program have: a
    path at a time, which is quicker. None: they have not."""
    if len(set(shapes)) > 1 or len(set(map(len, ix))) > 1:
        return None
    paths: list[tuple[bytes, list[bytes], list[int]]] = []
    for column in zip(*ix, strict=True):
        order = sorted(range(len(column)), key=column.__getitem__)
        entries = [*map(column.__getitem__, order)]
        path = entries[0][: PATH.stop]
        if not entries[-1].startswith(path):
            return None
        paths.append((path, entries, order))
    paths.sort()
    if any(one[0] == other[0] for one, other in pairwise(paths)):
        return None
    return (
        [entry for _, entries, _ in paths for entry in entries],
        [at for _, _, order in paths for at in order],
    )


class Answers:
    """What became of each item of a load."""

    __slots__ = ("_apart", "_context", "_leaves", "_loaded", "_sizes", "_texts")

    def __init__(self, context: Context, load: Load, wants_text: bool) -> None:
        self._context = context
        self._leaves = load.leaves
        self._sizes = [*map(len, load.texts)]
        self._texts = load.texts if wants_text else None
        self._loaded: Loaded | None = None
        self._apart: list[int] = []

    def take(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._apart = sorted((*loaded.others, *loaded.refused))

    def at(self, position: int) -> Done | Refusal:
        loaded = self._loaded
        assert loaded is not None
        number = self._number(position)
        if not number:
            return loaded.others.get(position) or loaded.refused[position]
        text, etag = b"", ""
        if self._texts is not None:
            name, link, etag = self._names(loaded, number)
            text = finish_json(self._texts[position], name, link, etag, loaded.ts)
        size, leaves = self._sizes[position], self._leaves[position]
        return Done("created", text, etag, loaded.lsn + number, 0, size, 0, leaves)

    def finish(self, position: int, item: dict[str, JSON]) -> dict[str, JSON] | None:
        """`item`, as it was prepared, with what its text at that position has besides; None if it
        went the general path. The reference is `at`."""
        loaded = self._loaded
        assert loaded is not None
        number = self._number(position)
        if not number:
            return None
        name, link, etag = self._names(loaded, number)
        item["_rid"] = name
        item["_self"] = link
        item["_etag"] = f'"{etag}"'
        item["_attachments"] = "attachments/"
        item["_ts"] = loaded.ts
        return item

    def _number(self, position: int) -> int:
        """Which of the new items it is, from 1; 0: none of them."""
        apart = self._apart
        if not apart:
            return position + 1
        before = bisect_left(apart, position)
        if before < len(apart) and apart[before] == position:
            return 0
        return position - before + 1

    def _names(self, loaded: Loaded, number: int) -> tuple[str, str, str]:
        """Rid, link and etag."""
        rid = loaded.rid + number
        name = item_rid(self._context.container, rid)
        etag = format_etag(loaded.etags + number, rid >> COUNTER_BITS, loaded.ts)
        return name, f"{self._context.self_prefix}{name}/", etag


# --- the writer's side ----------------------------------------------------------------------------


def run_alone(tx: Writer, data: LoadData) -> Loaded:
    (answer,) = run_many(tx, [data])
    if isinstance(answer, DbError):
        raise answer
    return answer


def run_many(tx: Writer, many: Sequence[LoadData]) -> list[Loaded | DbError]:
    return operations.run_group(tx, many, _run)


def _run(work: Work, load: Load, wants_text: bool) -> Loaded | DbError:
    meta = work.meta
    number = meta.ordinal << COUNTER_BITS | meta.rids
    loaded = Loaded(work.lsn - 1, number, meta.etags, work.ts, {}, {})
    heads = [layout.ID + key.epk_key for key in load.keys]
    ids = [heads[owner] + part for owner, part in zip(load.owners, load.id_parts, strict=True)]
    apart = _in_the_way(work, load, ids)
    if not apart:
        if _add(work, load, ids):
            return loaded
        apart = range(len(ids))
    elif len(apart) < len(ids):
        held = frozenset(apart)
        free = [at for at in range(len(ids)) if at not in held]
        if not _add(work, _only(load, free), [ids[at] for at in free]):
            apart = range(len(ids))
    ops = _operations(load, apart)
    for at, op in zip(apart, ops, strict=True):
        answer = operations.run_apart(work, load.keys[load.owners[at]], op)
        if isinstance(answer, DbError):
            loaded.refused[at] = to_refusal(answer)
        else:
            loaded.others[at] = answer if wants_text else replace(answer, text=b"")
    return loaded


def _in_the_way(work: Work, load: Load, ids: list[bytes]) -> Sequence[int]:
    """Positions of items that are there, or whose key may not be: all, if two are the same."""
    if len(set(ids)) < len(ids) or len({key.epk_key for key in load.keys}) < len(load.keys):
        return range(len(ids))
    work.know_logical(load.keys)
    there = work.tx.get_many(ids)
    apart = [at for at, rid in enumerate(there) if rid is not None] if any(there) else []
    collide: set[int] = set()
    for number, key in enumerate(load.keys):
        known = work.logical(key.epk_key)
        if known is not None and known.identity != key.identity:
            collide.add(number)
    if collide:
        apart += (at for at, owner in enumerate(load.owners) if owner in collide)
        apart = sorted(set(apart))
    return apart


def _only(load: Load, wanted: Sequence[int]) -> Load:
    """The load of these items, with all its keys."""
    new = {at: number for number, at in enumerate(wanted)}
    left = [(e, new[at]) for e, at in zip(load.entries, load.places, strict=True) if at in new]
    return load._replace(
        owners=[load.owners[at] for at in wanted],
        id_parts=[load.id_parts[at] for at in wanted],
        texts=[load.texts[at] for at in wanted],
        shapes=[load.shapes[at] for at in wanted],
        leaves=[load.leaves[at] for at in wanted],
        index_bytes=[load.index_bytes[at] for at in wanted],
        entries=[entry for entry, _ in left],
        places=[at for _, at in left],
    )


def _operations(load: Load, wanted: Sequence[int]) -> list[Op]:
    """The same as operations."""
    ix: dict[int, list[bytes]] = {at: [] for at in wanted}
    for entry, at in zip(load.entries, load.places, strict=True):
        if at in ix:
            ix[at].append(entry)
    return [
        Op(
            load.kind,
            (name := load.id_parts[at][1:].decode()),
            load.id_parts[at],
            text=load.texts[at],
            new_id=name,
            new_id_part=load.id_parts[at],
            entries=Entries(ix=ix[at], leaves=load.leaves[at], shape=load.shapes[at]),
        )
        for at in wanted
    ]


# HOT: once per item of a bulk load; one flat loop, as in `inserts/handler.py`.
def _add(work: Work, load: Load, ids: list[bytes]) -> bool:
    """Rows of new items whose ids are free. False: too large for a partition, nothing changed."""
    meta, context, plan = work.meta, work.context, work.plan
    lsn, ts = work.lsn - 1, work.ts
    number, etags = meta.ordinal << COUNTER_BITS | meta.rids, meta.etags
    container, self_prefix = context.container, context.self_prefix.encode()
    item_rid(container, number + len(ids))  # checks the last of them
    tag_end = etag_bytes(0, meta.ordinal, ts)[6:]
    shown_end = etag_text(etag_bytes(0, meta.ordinal, ts))[13:]
    end = f'{shown_end}\\"","_attachments":"attachments/","_ts":{ts}}}'.encode()
    ts_entry = b"" if plan.ts_prefix is None else plan.ts_prefix + plan.model.term(ts)
    ts_bytes = len(ts_entry) + 8 if ts_entry else 0
    pack, policy, doc, log = HEADER.pack, context.policy, layout.DOC, layout.LOG
    lr = layout.LR
    heads = [(key.epk_key, key.digest, pack_created(ts, key.epk_key)) for key in load.keys]
    added = [Added() for _ in heads]
    rows: dict[bytes, bytes] = {}
    tails: list[bytes] = []
    in_partition: list[bytes] = []
    body_bytes = 0
    for owner, id_row, text, index_bytes in zip(
        load.owners, ids, load.texts, load.index_bytes, strict=True
    ):
        epk_key, digest, log_row = heads[owner]
        number += 1
        etags += 1
        lsn += 1
        rid = number.to_bytes(8, "big")
        tag = etags.to_bytes(6, "big")
        name = b2a_base64(container + rid[::-1], newline=False).replace(b"/", b"-")
        head = pack(
            FORMAT_VERSION, 0, lsn, 0, ts, 0, policy, len(text), tag + tag_end, digest,
            len(epk_key),
        )  # fmt: skip
        whole = b'%b%b%b,"_rid":"%b","_self":"%b%b/","_etag":"\\"%b%b' % (
            head, epk_key, text[:-1], name, self_prefix, name, tag.hex("-", -4).encode(), end
        )  # fmt: skip
        rows[doc + rid] = whole
        rows[id_row] = rid
        rows[log + lsn.to_bytes(8, "big") + rid] = log_row
        tails.append(rid + epk_key)
        in_partition.append(lr + epk_key + rid)
        one = added[owner]
        size = len(whole) - HEADER.size - len(epk_key)
        body_bytes += size
        one.items += 1
        one.size_bytes += size + index_bytes + ts_bytes
        one.lsn = lsn
    index_total = sum(load.index_bytes) + ts_bytes * len(ids)
    if not work.has_room(load.keys, added, body_bytes + index_total):
        return False
    entries = [entry + tails[at] for entry, at in zip(load.entries, load.places, strict=True)]
    at = 0
    if ts_entry:
        at = bisect_left(entries, ts_entry)
        entries[at:at] = [ts_entry + tail for tail in tails]
    width = len(tails[0]) - 8
    tx = work.tx
    tx.put_many(rows)
    if all(len(epk_key) == width for epk_key, _, _ in heads):
        tx.put_joined(entries, width)
    else:
        places = [*load.places]
        places[at:at] = range(len(ids)) if ts_entry else ()
        widths = [len(tail) - 8 for tail in tails]
        tx.put_many(
            {
                row[: -widths[place]]: row[-widths[place] :]
                for row, place in zip(entries, places, strict=True)
            }
        )
    in_partition.sort()
    tx.put_joined(in_partition, 0)
    work.count_added(load.keys, added, body_bytes, index_total, _shapes_of(work, load))
    return True


def _shapes_of(work: Work, load: Load) -> list[tuple[bytes, int, partial[frozenset[bytes]]]]:
    """How many items have each shape, and what gives its paths."""
    return [
        (shape, count, partial(_paths_of, work, load, shape))
        for shape, count in Counter(load.shapes).items()
        if shape
    ]


def _paths_of(work: Work, load: Load, shape: bytes) -> frozenset[bytes]:
    first = load.shapes.index(shape)
    ix = [entry for entry, at in zip(load.entries, load.places, strict=True) if at == first]
    return paths_of(work.plan, Entries(ix=ix))


# --- what an engine with round trips can fetch ahead --------------------------------------------


def _keys_of(data: LoadData) -> list[bytes]:
    load = data[1]
    keys = [layout.LP + key.epk_key for key in load.keys]
    return [layout.META, *keys, *(layout.SHAPE + shape for shape in set(load.shapes))]


def _vias_of(data: LoadData) -> list[Row]:
    load = data[1]
    return [
        (layout.ID + load.keys[owner].epk_key + part, layout.DOC)
        for owner, part in zip(load.owners, load.id_parts, strict=True)
    ]


def _never(data: LoadData) -> bool:
    return False


HANDLERS: dict[str, Handler] = {LOAD: Handler(run_alone, _keys_of, _vias_of, _never, run_many)}
