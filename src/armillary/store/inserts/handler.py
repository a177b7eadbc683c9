"""The writer's side: all rows of many new items in one walk, totals once.

    look    is any of the ids taken?            yes: the general path (`items/atomic.py`)
    add     rows of every item                  too large for its partition: the general path
    count   meta, logical partition, shapes

`rows_of` makes the rows that `Work.add_item` makes: tests/property/test_inserts.py compares them.
"""

from binascii import b2a_base64
from collections import Counter
from collections.abc import Sequence

from armillary.encoding.documents import FORMAT_VERSION, HEADER
from armillary.encoding.etags import etag_bytes, etag_text
from armillary.encoding.rids import item_rid
from armillary.engine.base import Handler, Row, Writer
from armillary.errors import DbError
from armillary.store.index.entries import Entries
from armillary.store.inserts.requests import InsertAnswer, InsertData, NewItems, creates
from armillary.store.items import atomic, operations
from armillary.store.items.requests import Key
from armillary.store.items.transaction import Work
from armillary.store.rows import layout
from armillary.store.rows.meta import COUNTER_BITS
from armillary.store.rows.secondary import expiry_key, log_key, pack_created

INSERT = "items.insert"


def run_alone(tx: Writer, data: InsertData) -> InsertAnswer:
    (answer,) = run_many(tx, [data])
    if isinstance(answer, DbError):
        raise answer
    return answer


def run_many(tx: Writer, many: Sequence[InsertData]) -> list[InsertAnswer | DbError]:
    return operations.run_group(tx, many, _run_or_one_by_one)


def _run_or_one_by_one(work: Work, key: Key, items: NewItems) -> InsertAnswer | DbError:
    if _are_added(work, key, items):
        return (None,)
    each = atomic.run_on(work, key, creates(items))
    return each if isinstance(each, DbError) else (each[1],)


def _are_added(work: Work, key: Key, items: NewItems) -> bool:
    """False: something is in the way of one of them, nothing has changed."""
    if not _is_free(work, key, items):
        return False
    try:
        _add(work, key, items)
    except DbError:
        return False
    work.advance()
    return True


def _is_free(work: Work, key: Key, items: NewItems) -> bool:
    known = work.logical(key.epk_key)
    if known is not None and known.identity != key.identity:
        return False
    prefix = layout.ID + key.epk_key
    rows = [prefix + part for part in items.id_parts]
    return len(set(rows)) == len(rows) and not any(work.tx.get_many(rows))


def _add(work: Work, key: Key, items: NewItems) -> None:
    rows, body_bytes, index_bytes = rows_of(work, key, items)
    firsts = dict(zip(reversed(items.shapes), reversed(items.ix), strict=True))
    counts = Counter(items.shapes)
    work.add_rows(
        key,
        rows,
        len(items.texts),
        body_bytes,
        index_bytes,
        [(Entries(ix=firsts[shape], shape=shape), count) for shape, count in counts.items()],
    )


# HOT: once per item of an insert of many; one flat loop; numbers in bench/mongo.py. Tags and names
# are those of `etags.py` and `rids.py`, with what all items share taken out of the loop.
def rows_of(work: Work, key: Key, items: NewItems) -> tuple[dict[bytes, bytes], int, int]:
    """The rows of all items; the bytes of their texts, and of their rows in indexes."""
    meta, context, plan = work.meta, work.context, work.plan
    epk_key, lsn, ts = key.epk_key, work.lsn, work.ts
    number, etags = meta.ordinal << COUNTER_BITS | meta.rids, meta.etags
    container, self_prefix = context.container, context.self_prefix.encode()
    item_rid(container, number + len(items.texts))  # checks the last of them
    tag_end = etag_bytes(0, meta.ordinal, ts)[6:]
    shown_end = etag_text(etag_bytes(0, meta.ordinal, ts))[13:]
    end = f'{shown_end}\\"","_attachments":"attachments/","_ts":{ts}}}'.encode()
    ts_entry = b"" if plan.ts_prefix is None else plan.ts_prefix + plan.model.term(ts)
    log_head, log_row = log_key(lsn, b""), pack_created(ts, epk_key)
    lr, ids, doc = layout.LR + epk_key, layout.ID + epk_key, layout.DOC
    pack, policy, digest, epk_bytes = HEADER.pack, context.policy, key.digest, len(epk_key)
    rids = [one.to_bytes(8, "big") for one in range(number + 1, number + len(items.texts) + 1)]
    wholes: list[bytes] = []
    for rid, text, ttl in zip(rids, items.texts, items.ttls, strict=True):
        etags += 1
        tag = etags.to_bytes(6, "big")
        name = b2a_base64(container + rid[::-1], newline=False).replace(b"/", b"-")
        shown = tag.hex("-", -4).encode()
        head = pack(
            FORMAT_VERSION, 0, lsn, 0, ts, ttl, policy, len(text), tag + tag_end, digest, epk_bytes
        )  # fmt: skip
        wholes.append(b'%b%b%b,"_rid":"%b","_self":"%b%b/","_etag":"\\"%b%b' % (
            head, epk_key, text[:-1], name, self_prefix, name, shown, end
        ))  # fmt: skip
    # A kind of row after the other, as the engine sorts them: nearly sorted is quickly sorted.
    rows: dict[bytes, bytes] = {}
    index_bytes = 0
    for rid, whole in zip(rids, wholes, strict=True):
        rows[doc + rid] = whole
    for rid, part in zip(rids, items.id_parts, strict=True):
        rows[ids + part] = rid
    for rid in rids:
        rows[lr + rid] = b""
    for rid, entries in zip(rids, items.ix, strict=True):
        for entry in entries:
            rows[entry + rid] = epk_key
            index_bytes += len(entry) + 8
    if ts_entry:
        index_bytes += len(rids) * (len(ts_entry) + 8)
        for rid in rids:
            rows[ts_entry + rid] = epk_key
    if any(items.ttls):
        for rid, ttl in zip(rids, items.ttls, strict=True):
            if ttl > 0:
                expiry = expiry_key(ts + ttl, rid)
                rows[expiry] = b""
                index_bytes += len(expiry)
    for rid in rids:
        rows[log_head + rid] = log_row
    body_bytes = sum(map(len, wholes)) - len(rids) * (HEADER.size + epk_bytes)
    return rows, body_bytes, index_bytes


# --- what an engine with round trips can fetch ahead --------------------------------------------


def _keys_of(data: InsertData) -> list[bytes]:
    context, key, items = data
    ids = [layout.ID + key.epk_key + part for part in items.id_parts]
    shapes = [layout.SHAPE + shape for shape in set(items.shapes)]
    return [*operations.keys_of((context, key, ())), *ids, *shapes]


def _vias_of(data: InsertData) -> list[Row]:
    return operations.vias_of((*data[:2], ()))


def _never(data: InsertData) -> bool:
    return False


HANDLERS: dict[str, Handler] = {INSERT: Handler(run_alone, _keys_of, _vias_of, _never, run_many)}
