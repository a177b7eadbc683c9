"""Throughput in the catalog: one offer per container or shared database that has its own.

    offer  rid of its owner → OfferRecord

An offer says how much was asked for and what scaling is under way; how it falls on the ranges is
computed (`partition/provisioning/distribution.py`). Every change is a
compare-and-set on the record's version.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from armillary.budget import Budget
from armillary.encoding.etags import format_etag
from armillary.encoding.records import decoder
from armillary.encoding.rids import offer_rid, rid_bytes
from armillary.engine.base import Handler, Reader, Writer
from armillary.errors import Conflict, NotFound, Stale
from armillary.partition.provisioning.distribution import Distribution, equal
from armillary.partition.provisioning.partitions import OfferKind
from armillary.store.rows.listing import rows_under

OFFER = b"\x51"
BILL = b"\xb1"
"""By the rid of an offer's owner (store/throughput/bills.py); goes with the offer."""
HISTORY_MAX = 20


@dataclass(frozen=True, slots=True)
class ScalingRecord:
    """A change of throughput that needs splits, or a merge. Statuses as the service's activity log
    has them; `splits` counts the moves of either."""

    id: int
    from_ru: int
    to_ru: int
    started_ms: int
    status: str = "Started"
    message: str = ""
    splits: int = 0
    splits_done: int = 0
    finished_ms: int = 0
    shares: dict[int, float] = field(default_factory=dict)
    """For a redistribution: RU/s of the ranges it names."""
    first_ordinal: int = 0
    """Ranges with this id or a higher one were made since it began."""
    merges: tuple[tuple[int, ...], ...] = ()
    """For a merge: the neighbours that are still to become one."""
    settings: int = 0
    """Of the container when a merge was asked for: other ones cancel it."""


@dataclass(frozen=True, slots=True)
class OfferRecord:
    owner: str
    """The rid of the container or database."""
    resource: str
    """Its self link."""
    kind: OfferKind
    ru: int
    """Manual: RU/s. Autoscale: the maximum."""
    rid: str = ""
    highest_ru: int = 0
    shares: dict[int, float] = field(default_factory=dict)
    """RU/s by range id when they were set one by one; empty: equal shares."""
    pending: ScalingRecord | None = None
    history: tuple[ScalingRecord, ...] = ()
    version: int = 0
    etag: str = ""
    ts: int = 0
    increment_percent: int = 0
    """Of an old policy of autoscale; kept, without effect."""

    def distribution(self, ordinals: list[int]) -> Distribution:
        if self.shares:
            return Distribution("Custom", tuple(sorted(self.shares.items())))
        return equal(self.ru, ordinals)


decode_offer = decoder(OfferRecord)


def offer_key(owner_rid: str) -> bytes:
    return OFFER + rid_bytes(owner_rid)


def find_offer(reader: Reader, owner_rid: str) -> OfferRecord | None:
    row = reader.get(offer_key(owner_rid))
    return None if row is None else decode_offer(row)


def list_offers(reader: Reader, budget: Budget | None = None) -> list[OfferRecord]:
    return [decode_offer(row) for row in rows_under(reader, OFFER, budget)]


def put_offer(tx: Writer, record: OfferRecord, number: int, now_s: int) -> OfferRecord:
    """A new offer, in the transaction that makes its owner."""
    record = replace(
        record,
        rid=offer_rid(number),
        highest_ru=max(record.highest_ru, record.ru),
        version=1,
        etag=format_etag(1, number, now_s),
        ts=now_s,
    )
    tx.put(offer_key(record.owner), msgspec.json.encode(record))
    return record


def replace_offer(tx: Writer, data: tuple[bytes, int]) -> bytes:
    source, now_s = data
    record = decode_offer(source)
    current = find_offer(tx, record.owner)
    if current is None:
        raise NotFound
    if current.version != record.version:
        raise Stale
    record = replace(
        record,
        highest_ru=max(record.highest_ru, record.ru),
        history=record.history[-HISTORY_MAX:],
        etag=format_etag(record.version + 1, current.version, now_s),
        ts=now_s,
    )
    return store_offer(tx, record)


def store_offer(tx: Writer, record: OfferRecord) -> bytes:
    """The next version of an offer, inside a transaction that has read it. A change of ranges alone
    leaves the etag that users see."""
    row = msgspec.json.encode(replace(record, version=record.version + 1))
    tx.put(offer_key(record.owner), row)
    return row


def add_offer(tx: Writer, data: tuple[bytes, int, int]) -> bytes:
    source, number, now_s = data
    record = decode_offer(source)
    if find_offer(tx, record.owner) is not None:
        raise Conflict("The resource has its own throughput already.")
    return msgspec.json.encode(put_offer(tx, record, number, now_s))


def remove_offer(tx: Writer, owner_rid: str) -> None:
    tx.delete(offer_key(owner_rid))
    tx.delete(BILL + rid_bytes(owner_rid))


HANDLERS: dict[str, Handler] = {
    "offers.replace": Handler(replace_offer),
    "offers.add": Handler(add_offer),
}


def encode_offer(record: Any) -> bytes:
    return msgspec.json.encode(record)
