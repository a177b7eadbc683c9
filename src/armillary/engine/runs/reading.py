"""Reading over runs and tree: the newest word on a key counts.

    source: (run, from, up to)     chunks of entries in order, a block at a time
    merged: from every source a chunk; up to the least of their last keys everything is known,
            so that part is put together (older first, newer over it), sorted and given out

Chunks are lists and are put together by dict and sort, so that no Python code runs per row.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Final, TypeAlias

from armillary.engine.base import Row, after
from armillary.engine.runs.area import Area
from armillary.engine.runs.blocks import (
    BOUND_BYTES_MAX,
    END,
    Block,
    Entries,
    check_block,
    decode_block,
    put_together,
    run_prefix,
    seek_key,
    seek_key_below,
)
from armillary.engine.runs.cache import BlockCache, Whole
from armillary.engine.runs.directory import Directory, Run

Part: TypeAlias = tuple[Run, bytes, bytes, bytes, bytes]
"""(run, from, up to, what the keys of its blocks begin with, the name that it is kept whole under:
empty where it is too large for that)"""
Chunks: TypeAlias = Iterator[Entries]
Spans: TypeAlias = Iterator[tuple[Block, int, int]]
"""Entries of a block from one place to before another."""

TREE_ROWS: Final = 64  # of the tree, in one chunk
SPAN_FIRST: Final = 16  # of a run, in the first chunk; later ones are larger
#: Entries of a run that is kept whole once it was looked at as often as it has blocks: then a look
#: takes a fifth of the time of one at a block. To put so many together takes 5 ms.
KEPT_ENTRIES: Final = 20_000
_BLOCKS: Final = Struct(">I")


class RunReader:
    """Runs of one space in one snapshot. `cache` only for snapshots of what is committed."""

    __slots__ = ("area", "cache", "directory", "parts")

    def __init__(
        self,
        area: Area,
        directory: Directory,
        cache: BlockCache | None,
        parts: list[Part] | None = None,
    ) -> None:
        """`parts`: those of the directory, if they are known."""
        self.area = area
        self.directory = directory
        self.parts = parts_of(directory) if parts is None else parts
        self.cache = cache

    def get(self, key: bytes) -> bytes | None:
        for part in self.parts:
            run, low, high, prefix, name = part
            if low <= key < high:
                whole = self._whole(part) if name else None
                if whole is not None:
                    block = whole.get(key[0])
                    at = 0 if block is None else block.find(key)
                    if block is not None and at < len(block) and block.key(at) == key:
                        return block.part(at, at + 1)[1][0]
                    continue
                found = self._block_from(run, prefix, key)
                while found is not None:
                    where, block = found
                    at = block.find(key)
                    if at < len(block):
                        keys, values = block.part(at, at + 1)
                        if keys[0] == key:
                            return values[0]
                        break
                    found = self._block_after(run, prefix, where)
        return self.area.get(key) if self.directory.tree else None

    def chunks(self, start: bytes, end: bytes, reverse: bool) -> Iterator[list[Row]]:
        """Rows of packed kinds from `start` to before `end`, in lists."""
        has_tree = self.directory.tree
        if len(self.parts) == 1 and not has_tree:
            return _alone(self._spans(self.parts[0], start, end, reverse), reverse)
        near = None if reverse else self._near(start, end, TREE_ROWS, values=True)
        if near is not None:
            return _put_together(near)
        sources: list[Chunks] = []
        for part in self.parts:
            if start < part[2] and part[1] < end:
                sources.append(_parts_of(self._spans(part, start, end, reverse)))
        if has_tree:
            sources.append(self._tree(start, end, reverse))
        return merged(sources, reverse)

    # HOT: every short query, and every hop of a graph once for each vertex. There are few entries,
    # usually in one block of each run, and a generator would cost more than they do.
    def _near(self, start: bytes, end: bytes, limit: int, *, values: bool) -> list[Entries] | None:
        """What lies between, from the oldest to the newest; None when it goes on over several
        blocks of a run and there are `limit` entries or more. Without `values` they only say what
        is a tombstone."""
        found: list[Entries] = []
        if self.directory.tree:
            rows = self.area.rows(start, end, limit)
            if len(rows) >= limit:
                return None
            if rows:
                found.append(([key for key, _ in rows], [value for _, value in rows]))
        first_from = self.area.first_from
        kind, same = start[0] if start else 0, end <= _after(start)
        for part in reversed(self.parts):
            run, low, high, prefix, name = part
            first = start if start > low else low
            last = end if end < high else high
            if first >= last:
                continue
            if name and same and (whole := self._whole(part)) is not None:
                if (one := whole.get(kind)) is not None:
                    at, after, _ = one.span(first, last)
                    if at < after:
                        found.append(one.part(at, after) if values else one.alive(at, after))
                continue
            where, count = first_from(seek_key(prefix, first), prefix), 0
            while where is not None:
                block = self._load(run, where)
                at, after, ends = block.span(first, last)
                if at < after:
                    found.append(block.part(at, after) if values else block.alive(at, after))
                if ends:
                    break
                count += after - at
                if count >= limit:
                    return None
                where = first_from(where + b"\x00", prefix)
        return found

    def few(self, start: bytes, end: bytes, limit: int) -> list[bytes] | None:
        """The keys from `start` to before `end`; None when there may be `limit` or more."""
        chunks = self._near(start, end, limit, values=False)
        if chunks is None:
            return None
        if len(chunks) == 1 and None not in chunks[0][1]:  # nothing has to be put together
            alive = chunks[0][0]
        else:
            latest: dict[bytes, bytes | None] = {}
            for keys, values in chunks:
                latest.update(zip(keys, values, strict=True))
            alive = [key for key, value in latest.items() if value is not None]
        return alive if len(alive) < limit else None

    # HOT: every hop of a graph, with a prefix for each vertex. Most blocks have little of a prefix
    # or nothing, so that decoding one costs ten times as much as searching its bytes.
    def tails(self, prefixes: Sequence[bytes], size: int, limit: int) -> set[bytes] | None:
        """`Reader.tails`. A row that a newer run has deleted is among them, and so may be bytes
        inside of a key or value that look like the beginning of one."""
        found: set[bytes] = set()
        wanted = sorted(prefixes)
        for part in self.parts:
            _, low, high, begin, name = part
            there = wanted
            if low or high != END:
                there = [prefix for prefix in wanted if prefix < high and after(prefix) > low]
            whole = self._whole(part) if name else None
            if whole is None:
                self._search(begin, there, size, limit, found)
            else:
                _search_whole(whole, there, size, found)
            if len(found) > limit:
                return None
        if self.directory.tree:
            for prefix in wanted:
                rows = self.area.rows(prefix, after(prefix), limit + 1)
                found.update(key[len(prefix) : len(prefix) + size] for key, _ in rows)
        return None if len(found) > limit else found

    def _search(
        self, begin: bytes, prefixes: Sequence[bytes], size: int, limit: int, found: set[bytes]
    ) -> None:
        """In the bytes of the blocks that may have them, whose keys begin with `begin`; no further
        once there are too many. From the end of a block: `rfind` takes half the time of `find`,
        since it looks for the first byte of a prefix, which is rare, and `find` for the last."""
        first_row, add = self.area.first_row, found.add
        for prefix in prefixes:
            skip = len(prefix)
            cut = begin + (prefix if skip <= BOUND_BYTES_MAX else prefix[:BOUND_BYTES_MAX])
            row = first_row(cut + b"\x00", begin)
            while row is not None:
                where, value = row
                check_block(value, where)
                at = value.rfind(prefix)
                while at >= 0:
                    at += skip
                    add(value[at : at + size])
                    at = value.rfind(prefix, 0, at - 1)
                # Only where the bound begins with it too can the next block have more.
                if not where.startswith(cut):
                    break
                if len(found) > limit:
                    return
                row = first_row(where + b"\x00", begin)

    # --- one run -----------------------------------------------------------------------------

    def _whole(self, part: Part) -> Whole | None:
        """All entries of a small run, by kind; None: look block by block, as for a run that has not
        been looked at as often as it has blocks: it may be merged before it pays.

        Only of a run that is no part of a merge, because an input loses its blocks. One that was
        kept before it became an input has more than counts; the caller looks from `low` on."""
        cache = self.cache
        if cache is None:
            return None
        run, low, high, prefix, name = part
        known = cache.get_whole(name)
        if known is None and not low and high == END and cache.is_wanted(name, run.blocks):
            area = self.area
            where = area.first_from(prefix, prefix)
            blocks, stored = [], 0
            while where is not None:
                value = area.value()
                stored += len(value)
                blocks.append(decode_block(value, where))
                where = area.first_from(where + b"\x00", prefix)
            kinds = {one.kinds()[0]: one for one in put_together([blocks], tombstones=True)}
            known = Whole(kinds, stored)
            cache.put_whole(name, known)
        return known

    def _spans(self, part: Part, start: bytes, end: bytes, reverse: bool) -> Spans:
        """Its entries in scan order, the first few by themselves: they may be all that is
        wanted."""
        run, low, high, prefix, name = part
        first, last = max(start, low), min(end, high)
        if first >= last:
            return iter(())
        if name and end <= _after(start) and (whole := self._whole(part)) is not None:
            block = whole.get(start[0])
            return iter(()) if block is None else _spans_of(block, first, last, reverse)
        if reverse:
            return self._descending(run, prefix, first, last)
        return self._ascending(run, prefix, first, last)

    def _ascending(self, run: Run, prefix: bytes, start: bytes, end: bytes) -> Spans:
        found = self._block_from(run, prefix, start)
        size = SPAN_FIRST
        while found is not None:
            where, block = found
            first, last, ends = block.span(start, end)
            while first < last:
                after = min(last, first + size)
                yield block, first, after
                size = max(size, 4 * (after - first))
                first = after
            if ends:
                return
            found = self._block_after(run, prefix, where)

    def _descending(self, run: Run, prefix: bytes, start: bytes, end: bytes) -> Spans:
        """Spans from the last to the first; each is ascending in itself."""
        area, size = self.area, SPAN_FIRST
        where = area.first_from(seek_key_below(prefix, end), prefix)
        if where is None:
            where = area.last_below(run_prefix(run.number + 1), prefix)
        while where is not None:
            block = self._load(run, where)
            first, last, _ = block.span(start, end)
            while first < last:
                before = max(first, last - size)
                yield block, before, last
                size = max(size, 4 * (last - before))
                last = before
            if first > 0:
                return
            where = area.last_below(where, prefix)

    def _block_from(self, run: Run, prefix: bytes, key: bytes) -> tuple[bytes, Block] | None:
        where = self.area.first_from(seek_key(prefix, key), prefix)
        return None if where is None else (where, self._load(run, where))

    def _block_after(self, run: Run, prefix: bytes, where: bytes) -> tuple[bytes, Block] | None:
        following = self.area.first_from(where + b"\x00", prefix)
        return None if following is None else (following, self._load(run, following))

    def _load(self, run: Run, where: bytes) -> Block:
        """The block under the cursor, which stands at `where`."""
        if self.cache is None:
            return decode_block(self.area.value(), where)
        name = run.nonce + where
        known = self.cache.get(name)
        if known is None:
            value = self.area.value()
            known = decode_block(value, where)
            self.cache.put(name, known, len(value))
        return known

    def _tree(self, start: bytes, end: bytes, reverse: bool) -> Chunks:
        while start < end:
            if reverse:
                rows = self.area.rows_below(start, end, TREE_ROWS)
            else:
                rows = self.area.rows(start, end, TREE_ROWS)
            if not rows:
                return
            yield [key for key, _ in rows], [value for _, value in rows]
            if len(rows) < TREE_ROWS:
                return
            if reverse:
                end = rows[0][0]
            else:
                start = rows[-1][0] + b"\x00"


def _search_whole(whole: Whole, prefixes: Sequence[bytes], size: int, found: set[bytes]) -> None:
    for prefix in prefixes:
        block = whole.get(prefix[0])
        if block is not None:
            rows, skip = block.rows, len(prefix)
            at = bisect_left(rows, prefix)
            while at < len(rows) and rows[at].startswith(prefix):
                found.add(rows[at][skip : skip + size])
                at += 1


def parts_of(directory: Directory) -> list[Part]:
    """What counts of each run, newest first."""
    return [
        (
            run,
            low,
            high,
            run_prefix(run.number),
            run.nonce + _BLOCKS.pack(run.blocks) if run.entries <= KEPT_ENTRIES else b"",
        )
        for run, low, high in directory.parts()
    ]


def _after(key: bytes) -> bytes:
    """Above every key of the kind of this one."""
    return bytes((key[0] + 1,)) if key and key[0] < 0xFF else b""


# HOT: every scan of a space that has one run, as after a load: nothing has to be merged.
def _alone(spans: Spans, reverse: bool) -> Iterator[list[Row]]:
    for block, first, last in spans:
        rows = block.alive_rows(first, last)
        if reverse:
            rows.reverse()
        if rows:
            yield rows


def _spans_of(block: Block, start: bytes, end: bytes, reverse: bool) -> Spans:
    """Of a run that is kept whole."""
    first, last, _ = block.span(start, end)
    size = SPAN_FIRST
    while first < last:
        if reverse:
            yield block, max(first, last - size), last
            last -= size
        else:
            yield block, first, min(last, first + size)
            first += size
        size *= 4


def _parts_of(spans: Spans) -> Chunks:
    return (block.part(first, last) for block, first, last in spans)


def _put_together(entries: Sequence[Entries]) -> Iterator[list[Row]]:
    """`entries` from the oldest to the newest."""
    if len(entries) == 1:
        return _alive(*entries[0], False)
    found: dict[bytes, bytes | None] = {}
    for keys, values in entries:
        found.update(zip(keys, values, strict=True))
    keys = sorted(found)
    return _alive(keys, [found[key] for key in keys], False)


def merged(sources: Sequence[Chunks], reverse: bool) -> Iterator[list[Row]]:
    """`sources` from the newest to the oldest; each gives chunks in scan order."""
    if len(sources) == 1:
        for keys, values in sources[0]:
            yield from _alive(keys, values, reverse)
        return
    step = _lower_part if reverse else _upper_part
    held: list[tuple[Chunks, Entries]] = []
    for source in sources:
        chunk = next(source, None)
        if chunk is not None:
            held.append((source, chunk))
    while held:
        if len(held) == 1:
            source, (keys, values) = held[0]
            yield from _alive(keys, values, reverse)
            for keys, values in source:
                yield from _alive(keys, values, reverse)
            return
        found, held = step(held)
        keys = sorted(found)
        yield from _alive(keys, [found[key] for key in keys], reverse)


Held: TypeAlias = list[tuple[Chunks, Entries]]


def _upper_part(held: Held) -> tuple[dict[bytes, bytes | None], Held]:
    """Everything up to the least last key, and what is left."""
    limit = min(entries[0][-1] for _, entries in held)
    return _cut(held, lambda keys: (0, bisect_right(keys, limit)))


def _lower_part(held: Held) -> tuple[dict[bytes, bytes | None], Held]:
    limit = max(entries[0][0] for _, entries in held)
    return _cut(held, lambda keys: (bisect_left(keys, limit), len(keys)))


def _cut(
    held: Held, part: Callable[[list[bytes]], tuple[int, int]]
) -> tuple[dict[bytes, bytes | None], Held]:
    found: dict[bytes, bytes | None] = {}
    left: Held = []
    for source, (keys, values) in reversed(held):  # oldest first: newer ones overwrite
        first, last = part(keys)
        found.update(zip(keys[first:last], values[first:last], strict=True))
        rest = keys[:first] + keys[last:]
        following: Entries | None = rest, values[:first] + values[last:]
        if not rest:
            following = next(source, None)
        if following is not None:
            left.append((source, following))
    left.reverse()
    return found, left


def _alive(keys: list[bytes], values: list[bytes | None], reverse: bool) -> Iterator[list[Row]]:
    """The rows that are not tombstones, as one list in scan order; nothing when there is none."""
    rows = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
    if rows:
        if reverse:
            rows.reverse()
        yield rows
