"""What an advice comes to, once its best keys were played out: one key that passes everything, or
that none does and what to do then; in about ten lines."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from armillary.advisor.advice.advising import Advice, Ranked, placed
from armillary.advisor.advice.explanation import reasons
from armillary.advisor.advice.measures import LIFETIME_SHORT
from armillary.advisor.page.words import days, money, number, percent
from armillary.advisor.replay.result import Comparison
from armillary.advisor.replay.verdicts import SKEW_FINE, objections
from armillary.advisor.workload.targets import LOGICAL_BYTES, PLAN_DAYS, SMALL_BYTES, SMALL_RU
from armillary.encoding.paths import format_path
from armillary.units import bytes_text

NAMED: Final = 2


def settled(advice: Advice, comparison: Comparison | None) -> Advice:
    """The first key that passes both its measures and the replay is the recommended one; if there
    is none, no key is."""
    first = advice.recommended
    if comparison is None or not first.judgement.passes or not _against(first, comparison):
        return advice
    others = [one for one in advice.ranked if one is not first]
    passing = next((one for one in others if _passes(one, comparison)), None)
    demoted = replace(first, verdict="acceptable")
    if passing is None:
        return replace(advice, ranked=(demoted, *others))
    others.remove(passing)
    chosen = replace(passing, verdict="recommended")
    return replace(advice, ranked=placed([chosen, demoted, *others]))


def _passes(one: Ranked, comparison: Comparison) -> bool:
    is_played = comparison.of(one.candidate.name) is not None
    return one.judgement.passes and is_played and not _against(one, comparison)


def _against(one: Ranked, comparison: Comparison | None) -> list[str]:
    played = None if comparison is None else comparison.of(one.candidate.name)
    return [] if played is None or comparison is None else objections(played, comparison)


def verdict_lines(advice: Advice, comparison: Comparison | None) -> list[str]:
    """Of a settled advice."""
    first = advice.recommended
    name = first.candidate.name
    if first.verdict == "recommended":
        found = [f"Verdict: {name} is recommended.", *reasons(first, advice)]
    else:
        found = [f"Verdict: no candidate passes. The least bad is {name}:"]
        found += _against(first, comparison) or reasons(first, advice)[:NAMED]
        found += _to_do(first, advice, comparison)
    found += _replayed(first, comparison)
    found += _alternative(advice)
    found += _growing(first, advice)
    if advice.scale.is_small:
        found.append(
            f"Small container, below {SMALL_RU:,.0f} RU/s and {bytes_text(SMALL_BYTES)}: queries "
            "that ask every partition hardly cost more here. An even key with room to grow matters."
        )
    return found


def _to_do(first: Ranked, advice: Advice, comparison: Comparison | None) -> Iterator[str]:
    """More throughput where that is enough, and a key that is made for it."""
    played = None if comparison is None else comparison.of(first.candidate.name)
    if first.judgement.passes and played is not None and played.needed_ru and not played.full:
        yield (
            f"What to do: give it {number(played.needed_ru)} RU/s "
            f"({money(played.needed_cost_per_hour)} per hour), which its busiest partition needs."
        )
    if first.judgement.passes and played is not None and played.skew <= SKEW_FINE:
        return  # all partitions alike have too little: no other key changes that
    made_of = set(first.candidate.made_of)
    made = next(
        (
            one.candidate.name
            for one in advice.ranked[1:]
            if one.judgement.passes
            and one.candidate.synthetic
            and made_of <= set(one.candidate.made_of)
        ),
        f'{format_path(first.candidate.made_of[0])}+"."+hash(/id,{10 * advice.scale.partitions})',
    )
    yield f"Or make a synthetic key, which spreads further, and compare: --candidates '{made}'"


def _replayed(first: Ranked, comparison: Comparison | None) -> Iterator[str]:
    played = None if comparison is None else comparison.of(first.candidate.name)
    if played is None or comparison is None or first.verdict != "recommended":
        return
    given = "" if comparison.throughput_given else " (assumed)"
    yield (
        f"Replay: {percent(played.throttled_share)} of the requests refused (429) at "
        f"{number(comparison.throughput)} RU/s{given}, {percent(played.failed_share)} lost."
    )
    if played.needed_ru is not None:
        yield (
            f"Throughput: with {number(played.needed_ru)} RU/s "
            f"({money(played.needed_cost_per_hour)} per hour) even its busiest partition keeps up."
        )


def _alternative(advice: Advice) -> Iterator[str]:
    others = [one.candidate.name for one in advice.ranked[1:] if one.verdict == "acceptable"]
    if others:
        yield f"Next best: {' or '.join(others[:NAMED])}."


def _growing(first: Ranked, advice: Advice) -> Iterator[str]:
    """A workload says how fast data comes in; whether it stays, only people can say."""
    scale, measures = advice.scale, first.measured.measures
    said = scale.growth_bytes_day or scale.ttl_seconds is not None
    is_of_time = measures.heat.tick is not None or measures.heat.lifetime < LIFETIME_SHORT
    daily = scale.written_bytes_day * measures.top1_bytes
    if said or advice.workload.assumed or daily <= 0 or is_of_time:
        return
    left = max(0.0, LOGICAL_BYTES - measures.top1_bytes * scale.bytes_today) / daily
    if left < PLAN_DAYS:
        yield (
            f"Say --growth or --ttl: if all of the {bytes_text(scale.written_bytes_day)} that this "
            f"workload writes a day stays, the largest key has its 20 GB in {days(left)}."
        )
