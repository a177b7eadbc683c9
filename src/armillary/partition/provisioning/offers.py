"""What throughput may be asked for: the least, the most, the step between, and the sentences that
say no (NoSQL REST reference 8.2, partitioning reference 1.4).

    manual      max(400,   1 RU/s per GB, highest ever / 100)      steps of 100
    autoscale   max(1000, 10 RU/s per GB, highest ever / 10)       steps of 1,000, of the maximum

The least rises with the data and with what was ever provisioned; more than 25 containers in a
shared database raise it as well. Storage that outgrows the throughput raises the offer by itself.
"""

import math
from dataclasses import dataclass

from armillary.errors import BadInput
from armillary.limits import SHARED_CONTAINERS_MAX, THROUGHPUT_RU_MAX
from armillary.partition.provisioning.partitions import GB, OfferKind

SYNC_FACTOR = 100  # a change up to this multiple of the minimum is normally done at once


@dataclass(frozen=True, slots=True)
class Rule:
    floor: int
    step: int
    ru_per_gb: int
    peak_divisor: int


RULES: dict[OfferKind, Rule] = {
    "manual": Rule(floor=400, step=100, ru_per_gb=1, peak_divisor=100),
    "autoscale": Rule(floor=1000, step=1000, ru_per_gb=10, peak_divisor=10),
}

AUTOSCALE_FLOOR = 10  # autoscale never goes below a tenth of its maximum


def minimum_throughput(
    kind: OfferKind,
    *,
    highest_ever: float = 0,
    stored_bytes: float = 0,
    shared_containers: int = 0,
) -> int:
    """RU/s (autoscale: of the maximum). `shared_containers`: 0 for a container of its own."""
    rule = RULES[kind]
    extra = max(0, shared_containers - SHARED_CONTAINERS_MAX)
    least = max(
        rule.floor + rule.step * extra,
        rule.ru_per_gb * stored_bytes / GB,
        highest_ever / rule.peak_divisor,
    )
    return _up(least, rule.step)


def check_throughput(
    value: int, kind: OfferKind, *, minimum: int, maximum: int = THROUGHPUT_RU_MAX
) -> None:
    """Refuse what is out of bounds or between steps."""
    step = RULES[kind].step
    if minimum <= value <= maximum and value % step == 0:
        return
    too_little = f"Requested throughput {value} is less than required minimum throughput {minimum}."
    raise BadInput(
        (f"{too_little} " if kind == "autoscale" and value < minimum else "")
        + "The value of offer throughput specified is invalid. Please specify a value between "
        f"{minimum} and {maximum} inclusive in increments of {step}. Please contact "
        "https://azure.microsoft.com/support to request limit increases beyond "
        f"{maximum} RU/s.",
        minimum=minimum,
        maximum=maximum,
        step=step,
    )


def requested(
    throughput: int | None, autoscale_max: int | None, offer_type: str | None = None
) -> tuple[OfferKind, int] | None:
    """What the headers of a request ask for; None if they leave it to us."""
    if throughput is not None and autoscale_max is not None:
        raise BadInput("Offer throughput and autopilot settings cannot both be specified.")
    if offer_type is not None and throughput is not None:
        raise BadInput("Offer type and throughput cannot both be specified.")
    if autoscale_max is not None:
        return "autoscale", autoscale_max
    return None if throughput is None else ("manual", throughput)


def check_kind_change(current: OfferKind, wanted: OfferKind) -> None:
    """Between manual and autoscale only a migration leads, not a plain replace."""
    if current != wanted:
        raise BadInput(
            f"Updating offer to {wanted} throughput is not allowed. "
            "Please invoke migration API to migrate this offer."
        )


def refuse_serverless() -> None:
    raise BadInput("Reading or replacing offers is not supported for serverless accounts.")


def check_serverless(asked: tuple[OfferKind, int] | None, kind: str) -> None:
    """A new database or container brings no throughput."""
    if asked is not None:
        raise BadInput(
            f"Setting offer throughput or autopilot on {kind} is not supported for serverless "
            "accounts."
        )


def is_synchronous(ru: float, minimum: float) -> bool:
    return minimum <= ru <= SYNC_FACTOR * minimum


def raised_by_storage(ru: int, kind: OfferKind, stored_bytes: float) -> int:
    """The throughput after the data has grown: 50,000 autoscale holds 5,000 GB, 6,000 GB make it
    60,000.
    """
    rule = RULES[kind]
    return max(ru, _up(rule.ru_per_gb * stored_bytes / GB, rule.step))


def _up(value: float, step: int) -> int:
    return math.ceil(value / step) * step
