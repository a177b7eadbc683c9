"""Patterns of the documents, recognised in data and workload, each with its trade-off."""

from collections.abc import Iterator
from dataclasses import dataclass

from armillary.advisor.advice.advising import Advice
from armillary.advisor.data.timing import DAY
from armillary.encoding.paths import format_path

READ_HEAVY = 0.3
WRITE_HEAVY = 0.7
GIANT = 0.1


@dataclass(frozen=True, slots=True)
class Pattern:
    name: str
    seen: str
    advice: str


def patterns(advice: Advice) -> list[Pattern]:
    return [*_time_series(advice), *_tenants(advice), *_mix(advice), *_key_value(advice)]


def _time_series(advice: Advice) -> Iterator[Pattern]:
    axis = advice.clock.axis
    creates = any(one.kind == "create" for one in advice.workload.operations)
    if axis is None or not creates or advice.workload.assumed:
        return
    yield Pattern(
        "time series",
        f"{format_path(axis.path)} tells the moment of writing, over {axis.span / DAY:,.1f} days.",
        "A date as key answers a window of time from one partition, and takes every write of its "
        "period there: only for low write rates. A key that is not time (device, session) spreads "
        "writes and answers its own questions. A container per period lets old periods have little "
        "throughput and be dropped instead of deleted.",
    )


def _tenants(advice: Advice) -> Iterator[Pattern]:
    """A property that operations go by, with some values much larger than others."""
    for one in advice.ranked:
        m, candidate = one.measured.measures, one.candidate
        if candidate.kind != "path" or advice.clock.is_time(candidate.paths[0]):
            continue
        known = any(
            to.values_of(candidate.paths[0]) is not None
            for to in advice.workload.operations
            if not to.is_write
        )
        if known and m.top1_bytes > GIANT and m.distinct >= advice.scale.partitions:
            yield Pattern(
                "multi-tenancy",
                f"{candidate.name} has {m.distinct:,.0f} values, the largest with "
                f"{100 * m.top1_bytes:.0f} % of the bytes.",
                "A key per tenant keeps a tenant's queries and transactions together, up to 20 GB "
                "and 10,000 RU/s each. Hierarchical keys with the tenant first lift both limits "
                "and still find a tenant without a fan-out. A container for each large "
                "tenant isolates it at 400 RU/s or more each; the small ones share one.",
            )
            return


def _mix(advice: Advice) -> Iterator[Pattern]:
    writes = advice.demand.write_share
    if advice.workload.assumed:
        return
    if writes <= READ_HEAVY:
        yield Pattern(
            "read-heavy",
            f"{100 * (1 - writes):.0f} % of the RU are reads and queries.",
            "The key belongs into the filter of most queries: each that lacks it costs 2.5 RU for "
            "every partition there is. A second container by the other filter, kept up by the "
            "change feed, serves what is left.",
        )
    elif writes >= WRITE_HEAVY:
        yield Pattern(
            "write-heavy",
            f"{100 * writes:.0f} % of the RU are writes.",
            "Even writes come first: at every moment many keys have to be written to. What that "
            "costs is paid by queries that span keys.",
        )


def _key_value(advice: Advice) -> Iterator[Pattern]:
    reads = [one for one in advice.workload.operations if not one.is_write]
    if reads and all(one.by == (("id",),) and one.kind == "read" for one in reads):
        yield Pattern(
            "key-value",
            "Every read goes by id alone.",
            "The id as key has no hot spots and no fan-out; there are no transactions over several "
            "items.",
        )
