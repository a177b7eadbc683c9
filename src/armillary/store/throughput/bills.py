"""What hours of autoscale are billed, in the catalog.

    bill  rid of the owner of an offer → BillRecord

Only hours above the floor are kept, so an idle account writes nothing; the rest are known to be at
the floor.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from armillary.encoding.records import decoder
from armillary.encoding.rids import rid_bytes
from armillary.engine.base import Handler, Reader, Writer
from armillary.errors import Stale
from armillary.limits import BILLED_HOURS_MAX
from armillary.partition.leases import holds
from armillary.partition.provisioning.autoscale import HourBill
from armillary.store.throughput.offers import BILL, find_offer
from armillary.store.upkeep.leases import read_lease

JOB: Final = "autoscale"


@dataclass(frozen=True, slots=True)
class BillRecord:
    owner: str
    hours: tuple[HourBill, ...] = ()
    """Above the floor, oldest first."""


decode_bill = decoder(BillRecord)


def find_bills(reader: Reader, owner_rid: str) -> BillRecord:
    row = reader.get(BILL + rid_bytes(owner_rid))
    return BillRecord(owner_rid) if row is None else decode_bill(row)


def bill(tx: Writer, data: tuple[str, list[tuple[int, float]], str, int]) -> None:
    """An hour's bill only rises. Refused when the lease has passed to another."""
    owner_rid, risen, lease_owner, epoch = data
    if not holds(read_lease(tx, JOB), lease_owner, epoch):
        raise Stale
    if find_offer(tx, owner_rid) is None:
        return  # gone since
    hours = {one.hour: one.ru for one in find_bills(tx, owner_rid).hours}
    for hour, ru in risen:
        hours[hour] = max(ru, hours.get(hour, 0.0))
    newest = sorted(hours.items())[-BILLED_HOURS_MAX:]
    record = BillRecord(owner_rid, tuple(HourBill(*one) for one in newest))
    tx.put(BILL + rid_bytes(owner_rid), msgspec.json.encode(record))


HANDLERS: dict[str, Handler] = {"autoscale.bill": Handler(bill)}
