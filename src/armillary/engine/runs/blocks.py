"""Blocks: sorted entries as one value of at most a page, and the key each block lies under.

    key      F1, run(4), bound          every key of the block < bound <= every key of the next one
    value    form(1), checksum(4), msgpack
             form 3  [[key, …], [value or nil, …]]
             form 4  [width, [key and value in one, …]]      no tombstones, all values as wide

The entries of a block are of one kind (the first byte of their keys). Form 4 is for what nearly all
of them are, rows whose value is as long as the others': such entries are read, merged, sorted and
written as one object each. It is used only where the joined entries sort as their keys do.

The checksum is the beginning of a MurmurHash3 of 128 bits, which takes a third of the time of a
CRC32: every block that is merged pays for one when it is read and one when it is written. Forms 1
and 2, which are read, are the same with a CRC32.

A bound is a beginning of the key that follows it, long enough to be above the one before. One
longer than `BOUND_BYTES_MAX` is cut and followed by the number of the block in its run, so that
blocks keep their order; a search then walks over the few blocks that share the cut bound.

A value of up to 4,080 bytes fills one overflow page of LMDB exactly. Nothing here knows LMDB.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice
from operator import ge, gt, itemgetter
from typing import Final, TypeAlias
from zlib import crc32

import msgspec
from mmh3 import mmh3_x64_128_digest as murmur_128

from armillary.engine.base import Row
from armillary.errors import DataDamaged

#: Sorted keys, and their values in the same order. None: a tombstone.
Entries: TypeAlias = tuple[list[bytes], list[bytes | None]]

#: Keys that begin with F0 to FF belong to the engine.
FIRST_OWN: Final = 0xF0
DIRECTORY_KEY: Final = b"\xf0"
BLOCK: Final = b"\xf1"
END: Final = b"\xf0"  # above every key of a caller

PAGE_BYTES: Final = 4_080
BOUND_BYTES_MAX: Final = 490
FEW: Final = 4  # entries of a lone write, laid over older ones one by one
SHORT: Final = 24  # bytes of two keys that are looked at first
COUNTED: Final = 500  # entries that are counted at once where the lengths of some differ
PLAIN_FORM: Final = 3
JOINED_FORM: Final = 4
#: Earlier ones, with a CRC32.
CRC_PLAIN_FORM: Final = 1
CRC_JOINED_FORM: Final = 2

_HEAD: Final = struct.Struct(">B4s")
_PLAIN_HEAD: Final = bytes((PLAIN_FORM,))
_JOINED_HEAD: Final = bytes((JOINED_FORM,))
_RUN: Final = struct.Struct(">I")
_SEQUENCE: Final = struct.Struct(">Q")
_encode = msgspec.msgpack.Encoder().encode
_decode_plain = msgspec.msgpack.Decoder(tuple[list[bytes], list[bytes | None]]).decode
_decode_joined = msgspec.msgpack.Decoder(tuple[int, list[bytes]]).decode
#: Alongside the entries: form, checksum, and at most 11 bytes of msgpack.
_HEAD_BYTES_MAX: Final = 5 + 11
#: Bytes of msgpack alongside each entry, while keys and values are below 256 bytes.
_JOINED_EXTRA: Final = 2
_PLAIN_EXTRA: Final = 4


class Block:
    """Sorted entries of one kind: of a block, or of as many as are being written."""

    __slots__ = ("joined", "rows", "values", "width")

    def __init__(
        self,
        keys: list[bytes],
        values: list[bytes | None],
        joined: list[bytes] | None = None,
        width: int = 0,
    ) -> None:
        """Either keys and values, or `joined`: key and value in one, values `width` wide, and no
        `values`."""
        #: Keys, with their values behind them or not: the first byte is the kind.
        self.rows = keys if joined is None else joined
        self.values = values
        self.joined = joined
        self.width = width

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, at: int) -> bytes:
        row = self.rows[at]
        return row[: len(row) - self.width]

    def kinds(self) -> tuple[int, int]:
        """The first and the last kind of its entries, of which there is one."""
        return self.rows[0][0], self.rows[-1][0]

    @property
    def has_tombstones(self) -> bool:
        return self.joined is None and None in self.values

    def find(self, key: bytes, low: int = 0) -> int:
        """How many entries have a smaller key. None of the first `low` has a greater one."""
        joined, width = self.joined, self.width
        if joined is None:
            return bisect_left(self.rows, key, low)
        at = bisect_left(joined, key, low)
        # A key that `key` begins with is smaller, but may not look so with its value behind it.
        while width and at < len(joined) and joined[at][:-width] < key:
            at += 1
        return at

    # HOT: once per run of every short query.
    def span(self, start: bytes, end: bytes) -> tuple[int, int, bool]:
        """Where the entries from `start` to before `end` begin and end, and whether others follow
        them here: then no later block has more of them."""
        if self.width:
            at = self.find(start)
            after = self.find(end, at)
            return at, after, after < len(self)
        keys = self.rows
        at = bisect_left(keys, start)
        after = bisect_left(keys, end, at)
        return at, after, after < len(keys)

    def part(self, first: int, last: int) -> Entries:
        """Keys and values of these entries."""
        joined, width = self.joined, self.width
        if joined is None:
            return self.rows[first:last], self.values[first:last]
        rows = joined[first:last]
        if width == 0:
            return rows, [b""] * len(rows)
        return [row[:-width] for row in rows], [row[-width:] for row in rows]

    def alive_rows(self, first: int, last: int) -> list[Row]:
        """Those of them that are no tombstones."""
        joined, width = self.joined, self.width
        if joined is None:
            keys, values = self.rows[first:last], self.values[first:last]
            return [
                (key, value) for key, value in zip(keys, values, strict=True) if value is not None
            ]
        if width == 0:
            return [(row, b"") for row in joined[first:last]]
        return [(row[:-width], row[-width:]) for row in joined[first:last]]

    def alive(self, first: int, last: int) -> Entries:
        """As `part`, for a caller who asks of a value only whether it is a tombstone."""
        joined, width = self.joined, self.width
        if joined is None:
            return self.rows[first:last], self.values[first:last]
        rows = joined[first:last]
        return ([row[:-width] for row in rows] if width else rows), rows  # type: ignore[return-value]

    def cut(self, first: int, last: int) -> Block:
        """These entries only."""
        if self.joined is not None:
            return Block([], [], self.joined[first:last], self.width)
        return Block(self.rows[first:last], self.values[first:last])


def run_prefix(run: int) -> bytes:
    return BLOCK + _RUN.pack(run)


def block_key(run: int, bound: bytes, sequence: int) -> bytes:
    """`sequence` is the number of the block in its run."""
    if len(bound) > BOUND_BYTES_MAX:
        bound = bound[:BOUND_BYTES_MAX] + _SEQUENCE.pack(sequence)
    return BLOCK + _RUN.pack(run) + bound


def seek_key(prefix: bytes, key: bytes) -> bytes:
    """The first block at or after this may have keys >= `key`; none before it has. `prefix`: of the
    run."""
    return prefix + key[:BOUND_BYTES_MAX] + b"\x00"


def seek_key_below(prefix: bytes, end: bytes) -> bytes:
    """The first block at or after this, or the last one before it, may have the greatest key
    < `end`; none after those has one."""
    if len(end) > BOUND_BYTES_MAX:
        end = end[:BOUND_BYTES_MAX] + b"\xff" * (_SEQUENCE.size + 1)
    return prefix + end


def bound_between(last: bytes, following: bytes) -> bytes:
    """A short key that is above `last` and not above `following`: nearly always a beginning of one
    of these lengths, else the shortest there is."""
    if last[:12] != following[:12]:
        return following[:12]
    if last[:SHORT] != following[:SHORT]:
        return following[:SHORT]
    size = min(len(last), len(following))
    differ = int.from_bytes(last[:size], "big") ^ int.from_bytes(following[:size], "big")
    same = size - (differ.bit_length() + 7) // 8
    return following[: same + 1]


# --- one block --------------------------------------------------------------------------------


# HOT: once per block that is merged or not in the cache.
def decode_block(value: bytes, key: bytes = b"") -> Block:
    """Raises DataDamaged when the bytes are not those that were written."""
    form = check_block(value, key)
    body = memoryview(value)[_HEAD.size :]
    if form in (JOINED_FORM, CRC_JOINED_FORM):
        width, joined = _decode_joined(body)
        return Block([], [], joined, width)
    return Block(*_decode_plain(body))


# HOT: once per block that is searched.
def check_block(value: bytes, key: bytes = b"") -> int:
    """The same without decoding: its form. Each key is whole somewhere in the bytes of its
    block."""
    if value[1:5] == murmur_128(value[5:])[:4] and value[0] in (JOINED_FORM, PLAIN_FORM):
        return value[0]
    if len(value) >= _HEAD.size:
        form, checksum = _HEAD.unpack_from(value)
        is_crc = form in (CRC_JOINED_FORM, CRC_PLAIN_FORM)
        if is_crc and checksum == crc32(memoryview(value)[_HEAD.size :]).to_bytes(4, "big"):
            return int(form)
    raise DataDamaged(
        "A block of index rows is damaged: its checksum does not agree. "
        "Run `armillary doctor`, then restore a backup or index the container again.",
        block=key.hex(),
    )


# --- many entries -----------------------------------------------------------------------------
# HOT: once per entry of every flush and merge, so no Python statement runs per entry.


def of_entries(keys: list[bytes], values: list[bytes | None]) -> list[Block]:
    """Sorted entries, of which no two have one key, by their kind."""
    blocks: list[Block] = []
    at, count = 0, len(keys)
    while at < count:
        kind = keys[at][0]
        end = count
        if keys[-1][0] != kind:
            end = bisect_left(keys, bytes((kind + 1,)), at)
        blocks.append(_of_one_kind(keys[at:end], values[at:end]))
        at = end
    return blocks


def of_joined(lists: Iterable[tuple[list[bytes], int]]) -> list[Block]:
    """The same of lists of joined rows, each of one kind and in any order, with how wide its values
    are. Of rows with one key the last stays. The lists may be changed."""
    kinds: dict[int, list[tuple[list[bytes], int]]] = {}
    for rows, width in lists:
        kinds.setdefault(rows[0][0], []).append((rows, width))
    return [_of_joined_kind(kinds[kind]) for kind in sorted(kinds)]


def _of_joined_kind(lists: list[tuple[list[bytes], int]]) -> Block:
    width = lists[0][1]
    if all(one == width for _, one in lists):
        rows = lists[0][0] if len(lists) == 1 else [row for rows, _ in lists for row in rows]
        rows.sort()  # cheap: one or some sorted stretches
        if _has_own_keys(rows, width):
            return Block([], [], rows, width)
    found: dict[bytes, bytes | None] = {}
    for rows, width in lists:
        found.update((row[: len(row) - width], row[len(row) - width :]) for row in rows)
    keys = sorted(found)
    return _of_one_kind(keys, [found[key] for key in keys])


def _has_own_keys(rows: list[bytes], width: int) -> bool:
    """Whether the keys of these sorted joined rows are in order too, and no two the same."""
    keys = [*map(itemgetter(slice(None, -width)), rows)] if width else rows
    return not any(map(ge, keys, islice(keys, 1, None)))


def _of_one_kind(keys: list[bytes], values: list[bytes | None]) -> Block:
    if None not in values:
        widths = set(map(len, values))  # type: ignore[arg-type]
        if len(widths) == 1:
            joined = [key + value for key, value in zip(keys, values, strict=True)]  # type: ignore[operator]
            if not any(map(gt, joined, islice(joined, 1, None))):
                return Block([], [], joined, widths.pop())
    return Block(keys, values)


def put_together(sources: Sequence[Iterable[Block]], *, tombstones: bool) -> list[Block]:
    """Blocks of several sources, the newest source first, as one of each kind. `tombstones`:
    whether they stay. The blocks are used up."""
    kinds: dict[int, list[Block]] = {}
    for source in reversed(sources):
        for block in source:
            rows = block.rows
            if not rows:
                continue
            kind = rows[0][0]
            if rows[-1][0] == kind:
                known = kinds.get(kind)
                if known is None:
                    kinds[kind] = [block]
                else:
                    known.append(block)
                continue
            # Blocks of earlier versions may be of several kinds.
            for one in of_entries(*block.part(0, len(block))):
                kinds.setdefault(one.kinds()[0], []).append(one)
    found: list[Block] = []
    for kind in sorted(kinds):
        block = _joined_together(kinds[kind]) or _laid_over(kinds[kind], tombstones)
        if len(block):
            found.append(block)
    return found


def _joined_together(blocks: list[Block]) -> Block | None:
    """None: not all of them are joined and as wide, or a key is in two of them."""
    width = blocks[0].width
    rows: list[bytes] = []
    for block in blocks:
        if block.joined is None or block.width != width:
            return None
        rows += block.joined
    if len(blocks) > 1:
        rows.sort()  # cheap: some sorted stretches
        if not _has_own_keys(rows, width):
            return None
    return Block([], [], rows, width)


def _laid_over(blocks: list[Block], tombstones: bool) -> Block:
    """Oldest first: newer entries hide older ones."""
    keys, values = _apart(blocks[0])
    if tombstones and len(blocks) == 2 and len(blocks[1]) <= FEW:
        for key, value in zip(*_apart(blocks[1]), strict=True):
            at = bisect_left(keys, key)
            if at < len(keys) and keys[at] == key:
                values[at] = value
            else:
                keys.insert(at, key)
                values.insert(at, value)
        return _of_one_kind(keys, values)
    found: dict[bytes, bytes | None] = dict(zip(keys, values, strict=True))
    for block in islice(blocks, 1, None):
        found.update(zip(*_apart(block), strict=True))
    if not tombstones:
        found = {key: value for key, value in found.items() if value is not None}
    keys = sorted(found)
    return _of_one_kind(keys, [*map(found.__getitem__, keys)])


def _apart(block: Block) -> Entries:
    """Keys and values of a block that is not used any more: its lists may change."""
    return (block.rows, block.values) if block.joined is None else block.part(0, len(block))


def cut_blocks(entries: Sequence[Block], last_bound: bytes) -> list[tuple[bytes, bytes]]:
    """(bound, value) of each block of a page, in order. All keys are below `last_bound`."""
    firsts: list[bytes] = []
    lasts: list[bytes] = []
    values: list[bytes] = []
    room = PAGE_BYTES - _HEAD_BYTES_MAX
    for block in entries:
        rows, width, joined = block.rows, block.width, block.joined
        start, count, extra = 0, len(rows), _PLAIN_EXTRA if joined is None else _JOINED_EXTRA
        ends: list[int] = []
        while start < count:
            # As many as would fit if all were as long as the first: nearly always so it is.
            size = len(rows[start]) + extra
            end = min(start + (room // size or 1), count)
            if end < count and (joined is None or len(rows[end - 1]) + extra != size):
                end, value = _counted_page(block, start, extra, ends)
            else:
                value = _encode_part(block, start, end)
                more = PAGE_BYTES - len(value) - 2  # the head of more than 15 entries is longer
                if (more < -2 and end - start > 1) or (
                    end < count and len(rows[end]) + extra <= more
                ):
                    end, value = _counted_page(block, start, extra, ends)
            values.append(value)
            first, last = rows[start], rows[end - 1]
            if width and joined is not None:
                first, last = first[:-width], last[:-width]
            firsts.append(first)
            lasts.append(last)
            start = end
    if not values:
        return []
    bounds = [*map(bound_between, lasts, islice(firsts, 1, None)), last_bound]
    return list(zip(bounds, values, strict=True))


def _counted_page(block: Block, start: int, extra: int, ends: list[int]) -> tuple[int, bytes]:
    """A block of as many entries as fit, and where they end. `ends`: where each joined row ends, in
    bytes, filled when first needed: in a short list, as of a group, lengths differ in most pages,
    in a long one in few."""
    if block.joined is None or len(block) > COUNTED:
        return _page(block, start, extra)
    if not ends:
        ends += accumulate(map(len, block.rows))
    count, room = len(ends), PAGE_BYTES - _HEAD_BYTES_MAX + (ends[start - 1] if start else 0)
    most = bisect_right(ends, room, start) - start
    end = max(start + 1, bisect_right(ends, room - extra * most, start))
    while end < count and ends[end] + extra * (end + 1 - start) <= room:
        end += 1
    value = _encode_part(block, start, end)
    if len(value) > PAGE_BYTES and end - start > 1:
        return _page(block, start, extra + 1)  # rows of 256 bytes and more are among them
    return end, value


def _page(block: Block, start: int, extra: int) -> tuple[int, bytes]:
    """A block of as many entries as fit, and where they end."""
    end = _page_end(block, start, extra)
    value = _encode_part(block, start, end)
    if len(value) > PAGE_BYTES and end - start > 1:
        return _page(block, start, extra + 1)  # rows of 256 bytes and more are among them
    return end, value


def _encode_part(block: Block, start: int, end: int) -> bytes:
    if block.joined is None:
        body = _encode((block.rows[start:end], block.values[start:end]))
        return b"".join((_PLAIN_HEAD, murmur_128(body)[:4], body))
    body = _encode((block.width, block.rows[start:end]))
    return b"".join((_JOINED_HEAD, murmur_128(body)[:4], body))


def _page_end(block: Block, start: int, extra: int) -> int:
    """Behind as many entries from `start` on as fit a page, and behind one at least. `extra`: bytes
    of each beside key and value. As many are added up at once as would fit if all were as long as
    the first or the last of them, until none fits: neighbours are nearly always alike."""
    rows, values, count = block.rows, block.values, len(block.rows)
    end, room = start, PAGE_BYTES - _HEAD_BYTES_MAX
    while end < count and (some := room // (len(rows[end]) + extra)) > 0:
        after = min(end + some, count)
        if len(rows[after - 1]) > len(rows[end]):
            some = room // (len(rows[after - 1]) + extra) or 1
            after = min(end + some, count)
        room -= sum(map(len, rows[end:after])) + extra * (after - end)
        if values:
            room -= sum(map(len, filter(None, values[end:after])))
        end = after
    while room < 0:
        end -= 1
        room += len(rows[end]) + extra + (len(values[end] or b"") if values else 0)
    return max(end, start + 1)
