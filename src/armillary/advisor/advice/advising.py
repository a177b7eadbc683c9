"""Advice: data, workload and targets in; every candidate measured, judged and ranked out.

    survey ─▶ times, demand, scale ─▶ candidates ─▶ measures ─▶ gates and score ─▶ choice
                                       paths first; what is made of them follows from their measures

The choice is not the highest score alone. Scores that differ by less than a few points are not
distinguished by a sample, so among those the key wins that leaves fewest operations to cross
partitions, then fewest that must ask all of them (a suffix names the keys to ask), and then the
plainest: a hierarchy or a suffix has to buy something.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from armillary.advisor.advice.judgement import Judgement, Verdict, factors_of, judge, score_of
from armillary.advisor.advice.measures import Measured, measure
from armillary.advisor.advice.ring import bootstrap_counts, skew
from armillary.advisor.data.sampled import Sampled
from armillary.advisor.data.survey import Survey
from armillary.advisor.data.timing import Clock, find_times
from armillary.advisor.keys import generation as generating
from armillary.advisor.keys.candidates import Candidate, plain
from armillary.advisor.keys.generation import Grounds
from armillary.advisor.workload.default import default_workload
from armillary.advisor.workload.demand import Demand, demand
from armillary.advisor.workload.model import ID, Workload
from armillary.advisor.workload.targets import Scale, Targets, scale
from armillary.encoding.paths import Path
from armillary.errors import BadInput

#: Less is within what a sample and the weights of a score can tell apart: a key whose fullest
#: partition has a third more than the mean loses that much.
TIED_POINTS: Final = 15.0
REPLICATES: Final = 20
BOOTSTRAPPED: Final = 6


@dataclass(frozen=True, slots=True)
class Ranked:
    judgement: Judgement
    rank: int
    verdict: Verdict
    interval: tuple[float, float] | None = None
    """Of the score: 5th to 95th percentile of bootstrap samples."""
    tied: bool = False
    """With the first: the sample does not tell them apart."""
    score: float = 0.0
    """Of the judgement, but never above that of the key ranked before: what places a key first
    among those the points don't tell apart (routing, plainness) counts for more than points."""

    @property
    def candidate(self) -> Candidate:
        return self.judgement.measured.candidate

    @property
    def measured(self) -> Measured:
        return self.judgement.measured


@dataclass(frozen=True, slots=True)
class Advice:
    survey: Survey
    sampled: Sampled
    workload: Workload
    demand: Demand
    clock: Clock
    scale: Scale
    targets: Targets
    ranked: tuple[Ranked, ...]
    current: Candidate | None
    stability: float
    """Share of bootstrap samples in which the same key is chosen."""

    @property
    def recommended(self) -> Ranked:
        return self.ranked[0]

    def of(self, name: str) -> Ranked | None:
        return next((one for one in self.ranked if one.candidate.name == name), None)


def wanted_paths(workload: Workload | None, candidates: Sequence[Candidate]) -> frozenset[Path]:
    """Paths that must be measured, whatever they hold."""
    found = {path for one in candidates for path in one.made_of}
    for operation in () if workload is None else workload.operations:
        found |= set(operation.by)
        found |= set() if operation.filters is None else set(operation.filters.equal)
    return frozenset(found)


def advise(
    survey: Survey,
    workload: Workload | None = None,
    targets: Targets | None = None,
    *,
    candidates: Sequence[Candidate] = (),
    current: Candidate | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Advice:
    """With `candidates` only those are compared, alongside `/id` and the present key."""
    targets = targets or Targets()
    sampled = Sampled(survey, seed)
    clock = find_times(sampled)
    workload = workload or default_workload(sampled, clock)
    wanted = demand(sampled, workload, strong=targets.strong, seed=seed)
    # How fast data grows is not known without a workload.
    created = 0.0 if workload.assumed else wanted.created_second
    target = scale(targets, survey.items, survey.item_bytes, wanted.ideal_ru, created)
    grounds = Grounds(sampled, workload, wanted, clock, target)
    measured = _measured(grounds, candidates, current, progress)
    if not measured:
        raise BadInput("No property of the items could be a key: none holds a text or a number.")
    cheapest = min(one.measures.ru_second for one in measured)
    judged = [judge(one, target, wanted.write_share, cheapest) for one in measured]
    ranked, stability = _ranked(judged, grounds, cheapest, seed)
    return Advice(
        survey, sampled, workload, wanted, clock, target, targets, ranked, current, stability
    )


def _measured(
    grounds: Grounds,
    asked: Sequence[Candidate],
    current: Candidate | None,
    progress: Callable[[int, int], None],
) -> list[Measured]:
    found: dict[str, Measured] = {}

    def add(candidates: Sequence[Candidate]) -> None:
        for number, one in enumerate(candidates):
            if one.name not in found:
                found[one.name] = measure(
                    grounds.sampled, one, grounds.demand, grounds.clock, grounds.scale
                )
            progress(number + 1, len(candidates))

    baseline = [plain(ID)] if grounds.sampled.has(ID) else []
    add([*baseline, *([] if current is None else [current])])
    if asked:
        add(asked)
        return list(found.values())
    add(generating.single_paths(grounds))
    singles = {
        one.candidate.paths[0]: one for one in found.values() if one.candidate.kind == "path"
    }
    if not singles:
        # Every property has one value, or there is none: only a random key is left.
        add([plain(path) for path in list(grounds.sampled.survey.columns)[:1]])
        return list(found.values())
    more = [
        *generating.combinations(grounds, singles),
        *generating.suffixed(grounds, singles),
        *generating.bucketed(grounds, singles),
    ]
    add(more)
    return list(found.values())


# --- choosing -------------------------------------------------------------------------------------


def _ranked(
    judged: list[Judgement], grounds: Grounds, cheapest: float, seed: int
) -> tuple[tuple[Ranked, ...], float]:
    ordered, tied = order(judged)
    passing = [one for one in ordered if one.passes][:BOOTSTRAPPED]
    intervals, stability = _bootstrap(passing, grounds, cheapest, seed)
    names = {one.measured.candidate.name for one in tied}
    ranked: list[Ranked] = []
    for rank, one in enumerate(ordered, 1):
        name = one.measured.candidate.name
        verdict: Verdict = "rejected" if not one.passes else "acceptable"
        if rank == 1 and one.passes:
            verdict = "recommended"
        ranked.append(Ranked(one, rank, verdict, intervals.get(name), rank > 1 and name in names))
    return placed(ranked), stability


def placed(ordered: Sequence[Ranked]) -> tuple[Ranked, ...]:
    """With ranks in this order, and scores that never rise along it."""
    found: list[Ranked] = []
    score = math.inf
    for rank, one in enumerate(ordered, 1):
        score = min(score, one.judgement.score)
        found.append(replace(one, rank=rank, score=score))
    return tuple(found)


def order(judged: Sequence[Judgement]) -> tuple[list[Judgement], list[Judgement]]:
    """(all of them, the best first; those that the first was chosen among)."""
    passing = sorted((one for one in judged if one.passes), key=_by_score)
    failing = sorted((one for one in judged if not one.passes), key=_by_failures)
    if not passing:
        return failing, []
    best = passing[0].score
    tied = [one for one in passing if one.score >= best - TIED_POINTS]
    rest = [one for one in passing if one.score < best - TIED_POINTS]
    tied.sort(key=_by_use)
    plainer = _plainer(tied[0], rest)
    if plainer is not None:
        rest.remove(plainer)
        tied.insert(0, plainer)
    return [*tied, *rest, *failing], tied


def _plainer(chosen: Judgement, others: Sequence[Judgement]) -> Judgement | None:
    """A key made of less than the chosen one, that leaves no more operations without an address and
    has nothing gravely wrong with it: the rest of the chosen key buys nothing that is needed."""
    made_of = set(chosen.measured.candidate.made_of)
    unrouted = round(chosen.measured.measures.unrouted_share, 4)
    found = [
        one
        for one in others
        if set(one.measured.candidate.made_of) < made_of
        and one.complexity < chosen.complexity
        and round(one.measured.measures.unrouted_share, 4) <= unrouted
        and "red" not in one.colours.values()
    ]
    return min(found, key=_by_use, default=None)


def _by_score(one: Judgement) -> tuple[float, ...]:
    return -one.score, *one.complexity, -one.measured.measures.distinct


def _by_failures(one: Judgement) -> tuple[float, ...]:
    return len(one.failed), -one.score, *one.complexity


def _by_use(one: Judgement) -> tuple[float, ...]:
    """Never by name: renaming a property must not change the answer."""
    measures = one.measured.measures
    return (
        round(measures.cross_share, 4),
        round(measures.unrouted_share, 4),
        *one.complexity,
        -round(measures.routed_share, 3),
        -round(one.score),
        -measures.distinct,
    )


def _bootstrap(
    passing: Sequence[Judgement], grounds: Grounds, cheapest: float, seed: int
) -> tuple[dict[str, tuple[float, float]], float]:
    """Intervals of the scores, and how often the first stays the first."""
    if not passing:
        return {}, 0.0
    scores: dict[str, list[float]] = {one.measured.candidate.name: [] for one in passing}
    same = 0
    for counts in bootstrap_counts(grounds.sampled.rows, REPLICATES, seed):
        again = [_rejudged(one, counts, grounds, cheapest) for one in passing]
        for one in again:
            scores[one.measured.candidate.name].append(one.score)
        first = order(again)[0][0].measured.candidate.name
        same += first == passing[0].measured.candidate.name
    intervals = {
        name: (float(np.percentile(found, 5)), float(np.percentile(found, 95)))
        for name, found in scores.items()
    }
    return intervals, same / REPLICATES


def _rejudged(
    one: Judgement, counts: np.ndarray[tuple[int], np.dtype[np.float64]], grounds: Grounds,
    cheapest: float,
) -> Judgement:  # fmt: skip
    """The same candidate on rows drawn again: what depends on how they are distributed."""
    measured, target = one.measured, grounds.scale
    n, before = target.partitions, measured.measures
    stored = measured.keys.weights(grounds.sampled.sizes * counts)
    spent = measured.keys.weights(measured.ru_rows * counts)
    phi = measured.places.phi(stored, n)
    loads = measured.places.per_range(spent, n) + measured.ru_even / n
    items = measured.keys.weights(counts)
    top = float(items.max(initial=0.0)) / max(float(items.sum()), 1.0)
    heat = replace(before.heat, share=max(before.heat.share, top) if top else before.heat.share)
    after = replace(
        before, phi_bytes={**before.phi_bytes, n: phi}, phi_ru=max(1.0, skew(loads)), heat=heat
    )
    factors = factors_of(after, target, cheapest)
    score = score_of(factors, grounds.demand.write_share)
    return replace(one, score=score, factors=factors, measured=replace(measured, measures=after))
