"""How many physical partitions a container has, and what each of them may spend.

    N = max(1, ceil(T / t), ceil(S / s))     T RU/s and S bytes of the container,
    r = T / N                                t RU/s and s bytes of one physical partition

N never falls except by a merge. At creation it is higher than that bound: manual throughput gets a
partition per 6,000 RU/s, so that there is room to grow at once. The thresholds are a value,
`PartitionLimits`, so that a laptop can watch at 2 MB what the cloud does at 50 GB; everything the
original derives from its own thresholds keeps its ratio to them.

What may be asked for is in `offers.py`, which ranges split in `scaling.py`, uneven shares in
`distribution.py`.
"""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from armillary import limits
from armillary.errors import BadInput
from armillary.limits import BURST_RU_MAX

GB = 1000**3  # decimal, as in every limit of the original

#: fixed: one physical partition for ever.
ContainerKind: TypeAlias = Literal["fixed", "unlimited"]
OfferKind: TypeAlias = Literal["manual", "autoscale"]

CREATION_TENTHS = 6  # manual: 6,000 of 10,000 RU/s in each partition of a new container
FIXED_GROWS_RU = 1000  # a fixed container with a key and this much at creation is unlimited


@dataclass(frozen=True, slots=True)
class PartitionLimits:
    """What one physical partition holds and serves, and what one logical partition holds."""

    bytes: int = limits.PARTITION_BYTES_MAX
    ru: int = limits.PARTITION_RU_MAX
    logical_bytes: int = limits.LOGICAL_BYTES_MAX

    def __post_init__(self) -> None:
        for name in ("bytes", "ru", "logical_bytes"):
            if getattr(self, name) <= 0:
                raise BadInput(f"partition.{name} has to be a positive number.")

    @property
    def serverless_ru(self) -> float:
        """RU/s of a partition without provisioned throughput: 5,000 of 10,000."""
        return self.ru / 2

    @property
    def merge_below_ru(self) -> float:
        """Partitions with less than this may merge: 3,000 of 10,000."""
        return self.ru * 3 / 10

    @property
    def merge_below_bytes(self) -> float:
        """… if they also hold less than this on average: 20 of 50 GB."""
        return self.bytes * 4 / 10


LIMITS = PartitionLimits()

#: Physical and logical partitions of 10 GB, as when containers were called collections.
LIMITS_2018 = PartitionLimits(bytes=10 * GB, logical_bytes=10 * GB)


# --- counts ---------------------------------------------------------------------------------------


def partitions_at_creation(
    ru: float,
    kind: OfferKind = "manual",
    *,
    shared: bool = False,
    classic: bool = False,
    of: PartitionLimits = LIMITS,
) -> int:
    """For a new container, or a new database whose containers share. `ru` is the maximum if it is
    autoscale. `classic`: the plain T/t of the old documents.
    """
    roomy = kind == "manual" and not shared and not classic
    tenths = CREATION_TENTHS if roomy else 10
    return max(1, math.ceil(ru * 10 / (of.ru * tenths)))


def partitions_needed(ru: float, stored_bytes: float, *, of: PartitionLimits = LIMITS) -> int:
    """The lower bound at any time. What exists already is not taken away."""
    return max(1, math.ceil(ru / of.ru), math.ceil(stored_bytes / of.bytes))


def needs_split(stored_bytes: float, *, of: PartitionLimits = LIMITS) -> bool:
    """One physical partition is full. Whether it can be split depends on its keys."""
    return stored_bytes >= of.bytes


def instant_maximum(partitions: int, *, of: PartitionLimits = LIMITS) -> int:
    """RU/s that need no split."""
    return partitions * of.ru


def serverless_throughput(partitions: int, *, of: PartitionLimits = LIMITS) -> float:
    """What a serverless container can serve; also its manual throughput once it is converted."""
    return partitions * of.serverless_ru


def partitions_for_ingest(
    data_bytes: float,
    *,
    growing: bool = True,
    target_bytes: float | None = None,
    of: PartitionLimits = LIMITS,
) -> int:
    """How many partitions to start with before loading this much: filled to 30 of 50 GB if the
    data is going to grow, else to 45.
    """
    target = target_bytes or of.bytes * (6 if growing else 9) / 10
    return max(1, math.ceil(data_bytes / target))


def ingest_seconds(items: float, item_ru: float, ru: float) -> float:
    """How long loading takes when every partition is kept busy."""
    return items * item_ru / ru


def has_burst(partition_ru: float) -> bool:
    return partition_ru < BURST_RU_MAX


# --- kinds ----------------------------------------------------------------------------------------


def container_kind(*, fixed: bool, has_key: bool, ru: float, shared: bool = False) -> ContainerKind:
    """What a container asked for as fixed (or not) behaves as. Fixed with a key and enough
    throughput grows like any other; one that shares its database's throughput always does, and
    needs a key for it.
    """
    if not has_key and (shared or not fixed):
        raise BadInput("A partition key definition is required for this container.")
    if fixed and not shared and not (has_key and ru >= FIXED_GROWS_RU):
        return "fixed"
    return "unlimited"


def may_split(kind: ContainerKind) -> bool:
    return kind == "unlimited"


def bytes_max(kind: ContainerKind, *, of: PartitionLimits = LIMITS) -> int | None:
    """A fixed container is one logical partition as far as its size goes; others have no end."""
    return of.logical_bytes if kind == "fixed" else None


def throughput_max(kind: ContainerKind, *, of: PartitionLimits = LIMITS) -> int:
    return of.ru if kind == "fixed" else limits.THROUGHPUT_RU_MAX
