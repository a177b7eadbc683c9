"""Does everything in a space agree? Computes from the items alone what every other row must be.

For tests after a crash, and for `doctor`. It reads a whole space; it changes nothing.
"""

from collections import Counter
from collections.abc import Iterator

import orjson

from armillary.encoding.documents import unpack_header
from armillary.engine.base import Reader
from armillary.store.index.item_rows import index_rows
from armillary.store.index.kinds.registry import KINDS
from armillary.store.index.plan_cache import entries_of, plan_of
from armillary.store.rows import layout
from armillary.store.rows.meta import unpack_meta
from armillary.store.rows.secondary import (
    id_part,
    log_key,
    logical_key,
    split_log_key,
    unpack_log,
    unpack_logical,
    unpack_shape,
)
from armillary.store.rows.shapes import OVERFLOW

DERIVED = (
    layout.ID,
    layout.LR,
    layout.IX,
    layout.CX,
    layout.UX,
    layout.TX,
    *(kind.prefix for kind in KINDS),
)


def problems(reader: Reader, policies: tuple[tuple[int, bytes], ...]) -> list[str]:
    """One line for each thing that does not agree; none when all is well."""
    return list(_problems(reader, policies))


def _problems(reader: Reader, policies: tuple[tuple[int, bytes], ...]) -> Iterator[str]:
    meta = unpack_meta(reader.meta)
    rows: dict[bytes, bytes] = {}
    live_log: set[bytes] = set()
    logical: Counter[bytes] = Counter()
    logical_bytes: Counter[bytes] = Counter()
    shapes: Counter[bytes] = Counter()
    body_bytes = index_bytes = stale = 0
    for key, value in reader.scan(layout.DOC, layout.after(layout.DOC)):
        rid = key[1:]
        header, at = unpack_header(value)
        text = value[at:]
        plan = plan_of(policies, header.policy_version)
        indexed = index_rows(plan, entries_of(plan, text), rid, header)
        item = orjson.loads(text)
        rows[layout.ID + header.epk + id_part(item["id"])] = rid
        rows[layout.LR + header.epk + rid] = b""
        rows |= indexed.rows
        live_log.add(log_key(header.lsn, rid))
        logical[header.epk] += 1
        logical_bytes[header.epk] += len(text) + indexed.size_bytes
        shapes[indexed.entries.shape] += 1
        body_bytes += len(text)
        index_bytes += indexed.size_bytes
        stale += header.policy_version != meta.policy
        if header.lsn > meta.lsn:
            yield f"item {rid.hex()} has LSN {header.lsn}, the space only {meta.lsn}"
    yield from _differences("rows", rows, _derived(reader))
    yield from _differences("log", live_log, _live_log(reader, live_log))
    stored = {k: unpack_logical(v) for k, v in _scan(reader, layout.LP)}
    sizes = {logical_key(epk): (count, logical_bytes[epk]) for epk, count in logical.items()}
    yield from _differences(
        "logical partitions", sizes, {k: (v.items, v.size_bytes) for k, v in stored.items()}
    )
    yield from _shape_problems(reader, shapes, meta.shapes)
    expected = (sum(logical.values()), body_bytes, index_bytes, stale)
    totals = (meta.items, meta.body_bytes, meta.index_bytes, meta.stale_items)
    if expected != totals:
        yield f"totals (items, body, index, stale) are {totals}, counted {expected}"


def _scan(reader: Reader, kind: bytes) -> Iterator[tuple[bytes, bytes]]:
    return reader.scan(kind, layout.after(kind))


def _derived(reader: Reader) -> dict[bytes, bytes]:
    return {key: value for kind in DERIVED for key, value in _scan(reader, kind)}


def _live_log(reader: Reader, expected: set[bytes]) -> set[bytes]:
    """Without outdated entries (feed/log.py): those older than the item, or of none."""
    last = {rid: lsn for lsn, rid in map(split_log_key, expected)}
    found: set[bytes] = set()
    for key, row in _scan(reader, layout.LOG):
        lsn, rid = split_log_key(key)
        if unpack_log(row).is_live and rid in last and lsn >= last[rid]:
            found.add(key)
    return found


def _shape_problems(reader: Reader, shapes: Counter[bytes], known: int) -> Iterator[str]:
    stored = {key: unpack_shape(row)[0] for key, row in _scan(reader, layout.SHAPE)}
    overflow = stored.pop(OVERFLOW, 0)
    if len(stored) != known:
        yield f"{len(stored)} shapes are stored, meta says {known}"
    counted = {layout.SHAPE + shape: count for shape, count in shapes.items()}
    missing = sum(count for key, count in counted.items() if key not in stored)
    if missing != overflow:
        yield f"{missing} items have a shape without a row, the overflow says {overflow}"
    yield from _differences("shapes", {k: v for k, v in counted.items() if k in stored}, stored)


def _differences(what: str, expected: object, stored: object) -> Iterator[str]:
    if expected == stored:
        return
    if isinstance(expected, dict) and isinstance(stored, dict):
        keys = expected.keys() | stored.keys()
        wrong = [key for key in keys if expected.get(key) != stored.get(key)]
    else:
        assert isinstance(expected, set)
        assert isinstance(stored, set)
        wrong = list(expected ^ stored)
    for key in sorted(wrong)[:10]:
        side = "missing" if key not in stored else "wrong" if key in expected else "not expected"
        yield f"{what}: {key.hex()} is {side}"
    if len(wrong) > 10:
        yield f"{what}: {len(wrong) - 10} more"
