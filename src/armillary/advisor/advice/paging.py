"""Its best candidates and the worst paths replayed side by side: for the page of an advice, for a
minute, and for the terminal and `--json`, for a few seconds."""

import math
from dataclasses import replace
from typing import Any, Final

from armillary.advisor.advice.advising import Advice, Ranked
from armillary.advisor.data.sample import Sample, sample_of
from armillary.advisor.data.sampled import Sampled
from armillary.advisor.page.build import PageInput, page
from armillary.advisor.replay.comparison import ReplayOptions, replay_candidates
from armillary.advisor.replay.findings import date_after
from armillary.advisor.replay.result import Comparison, FullKey, Replayed
from armillary.advisor.replay.verdicts import Verdict
from armillary.advisor.workload.playing import OPERATIONS_MAX, play_out
from armillary.keys.views import put
from armillary.values import JSON

SECONDS: Final = 60.0
#: As many operations of a second are played as for a page, but of fewer seconds.
SECONDS_SHORT: Final = 5.0
OPERATIONS_SHORT: Final = 2_500
ITEMS_MAX: Final = 20_000
BEST: Final = 3
WORST: Final = 2


def page_of(advice: Advice, answer: dict[str, Any], comparison: Comparison) -> str:
    names = {"acceptable": "possible"}
    verdicts = tuple(
        Verdict(one["key"], names.get(one["verdict"], one["verdict"]), tuple(one["reasons"]))
        for one in answer["candidates"]
    )
    notes = tuple(answer["notes"])
    return page(PageInput(comparison, verdicts, notes=notes))


def replayed(advice: Advice, seed: int = 0, *, short: bool = False) -> Comparison:
    """The workload played out under the keys that are worth seeing alongside another."""
    sample = sample_from(advice.sampled)
    moments = {path for path in advice.clock.times if advice.clock.follows(path)}
    played = play_out(
        advice.workload,
        sample,
        seconds=SECONDS_SHORT if short else SECONDS,
        operations_max=OPERATIONS_SHORT if short else OPERATIONS_MAX,
        seed=seed,
        moments=moments,
    )
    scale = advice.scale
    options = ReplayOptions(
        throughput=advice.targets.throughput_ru,
        seed=seed,
        storage_bytes=advice.targets.storage_bytes,
        growth_bytes_per_day=advice.targets.growth_bytes_day,
        ttl_s=scale.ttl_seconds,
    )
    found = replay_candidates([one.candidate for one in shown(advice)], played, sample, options)
    replays = tuple(_one_horizon(one, advice, played.start_ms) for one in found.replays)
    return replace(found, replays=replays)


def _one_horizon(one: Replayed, advice: Advice, start_ms: float) -> Replayed:
    """When the largest key is full is known from all of the data and the growth that was said; a
    few seconds of a replay would give another number for the same thing."""
    ranked = advice.of(one.key)
    assert ranked is not None, "only ranked keys are replayed"
    days = ranked.measured.measures.horizon_days
    if math.isinf(days):
        return replace(one, full_key=None)
    key = one.large_keys[0].key if one.large_keys else ""
    return replace(one, full_key=FullKey(key, days, date_after(start_ms, days)))


def shown(advice: Advice) -> list[Ranked]:
    """The best ones, `/id`, the present key, and the paths that would go wrong most."""
    best = list(advice.ranked[:BEST])
    paths = [one for one in advice.ranked if one.candidate.kind == "path" and one not in best]
    kept = {"/id", "" if advice.current is None else advice.current.name}
    known = [one for one in paths if one.candidate.name in kept]
    failed = [one for one in reversed(paths) if one.verdict == "rejected" and one not in known]
    asked = [one for one in failed if one.measured.measures.presence >= 0.99]
    return [*best, *known, *asked[:WORST]]


def sample_from(sampled: Sampled) -> Sample:
    """Items again, from the sampled rows."""
    survey = sampled.survey
    step = max(1, sampled.rows // ITEMS_MAX)
    paths = list(survey.columns)
    items: list[dict[str, JSON]] = []
    for row in range(0, sampled.rows, step):
        item: dict[str, JSON] = {}
        for path in paths:
            if sampled.numbered(path).codes[row] >= 0:
                item = put(item, path, sampled.value(path, row))
        items.append(item)
    return sample_of(items, total_items=survey.items, total_bytes=survey.bytes)
