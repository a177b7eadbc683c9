"""The increment of an autoscale offer: by how much its maximum may grow by itself.

The original keeps the number and does nothing with it any more (the auto-upgrade policy is a thing
of the past), and so do we: SDKs send it, and expect to read what they sent.
"""

from contextlib import suppress
from dataclasses import replace

from armillary.engine.base import Engine
from armillary.errors import BadInput, Stale
from armillary.store.items.routing import ROUNDS_MAX
from armillary.store.throughput.offers import OfferRecord
from armillary.store.throughput.provisioned import read_offer, save_offer
from armillary.values import JSON


def increment_in(settings: JSON) -> int | None:
    """The increment that autoscale settings ask for, None if they don't."""
    policy = settings.get("autoUpgradePolicy") if isinstance(settings, dict) else None
    inner = policy.get("throughputPolicy") if isinstance(policy, dict) else None
    percent = inner.get("incrementPercent") if isinstance(inner, dict) else None
    if percent is not None and (type(percent) is not int or percent < 0):
        raise BadInput("The property 'incrementPercent' must be a whole number, not negative.")
    return percent


def set_increment(engine: Engine, owner_rid: str, percent: int) -> OfferRecord:
    for _ in range(ROUNDS_MAX):
        record = read_offer(engine, owner_rid)
        if record.increment_percent == percent:
            return record
        with suppress(Stale):  # a split wrote it meanwhile
            return save_offer(engine, replace(record, increment_percent=percent))
    raise Stale
