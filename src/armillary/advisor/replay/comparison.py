"""The same operations under several partition keys, side by side.

    workload + sample ──playing──▶ operations ─┐
    trace ─────────────traces────▶ operations ─┤
                                               ├─ for each candidate: places, pricing ──▶ steps
                                               │  replay_run: budgets, 429s, retries, splits
                                               ▼
                                      replay_findings ──▶ Comparison

Every candidate sees the same operations at the same moments under the same throughput; nothing
differs but where they go. The rules are the product's own (`partition/`): change one there,
and this changes with it.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Final

from armillary.advisor.data.sample import Sample
from armillary.advisor.keys.candidates import Candidate
from armillary.advisor.replay.findings import findings
from armillary.advisor.replay.record import Record
from armillary.advisor.replay.result import Comparison, Replayed
from armillary.advisor.replay.run import Play, Step
from armillary.advisor.workload.operations import TimedOperation
from armillary.advisor.workload.places import Router
from armillary.advisor.workload.playing import Played
from armillary.advisor.workload.pricing import Price, price
from armillary.encoding.paths import format_path
from armillary.errors import BadInput
from armillary.keys.buckets import bucket_of, instant_of
from armillary.keys.spec import Part
from armillary.partition.provisioning.partitions import LIMITS, OfferKind, PartitionLimits
from armillary.partition.provisioning.virtual import VirtualContainer
from armillary.partition.request_units import DEFAULT, Coefficients
from armillary.partition.retrying import SDK_RETRIES, RetryPolicy
from armillary.values import JSON

USABLE: Final = 0.7  # how much of its throughput a container should use
THROUGHPUT_MIN: Final = 400.0
INDEX_FACTOR: Final = 1.15  # bytes stored per byte of item: the index is 10 to 20 % of the data
SKIPS_SHOWN: Final = 5
DAY_MS: Final = 86_400_000
#: A minute, an hour, a day, a month, a year: after which the time in a key may be another.
KEY_DAYS: Final = (1 / 1440, 1 / 24, 1.0, 31.0, 366.0)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    throughput: float | None = None
    """RU/s; of autoscale, the maximum. None: what the best candidate would use at 70 %."""
    changes: tuple[tuple[float, float], ...] = ()
    """(second, RU/s): another throughput from then on."""
    offer: OfferKind = "manual"
    limits: PartitionLimits = LIMITS
    burst: bool = False
    retries: RetryPolicy = SDK_RETRIES
    profile: Coefficients = DEFAULT
    seed: int = 0
    storage_bytes: float | None = None
    """What the container holds; None: what the data has."""
    growth_bytes_per_day: float | None = None
    ttl_s: float | None = None
    partitions: int | None = None
    """How many a container has that is not new."""
    index_factor: float = INDEX_FACTOR


def replay_candidates(
    candidates: Sequence[Candidate],
    played: Played,
    sample: Sample | None = None,
    options: ReplayOptions | None = None,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """`sample` is what the container holds when it begins. `progress` is given each candidate
    before it is run."""
    if not candidates:
        raise BadInput("There is no candidate to replay.")
    if not played.operations:
        raise BadInput("There is no operation to replay.")
    wanted = options or ReplayOptions()
    prices = _Prices(wanted.profile)
    prepared = [_prepare(one, played, sample, wanted, prices) for one in candidates]
    throughput = wanted.throughput or _throughput(prepared, played)
    replays = []
    for one in prepared:
        if progress is not None:
            progress(one.candidate.name)
        replays.append(_run(one, played, throughput, wanted))
    return Comparison(
        throughput=throughput,
        offer=wanted.offer,
        throughput_given=wanted.throughput is not None,
        seconds=played.seconds,
        operations=len(played.operations) * played.weight,
        weight=played.weight,
        seed=wanted.seed,
        storage_bytes=sum(size for _, _, size in prepared[0].stored),
        replays=tuple(replays),
    )


@dataclass(slots=True)
class _Prepared:
    candidate: Candidate
    router: Router
    steps: list[Step]
    names: list[tuple[str, str]]
    stored: list[tuple[bytes, str, float]]
    skipped: Counter[str] = field(default_factory=Counter)


def _prepare(
    candidate: Candidate,
    played: Played,
    sample: Sample | None,
    options: ReplayOptions,
    prices: "_Prices",
) -> _Prepared:
    # One seed for each candidate: what one draws must not depend on the others.
    router = Router(candidate, Random(options.seed))
    skipped: Counter[str] = Counter()
    templates = _Templates()
    factor = options.index_factor
    steps = list(_steps(router, played.operations, templates, prices, factor, skipped))
    stored = [] if sample is None else list(_stored(router, sample, options))
    return _Prepared(candidate, router, steps, templates.names, stored, skipped)


def _run(one: _Prepared, played: Played, throughput: float, options: ReplayOptions) -> Replayed:
    container = VirtualContainer(
        one.router.definition,
        throughput,
        int(played.start_ms),
        kind=options.offer,
        partitions=options.partitions,
        burst=options.burst,
        of=options.limits,
    )
    changes = [(played.start_ms + second * 1000, ru) for second, ru in options.changes]
    play = Play(
        container,
        Record(played.start_ms),
        options.retries,
        played.weight,
        throughput=changes,
    )
    play.fill(one.stored)
    play.split_full(int(played.start_ms))
    play.splits.clear()  # it is as it was before the replay began
    play.run(one.steps)
    play.split_full(int(max(play.record.last_ms, played.start_ms)))
    return findings(
        play,
        key=one.candidate.name,
        kind=one.candidate.kind,
        names=one.names,
        seconds=played.seconds,
        offer=options.offer,
        growth_bytes_per_day=options.growth_bytes_per_day,
        ttl_s=options.ttl_s,
        key_days=_key_days(one.candidate, played),
        skipped=[f"{count:,} × {why}" for why, count in one.skipped.most_common(SKIPS_SHOWN)],
    )


def _throughput(prepared: Sequence[_Prepared], played: Played) -> float:
    """What the candidate that costs least would use at 70 %, in steps of 100."""
    least = min(
        sum(step.ru + step.range_ru for step in one.steps) if one.steps else math.inf
        for one in prepared
    )
    per_second = least * played.weight / max(played.seconds, 1e-9)
    if not math.isfinite(per_second):
        return THROUGHPUT_MIN
    return max(THROUGHPUT_MIN, math.ceil(per_second / USABLE / 100) * 100.0)


# --- steps ----------------------------------------------------------------------------------------


class _Templates:
    """Operations that are instances of one line or query count together."""

    def __init__(self) -> None:
        self.names: list[tuple[str, str]] = []
        self._numbers: dict[tuple[str, str], int] = {}

    def number(self, operation: TimedOperation) -> int:
        template = operation.template
        name = (template.name if template is not None else operation.kind, operation.kind)
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found


class _Prices:
    """What an operation costs does not depend on the key, only on whether one key is asked."""

    def __init__(self, profile: Coefficients) -> None:
        self._profile = profile
        self._known: dict[tuple[int, bool, bool], tuple[TimedOperation, Price]] = {}

    def of(self, operation: TimedOperation, is_point: bool, replaces: bool) -> Price:
        mark = (id(operation), is_point, replaces)
        found = self._known.get(mark)
        if found is None:
            made = price(operation, is_point=is_point, replaces=replaces, profile=self._profile)
            # With the operation, so that no other gets its id.
            found = self._known[mark] = (operation, made)
        return found[1]


def _key_days(candidate: Candidate, played: Played) -> float | None:
    """How long new items go to one key when the key has the time of writing in it; None: always."""

    # From the beginning of a year, where minutes, days and months begin together.
    year = datetime.fromtimestamp(played.start_ms / 1000, UTC).year
    begin_ms = datetime(year, 1, 1, tzinfo=UTC).timestamp() * 1000

    def texts(days: float) -> list[JSON]:
        at_ms = begin_ms + days * DAY_MS
        return [
            value
            if part.bucket is None
            else bucket_of(instant_of(value, part.unit, format_path(part.path)), part.bucket)
            for part in parts
            for value in (played.moments[part.path].write(at_ms),)
        ]

    own = candidate.synthetic
    made_of = map(Part, candidate.paths) if own is None else own.spec.parts
    parts = [part for part in made_of if part.path in played.moments]
    if not parts:
        return None
    today = texts(0)
    return next((days for days in KEY_DAYS if texts(days) != today), None)


def _steps(
    router: Router,
    operations: Iterable[TimedOperation],
    templates: _Templates,
    prices: "_Prices",
    index_factor: float,
    skipped: Counter[str],
) -> Iterator[Step]:
    seen: set[tuple[str | None, str | None]] = set()
    for operation in operations:
        template = templates.number(operation)
        try:
            for part in _parts(router, operation):
                target = router.target(part)
                mark = (target.key, part.id)
                replaces = part.kind == "upsert" and (mark in seen or part.template is not None)
                cost = prices.of(part, target.is_point, replaces)
                if part.kind in _GROWS:
                    seen.add(mark)
                yield Step(
                    part.ts_ms,
                    target.pieces,
                    target.key,
                    cost.ru,
                    cost.range_ru,
                    _stored_bytes(part, replaces) * index_factor,
                    template,
                )
        except BadInput as error:
            skipped[f"{operation.kind}: {error}"] += 1


_GROWS: Final = frozenset({"create", "upsert", "batch"})


def _parts(router: Router, operation: TimedOperation) -> Iterator[TimedOperation]:
    """A batch whose items do not share a key is no transaction: its items go one by one."""
    if operation.kind != "batch" or router.target(operation).is_point:
        yield operation
        return
    items = operation.items or (operation.fields,)
    size = operation.body_bytes // len(items)
    ru = None if operation.charge_ru is None else operation.charge_ru / len(items)
    for fields in items:
        yield TimedOperation(
            operation.ts_ms, "create", fields, operation.id, size, ru, operation.template
        )


def _stored_bytes(operation: TimedOperation, replaces: bool) -> float:
    if operation.kind == "delete":
        return -operation.body_bytes
    return operation.body_bytes if operation.kind in _GROWS and not replaces else 0.0


def _stored(
    router: Router, sample: Sample, options: ReplayOptions
) -> Iterator[tuple[bytes, str, float]]:
    """Hash, key and bytes of what lies in the container. Items that can't have this key lie
    nowhere; they are reported when they are written."""
    factor = options.index_factor
    if options.storage_bytes is None:
        factor *= sample.bytes_scale
    else:
        factor = options.storage_bytes / max(1, sum(sample.sizes))
    for fields, size in zip(sample.items, sample.sizes, strict=True):
        try:
            target = router.place(fields)
        except BadInput:
            continue
        yield target.pieces[0][0], target.key or "", size * factor
