"""Some seconds of a simulated container, one by one: who is refused, who tries again, who gives up.

    second       1                    2
    arrivals     new ones             those refused before, then new ones
                  │                    │
                  ▼                    ▼
    Budget       admit_many of each range: the product's own admission
                  │ refused
                  ▼
    RetryPolicy  again after `retry after`, or an error

Arrivals are Poisson: of every heavy key by itself, of the lighter keys by range. Operations of one
range and second cost their mean. A request that is refused waits for the rest of its second, so its
latency is that wait and what its retries add.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from armillary.limits import BURST_SECONDS
from armillary.partition.budgets.admission import Budget, BudgetState
from armillary.partition.provisioning.partitions import has_burst
from armillary.partition.retrying import RetryPolicy
from armillary.partition.usage.normalised import normalised_minute
from armillary.sim.container.placing import Floats, Ints

SERVICE_MS = (
    3.0  # median time of an operation that does not wait; p99 of 10 ms, as the SLA promises
)
SERVICE_SIGMA = math.log(10.0 / SERVICE_MS) / 2.326
KEYS_KEPT = 20
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Load:
    """What arrives in a second, expected."""

    tail_ops: Floats
    """Of the lighter keys, by range."""
    heavy_ops: Floats
    """By key."""
    owners: Ints
    """The range of each heavy key."""
    single_ru: float
    queries: float
    """Over all ranges."""
    query_range_ru: float
    """What a query costs each range."""

    @property
    def range_ru(self) -> Floats:
        """Expected request units of each range in a second."""
        heavy = np.bincount(self.owners, weights=self.heavy_ops, minlength=len(self.tail_ops))
        total = (self.tail_ops + heavy) * self.single_ru + self.queries * self.query_range_ru
        return np.asarray(total, np.float64)


@dataclass(slots=True)
class Window:
    start_s: float
    seconds: int
    region: str
    sent: list[int] = field(default_factory=list)
    """By second; retries are sent too."""
    refused: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    """Given up by the client."""
    consumed: list[float] = field(default_factory=list)
    """Request units of all ranges."""
    levels: list[float] = field(default_factory=list)
    """The busiest range, as a share of its budget."""
    nru: list[Floats] = field(default_factory=list)
    """By minute and range, per cent."""
    waits: Floats = field(default_factory=lambda: np.zeros(1))
    """Operations done, by the number of retries they needed."""
    range_refused: Floats = field(default_factory=lambda: np.zeros(0))
    key_refused: list[tuple[int, float, float]] = field(default_factory=list)
    """(rank, its share of all 429s, the share of its requests refused), most refused first."""

    @property
    def refused_share(self) -> float:
        sent = sum(self.sent)
        return sum(self.refused) / sent if sent else 0.0

    @property
    def retries(self) -> int:
        return sum(self.refused) - sum(self.failed)

    def latency_ms(self, quantile: float) -> float:
        """Of operations that succeeded."""
        return _quantile(self.waits, quantile)


def budgets_for(
    shares: Sequence[float], expected: Floats, now_ms: int, *, burst: bool
) -> list[Budget]:
    """As after five minutes of the expected load: what that left unused is in the bank."""
    made = []
    for ru, used in zip(shares, expected, strict=True):
        one = Budget(ru, now_ms, burst=burst and has_burst(ru))
        if burst and has_burst(ru):
            idle = max(0.0, ru - float(used)) * BURST_SECONDS
            one.restore(BudgetState(ru, ru, min(BURST_SECONDS * ru, idle), 0.0, now_ms // 1000))
        made.append(one)
    return made


def run_window(
    load: Load,
    budgets: Sequence[Budget],
    start_s: float,
    seconds: int,
    policy: RetryPolicy,
    rng: np.random.Generator,
    *,
    region: str = "",
    start_ms: int = 0,
) -> Window:
    ranges = len(budgets)
    found = Window(start_s, seconds, region)
    waits = np.zeros(policy.retries + 1)
    used = np.zeros((seconds, ranges))
    refused_total = np.zeros(ranges)
    key_sent = np.zeros(len(load.heavy_ops))
    key_refused = np.zeros(len(load.heavy_ops))
    #: second → attempt → range: who comes again then.
    again: dict[int, Ints] = {}
    for second in range(seconds):
        now_ms = start_ms + 1000 * second
        heavy = rng.poisson(load.heavy_ops)
        single = rng.poisson(load.tail_ops) + np.bincount(
            load.owners, weights=heavy, minlength=ranges
        ).astype(np.int64)
        queries = int(rng.poisson(load.queries)) if load.queries else 0
        new = single + queries
        cost = (single * load.single_ru + queries * load.query_range_ru) / np.maximum(1, new)
        cost = np.where(new > 0, cost, load.single_ru or load.query_range_ru)
        due = again.pop(second, None)
        returning = np.zeros(ranges, np.int64) if due is None else due.sum(axis=0)
        arriving = new + returning
        admitted = np.zeros(ranges, np.int64)
        wait_ms = np.zeros(ranges, np.int64)
        for i, (budget, count, ru) in enumerate(
            zip(budgets, arriving.tolist(), cost.tolist(), strict=True)
        ):
            admitted[i], wait_ms[i] = budget.admit_many(now_ms, count, ru)
        used[second] = admitted * cost
        refused = arriving - admitted
        refused_total += refused
        share = refused / np.maximum(1, arriving)
        key_sent += heavy
        key_refused += heavy * share[load.owners]
        returned = np.minimum(admitted, returning)
        waits[0] += float((admitted - returned).sum())
        lost = 0
        if refused.any():
            left = new - (admitted - returned)
            lost += _schedule(again, left, 0, second, wait_ms, policy, ranges)
        if due is not None:
            lost += _retry(again, due, returned, waits, second, wait_ms, policy, rng)
        found.sent.append(int(arriving.sum()))
        found.refused.append(int(refused.sum()))
        found.failed.append(lost)
        found.consumed.append(float(used[second].sum()))
        found.levels.append(
            max((u / b.ru for u, b in zip(used[second], budgets, strict=True)), default=0.0)
        )
    found.waits = waits
    found.range_refused = refused_total
    found.nru = _minutes(used, budgets)
    found.key_refused = _worst(load, refused_total, key_refused / np.maximum(1.0, key_sent))
    return found


def _schedule(
    again: dict[int, Ints],
    refused: Ints,
    retries_done: int,
    second: int,
    wait_ms: Ints,
    policy: RetryPolicy,
    ranges: int,
) -> int:
    """Put the refused of each range where they come again; how many give up instead."""
    lost = 0
    for i in np.flatnonzero(refused):
        asked_ms = int(wait_ms[i])
        wait = policy.wait_ms(retries_done, retries_done * asked_ms, asked_ms)
        if wait is None:
            lost += int(refused[i])
            continue
        later = second + max(1, math.ceil(wait / 1000))
        slot = again.setdefault(later, np.zeros((policy.retries + 1, ranges), np.int64))
        slot[retries_done + 1, i] += refused[i]
    return lost


def _retry(
    again: dict[int, Ints],
    due: Ints,
    returned: Ints,
    waits: Floats,
    second: int,
    wait_ms: Ints,
    policy: RetryPolicy,
    rng: np.random.Generator,
) -> int:
    """Those that came again: chance decides which of them were among the admitted."""
    lost = 0
    places = returned.copy()
    rest = due.sum(axis=0)
    for attempt in range(1, policy.retries + 1):
        mine = due[attempt]
        if not mine.any():
            continue
        rest = rest - mine
        done = rng.hypergeometric(mine, rest, places)
        places = places - done
        waits[attempt] += float(done.sum())
        lost += _schedule(again, mine - done, attempt, second, wait_ms, policy, len(mine))
    return lost


def _minutes(used: Floats, budgets: Sequence[Budget]) -> list[Floats]:
    return [
        np.array(
            [
                normalised_minute(used[start : start + 60, i].tolist(), budget.ru)
                for i, budget in enumerate(budgets)
            ]
        )
        for start in range(0, len(used), 60)
    ]


def _worst(load: Load, refused: Floats, shares: Floats) -> list[tuple[int, float, float]]:
    """A key has its part of the 429s of its range, retries included. Heavy keys only."""
    total = float(refused.sum())
    if total <= 0:
        return []
    heavy = np.bincount(load.owners, weights=load.heavy_ops, minlength=len(refused))
    of_range = load.tail_ops + heavy + load.queries
    rate = refused / np.maximum(1e-12, of_range)
    own = load.heavy_ops * rate[load.owners] / total
    order = np.argsort(-own, kind="stable")[:KEYS_KEPT]
    return [(int(k), float(own[k]), float(shares[k])) for k in order if own[k] > 0]


def _quantile(waits: Floats, quantile: float) -> float:
    """Service time for those that never waited; a uniform part of a second for the first retry,
    and a second for each further one.
    """
    total = float(waits.sum())
    if total <= 0:
        return 0.0
    direct = float(waits[0]) / total
    if quantile <= direct:
        # Lognormal service times; `direct` of all operations are faster than any that waited.
        normal = _NORMAL.inv_cdf(min(quantile / direct, 1 - 1e-9))
        return SERVICE_MS * math.exp(SERVICE_SIGMA * normal)
    target, passed = quantile * total, float(waits[0])
    for attempt in range(1, len(waits)):
        here = float(waits[attempt])
        if here and passed + here >= target:
            return SERVICE_MS + 1000.0 * (attempt - 1 + (target - passed) / here)
        passed += here
    return SERVICE_MS + 1000.0 * (len(waits) - 1)
