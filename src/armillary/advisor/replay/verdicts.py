"""What a replay by itself says of each key, in plain words with numbers; best first.

The advisor judges keys by more than this (`advise`): whether they can change, how data will grow,
how sure a sample is. Here counts only what these operations met.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from armillary.advisor.page.words import days, money, number, percent, seconds
from armillary.advisor.replay.result import Comparison, Replayed

#: Refusals that are healthy, and those at which a key is out of the question.
THROTTLED_FINE: Final = 0.01
THROTTLED_BAD: Final = 0.05
SKEW_FINE: Final = 1.3
SKEW_BAD: Final = 2.0
#: How much more than the cheapest a key may need.
COST_FINE: Final = 1.25
YEAR_DAYS: Final = 365.0
#: Every partition at its limit in some second, and hardly anything asks several of them.
STARVED_PERCENT: Final = 99.0
FAN_OUT_FINE: Final = 1.1


@dataclass(frozen=True, slots=True)
class Verdict:
    key: str
    verdict: str
    """recommended, possible or rejected."""
    reasons: tuple[str, ...] = ()


def verdicts(comparison: Comparison) -> tuple[Verdict, ...]:
    ordered = sorted(comparison.replays, key=_order)
    cheapest = min((one.needed_ru for one in ordered if one.needed_ru is not None), default=None)
    found = []
    for place, one in enumerate(ordered):
        worst = _level(one, cheapest)
        verdict = "rejected" if worst == 2 else "possible" if place else "recommended"
        found.append(Verdict(one.key, verdict, tuple(reasons(one, cheapest))))
    return tuple(found)


def objections(one: Replayed, comparison: Comparison) -> list[str]:
    """Why these operations do not get through under this key; none: it passes. Refusals count only
    against a throughput that somebody gave: otherwise what the key needs is the answer."""
    found = []
    if one.full:
        share = percent(min(1.0, one.full / max(one.operations, 1.0)))
        found.append(f"{share} of the operations are lost, on a key that has its 20 GB (403)")
    if one.needed_ru is None:
        found.append("one of its keys takes more than a physical partition can serve")
    elif comparison.throughput_given and one.throttled_share > THROTTLED_FINE:
        found.append(
            f"{percent(one.throttled_share)} of the requests are refused (429) at "
            f"{number(comparison.throughput)} RU/s, where {percent(THROTTLED_FINE)} is healthy"
        )
    return found


def lost(one: Replayed) -> str:
    """Share of the operations that are lost, and to what."""
    full = min(1.0, one.full / max(one.operations, 1.0))
    causes = [(full, "403"), (one.failed_share, "429")]
    shares = [f"{percent(share)} {cause}" for share, cause in causes if share > 0]
    return ", ".join(shares) or percent(0)


def full_in(one: Replayed) -> str:
    """When the first key has its 20 GB; of one that has refused writes for it: now."""
    if one.full:
        return days(0)
    return days(None if one.full_key is None else one.full_key.days)


LOST: Final = "lost: 429 after the last retry, or 403 because the key has its 20 GB"


def _order(one: Replayed) -> tuple[float, ...]:
    """Nothing lost comes first, then what has to be paid for."""
    needed = one.needed_ru if one.needed_ru is not None else float("inf")
    lost = round(one.failed_share + one.full / max(1.0, one.operations), 3)
    return lost, needed, one.throttled_share, one.skew


def _level(one: Replayed, cheapest: float | None) -> int:
    """0: fine, 1: with care, 2: not."""
    soon = one.full_key is not None and one.full_key.days < YEAR_DAYS
    refused = one.failed > 0 or one.throttled_share > THROTTLED_BAD
    if one.full or one.needed_ru is None or (refused and not _is_starved(one)):
        return 2
    dear = cheapest is not None and one.needed_ru > COST_FINE * cheapest
    uneven = one.skew > SKEW_FINE or one.throttled_share > THROTTLED_FINE
    return 1 if dear or uneven or soon else 0


def _is_starved(one: Replayed) -> bool:
    """All partitions alike have too little: no other key would change that."""
    busy = min(part.peak_percent for part in one.partitions) >= STARVED_PERCENT
    return busy and one.skew <= SKEW_FINE and one.fan_out_mean < FAN_OUT_FINE


def reasons(one: Replayed, cheapest: float | None = None) -> Iterator[str]:
    yield _refusals(one)
    if one.throttled_share > THROTTLED_BAD and _is_starved(one):
        yield "All partitions had too little throughput: that is not the fault of the key."
    if one.full:
        yield f"{number(one.full)} writes met a full key (403): no retry helps against that."
    if one.needed_ru is None and one.top_keys:
        top = one.top_keys[0]
        yield (
            f"One key, {top.key}, takes {percent(top.share)} of all request units, more than a "
            "physical partition can ever serve: neither throughput nor splits help."
        )
    elif one.skew > SKEW_BAD:
        yield f"The busiest partition has to serve {one.skew:.1f} times the mean. {one.hot or ''}"
    elif one.skew <= SKEW_FINE:
        yield f"Work is even: the busiest partition has {one.skew:.2f} times the mean."
    yield _fan_out(one)
    if one.needed_ru is not None and cheapest is not None and one.needed_ru > COST_FINE * cheapest:
        yield (
            f"It needs {number(one.needed_ru)} RU/s ({money(one.needed_cost_per_hour)} per hour) "
            f"where the cheapest key needs {number(cheapest)}."
        )
    if one.full_key is not None and one.full_key.days < YEAR_DAYS:
        yield (
            f"The key {one.full_key.key} reaches its 20 GB in {days(one.full_key.days)}, on "
            f"{one.full_key.date}."
        )


def _refusals(one: Replayed) -> str:
    if not one.throttled:
        return "No request was refused."
    text = f"{percent(one.throttled_share)} of the requests were refused (429)"
    if one.failed:
        return f"{text}, and {percent(one.failed_share)} of the operations failed for good."
    if one.wait_p99_ms:
        return f"{text}; the slowest hundredth waited {seconds(one.wait_p99_ms)} and more."
    return f"{text}; retries brought all of them through."


def _fan_out(one: Replayed) -> str:
    wide = [each for each in one.fan_out if each.ranges_mean > 1.05]
    if not wide:
        return "Every operation asks one partition."
    total = sum(each.operations for each in one.fan_out)
    share = sum(each.operations for each in wide) / total
    most = max(wide, key=lambda each: each.ranges_mean * each.operations)
    name = " ".join(most.name.split())
    return (
        f"{percent(share)} of the operations must ask several partitions; «{name}» asks "
        f"{number(most.ranges_mean)}."
    )
