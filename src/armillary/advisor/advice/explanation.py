"""Verdicts in words: number, threshold, evidence, consequence, cure (partitioning reference 7.3).

Every sentence is made from a measure, so that a reason is never about anything but this data. What
went wrong comes first, the gravest first; a key that is chosen says what it does well.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final

from armillary.advisor.advice.advising import Advice, Ranked
from armillary.advisor.advice.measures import Measures
from armillary.advisor.workload.targets import LOGICAL_BYTES, PLAN_DAYS, USABLE, Scale
from armillary.encoding.paths import format_path
from armillary.ring.words import plural
from armillary.units import bytes_text

REASONS_MAX: Final = 3


def reasons(one: Ranked, advice: Advice) -> list[str]:
    """Two or three, in the order of weight."""
    measures, target = one.measured.measures, advice.scale
    found = [_WRONG[name](measures, target) for name in one.judgement.failed]
    more = list(_weaknesses(one, advice))
    if one.verdict == "recommended":
        more = [*_strengths(one, advice), *more]
    elif one.verdict != "rejected":
        more = [*_beside_first(one, advice), *more, *_strengths(one, advice)]
    said = {_subject(text) for text in found}
    for text in more:
        if _subject(text) not in said:
            said.add(_subject(text))
            found.append(text)
    return found[:REASONS_MAX]


def _subject(text: str) -> str:
    """`Routing` of `Routing: …`. Of one subject there is one number to tell."""
    return text.partition(":")[0]


# --- what is wrong --------------------------------------------------------------------------------


def _presence(m: Measures, t: Scale) -> str:
    return (
        f"Presence: {_percent(1 - m.presence)} of the items lack it; they would all share one key. "
        "A key has to be in every item."
    )


def _length(m: Measures, t: Scale) -> str:
    return f"Length: values have up to {m.key_bytes_max:,} bytes; a key has at most 2,048."


def _cardinality(m: Measures, t: Scale) -> str:
    return (
        f"Cardinality: {plural(round(m.distinct), 'distinct value')} for {t.partitions} physical "
        f"partitions; at most {m.distinct:,.0f} of them would ever be used. Wanted are "
        f"{100 * t.partitions:,} or more."
    )


def _first_level(m: Measures, t: Scale) -> str:
    return (
        f"Cardinality: its first level has {m.tenants} values, and all that shares one begins in "
        f"one of {t.partitions} physical partitions, until splits part it."
    )


def _changing(m: Measures, t: Scale) -> str:
    return (
        f"Immutability: {_percent(m.changing)} of the items with several versions change it; the "
        "key of an item can't change, it would have to be deleted and written again."
    )


def _duplicates(m: Measures, t: Scale) -> str:
    return (
        f"Uniqueness: {_percent(m.duplicates)} of the items would share key and id with another "
        "one; the second write would fail or replace the first."
    )


def _heat(m: Measures, t: Scale) -> str:
    budget = t.throughput_ru / t.partitions
    if m.heat.tick is not None and m.heat.share <= 2 / t.partitions:
        return (
            f"Heat: the value is monotonic, it follows time and is new every "
            f"{_duration(m.heat.tick)}: all writes of one moment share a key, items that belong "
            "together share none, and a coarser clock or a burst makes one partition hot."
        )
    if m.heat.tick is not None:
        how = "comes again with" if m.heat.recurs else "is monotonic, it follows"
        return (
            f"Heat: the value {how} "
            f"time, so that for {_duration(m.heat.tick)} every write goes to one key and one hot "
            f"partition; {t.partitions} partitions give {budget:,.0f} RU/s "
            f"each, the rest of {t.throughput_ru:,.0f} RU/s can't be used."
        )
    return (
        f"Heat: at a moment the hottest key takes {_percent(m.heat.share)} of the writes; an even "
        f"share of {t.partitions} partitions is {_percent(1 / t.partitions)}. Its partition "
        f"answers 429 while the others are idle."
    )


def _ceiling(m: Measures, t: Scale) -> str:
    return (
        f"RU ceiling: the hottest key takes {_percent(m.top1_ru)} of the RU, and one key gets at "
        f"most 10,000 RU/s, so that the container never serves more than {m.ru_ceiling:,.0f} of "
        f"{t.throughput_ru:,.0f} RU/s."
    )


def _growth(m: Measures, t: Scale) -> str:
    size = bytes_text(m.largest_key_bytes)
    if m.horizon_days <= 0:
        return (
            f"Size: the largest key has {size} at the target size; a logical partition takes "
            "20 GB, and then every write of it fails (403)."
        )
    return (
        f"Size: the largest key reaches 20 GB in {_days(m.horizon_days)}; from then on its writes "
        f"fail (403). The plan is for {_days(PLAN_DAYS)}."
    )


def _skew(m: Measures, t: Scale) -> str:
    n = t.partitions
    value = f" ('{m.top_keys[0][0]}')" if m.top_keys else ""
    return (
        f"Skew: the heaviest key{value} has {_percent(m.top1_bytes)} of the bytes, and the fullest "
        f"of {n} partitions {m.phi_bytes[n]:.1f} times the mean (2 is the limit)."
    )


_WRONG: Final[dict[str, Callable[[Measures, Scale], str]]] = {
    "presence": _presence,
    "length": _length,
    "cardinality": _cardinality,
    "first_level": _first_level,
    "changing": _changing,
    "duplicates": _duplicates,
    "heat": _heat,
    "ceiling": _ceiling,
    "growth": _growth,
    "skew": _skew,
}


def _weaknesses(one: Ranked, advice: Advice) -> Iterator[str]:
    m, t, colours = one.measured.measures, advice.scale, one.judgement.colours
    n = t.partitions
    if colours["fan_out"] != "green" or m.unrouted_share > 0.1:
        yield _routing(one, advice)
    if colours["phi"] != "green" and "skew" not in one.judgement.failed:
        phi = max(m.phi_bytes[n], m.phi_ru)
        yield f"Distribution: the fullest of {n} partitions has {phi:.2f} times the mean load."
    if m.coverage < 1:
        yield f"Transactions: only {_percent(m.coverage)} of the batches stay within one key."
    if colours["cardinality"] != "green" and "cardinality" not in one.judgement.failed:
        values = plural(round(m.distinct), "value")
        yield f"Cardinality: {values}; {100 * n:,} would be comfortable."
    if colours["horizon"] == "amber":
        yield f"Size: the largest key reaches 20 GB in {_days(m.horizon_days)}."
    if one.candidate.is_random:
        yield (
            f"A random suffix can't be computed by readers: each read tries up to "
            f"{one.candidate.suffixes} keys."
        )


def _routing(one: Ranked, advice: Advice) -> str:
    m, n = one.measured.measures, advice.scale.partitions
    asking = [to for to in m.sent if to.how == "all" or to.ranges > 1.5]
    worst = max(asking, key=lambda to: to.rate * to.charge_ru, default=None)
    text = (
        f"Routing: {_percent(m.cross_share)} of the operations have to ask several partitions "
        f"(fan-out), which costs {m.fan_out_ru:,.0f} RU/s more at {n} partitions"
    )
    if worst is None:
        return f"{text}."
    return f"{text} (most of all '{_short(worst.name)}', {worst.charge_ru:,.1f} RU each)."


def _strengths(one: Ranked, advice: Advice) -> Iterator[str]:
    m, t = one.measured.measures, advice.scale
    n = t.partitions
    if m.cross_share == 0:
        yield "Routing: every operation goes to one partition."
    else:
        yield (
            f"Routing: all but {_percent(m.cross_share)} of the operations go to one partition; "
            f"fan-out costs {m.fan_out_ru:,.0f} RU/s."
        )
    suffix = f", {one.candidate.suffixes} suffixes for each" if one.candidate.suffixes > 1 else ""
    phi = max(m.phi_bytes[n], m.phi_ru)
    yield (
        f"Distribution: {plural(round(m.distinct), 'value')}{suffix}, the heaviest with "
        f"{_percent(m.top1_bytes)} of the bytes; the fullest of {n} partitions has {phi:.2f} "
        "times the mean."
    )
    if math.isinf(m.horizon_days):
        yield (
            f"Size: the largest key has {bytes_text(m.largest_key_bytes)} at the target size, of "
            f"{bytes_text(LOGICAL_BYTES)} allowed."
        )
    else:
        yield f"Size: the largest key reaches 20 GB in {_days(m.horizon_days)}."


def _beside_first(one: Ranked, advice: Advice) -> Iterator[str]:
    first, here = advice.recommended.measured.measures, one.measured.measures
    name = advice.recommended.candidate.name
    if here.unrouted_share > first.unrouted_share + 0.0005:
        more = here.fan_out_ru - first.fan_out_ru
        yield (
            f"Against {name}: {_percent(here.unrouted_share - first.unrouted_share)} more of the "
            f"operations ask every partition ({more:,.0f} RU/s)."
        )
    elif one.judgement.complexity > advice.recommended.judgement.complexity:
        yield f"Against {name}: more involved, and no operation finds its partition better by it."
    elif here.ru_second > 1.1 * first.ru_second:
        yield (
            f"Against {name}: {here.ru_second:,.0f} RU/s needed instead of {first.ru_second:,.0f}."
        )


# --- when, and what to do -------------------------------------------------------------------------


def consequence(one: Ranked, advice: Advice) -> str:
    """What would go wrong with a rejected key, and when."""
    m, t = one.measured.measures, advice.scale
    failed = set(one.judgement.failed)
    if failed & {"presence", "duplicates", "changing", "length"}:
        return "at the first write that meets it"
    if "heat" in failed or "ceiling" in failed:
        return f"as soon as the load passes {min(m.ru_ceiling, t.range_ru):,.0f} RU/s"
    if "growth" in failed:
        return "now, at the target size" if not m.horizon_days else f"in {_days(m.horizon_days)}"
    if failed & {"cardinality", "first_level", "skew"}:
        return f"when there are more than {max(1, math.floor(1 / max(m.top1_bytes, 1e-9)))} ranges"
    return "not at all, only at a higher price"


def cure(one: Ranked, advice: Advice) -> str | None:
    """For a rejected path: the candidate made of it that does pass."""
    wanted = set(one.candidate.made_of)
    for other in advice.ranked:
        cured = other.judgement.passes and wanted < set(other.candidate.made_of)
        starts = other.candidate.levels[:1] == one.candidate.levels[:1]
        if cured and starts:
            return other.candidate.name
    return None


def caveats(advice: Advice) -> list[str]:
    """How far to trust the answer."""
    survey = advice.survey
    rows = advice.sampled.rows
    found = [
        f"Shares from {rows:,} sampled items are known to ±{100 / math.sqrt(rows):.2f} points; a "
        f"key with 0.1 % of the items is missed with probability {0.999**rows:.1g}."
    ]
    if survey.stopped:
        found.insert(0, f"Stopped early: this is about the first {survey.items:,} items.")
    if survey.broken:
        found.append(f"{survey.broken:,} broken lines were skipped.")
    found += survey.notes[:6]
    found += advice.workload.skipped
    if advice.workload.assumed:
        found.append(
            "No workload was given: 40 % creates, 20 % reads of one item and 40 % queries by what "
            "groups items were assumed. Say what the application does with --workload."
        )
    used = advice.demand.ideal_ru / max(advice.scale.throughput_ru, 1.0)
    if advice.targets.throughput_ru is not None and used > USABLE:
        found.append(
            f"The workload asks for {_percent(used)} of the throughput even where every operation "
            f"finds its partition; beyond {_percent(USABLE)} any key gets 429s when load is uneven."
        )
    if advice.clock.axis is None:
        found.append("No time was found in the data, so heat is judged over all of it at once.")
    missing = _missing(advice)
    if missing:
        found.append(f"The workload speaks of {missing}, which no item has.")
    if advice.stability < 0.8 and advice.recommended.judgement.passes:
        found.append(
            f"The choice is close: it stays the same in {_percent(advice.stability)} of resampled "
            "data sets."
        )
    for path, why in list(advice.survey.unfit.items())[:5]:
        found.append(f"{format_path(path)} was left out: {why}.")
    return found


def _missing(advice: Advice) -> str:
    paths = {path for one in advice.workload.operations for path in one.by}
    for one in advice.workload.operations:
        paths |= set() if one.filters is None else set(one.filters.equal)
    gone = sorted(format_path(path) for path in paths if path not in advice.survey.seen)
    return ", ".join(gone)


# --- numbers in words -----------------------------------------------------------------------------


def _percent(share: float) -> str:
    points = 100 * share
    if points >= 10 or points == 0:
        return f"{points:.0f} %"
    return f"{points:.1f} %" if points >= 0.1 else f"{points:.2g} %"


def _days(days: float) -> str:
    if math.isinf(days):
        return "no time in sight"
    if days < 1:
        return f"{days * 24:.1f} hours"
    if days < 60:
        return f"{days:.0f} days"
    return f"{days / 30.4:.0f} months" if days < 730 else f"{days / 365.25:.1f} years"


def _duration(seconds: float) -> str:
    named = {86_400.0: "a whole day", 3_600.0: "an hour", 60.0: "a minute", 1.0: "a second"}
    if seconds in named:
        return named[seconds]
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else _days(seconds / 86_400)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"
