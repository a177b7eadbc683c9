"""What the rules say of a container before anything is simulated: counts, prices, ceilings.

Each line asks a function of `partition/`; nothing is worked out here that the product would not.
"""

import math
from dataclasses import dataclass
from typing import Any

from armillary.partition import request_units
from armillary.partition.provisioning import autoscale, offers, scaling
from armillary.partition.provisioning import partitions as provisioning
from armillary.partition.provisioning.partitions import GB, LIMITS, PartitionLimits

MONTH_HOURS = 730
FILL = 0.8  # of a partition, where somebody plans with room


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Of so many bytes and RU/s."""

    partitions_by_ru: int
    partitions_by_bytes: int
    partitions: int
    partitions_with_room: int
    range_ru: float
    range_ru_with_room: float
    minimum_manual: int
    minimum_autoscale: int
    fanout_ru: float
    """An empty query over all partitions."""
    fanout_thousand_ru: float
    """A thousand of them in a second."""
    hour_dollars: float
    month_dollars: float
    storage_month_dollars: float
    """Of one region."""
    waves: int
    """Doublings from one partition to all by storage alone, every key alike."""
    wave_splits: int
    wave_partitions: int
    wave_bytes: float
    even_target: int
    even_rounds: int
    top_share_max: float
    """Of the request units, the most that one key may have if all of the throughput is used."""

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def arithmetic(
    stored_bytes: float, ru: int, *, start_partitions: int = 1, of: PartitionLimits = LIMITS
) -> Arithmetic:
    by_ru = provisioning.partitions_needed(ru, 0, of=of)
    by_bytes = provisioning.partitions_needed(0, stored_bytes, of=of)
    count = provisioning.partitions_needed(ru, stored_bytes, of=of)
    room = max(
        by_ru,
        provisioning.partitions_for_ingest(stored_bytes, target_bytes=FILL * of.bytes, of=of),
    )
    fanout = request_units.query_ru(count, 0, 0, 0)
    waves = max(0, math.ceil(math.log2(by_bytes / start_partitions)))
    splits = start_partitions * (2**waves - 1)
    even = scaling.even_target(ru, 1, of=of)
    plan = scaling.plan_change(even, {0: 0.0}, next_ordinal=1, of=of)
    hour = autoscale.hour_cost(ru, "manual")
    return Arithmetic(
        partitions_by_ru=by_ru,
        partitions_by_bytes=by_bytes,
        partitions=count,
        partitions_with_room=room,
        range_ru=ru / count,
        range_ru_with_room=ru / room,
        minimum_manual=offers.minimum_throughput(
            "manual", highest_ever=ru, stored_bytes=stored_bytes
        ),
        minimum_autoscale=offers.minimum_throughput(
            "autoscale", highest_ever=ru, stored_bytes=stored_bytes
        ),
        fanout_ru=fanout,
        fanout_thousand_ru=1000 * fanout,
        hour_dollars=hour,
        month_dollars=hour * MONTH_HOURS,
        storage_month_dollars=stored_bytes / GB * autoscale.PRICES.storage_gb_month,
        waves=waves,
        wave_splits=splits,
        wave_partitions=start_partitions * 2**waves,
        wave_bytes=float(splits) * of.bytes,
        even_target=even,
        even_rounds=len(plan.rounds),
        top_share_max=min(1.0, of.ru / ru),
    )
