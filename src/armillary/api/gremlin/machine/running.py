"""How steps are run: batches of traversers pushed through a chain of stages.

    batch ─▶ stage ─▶ stage ─▶ … ─▶ results          feed, batch after batch
             end    ─▶ end   ─▶ … ─▶ last results    a barrier gives what it has collected

A step without state is applied to each batch (`Step.apply`). A step with state (count, order,
dedup, limit) makes a `Stage` for each scope (`Step.begin`). A child traversal that runs for each
parent by itself runs for all parents at once: its traversers carry the number of their parent as
`origin`, and steps with state keep one stage for each origin. So `where(out('knows'))` over a
thousand vertices is one read, not a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, TypeAlias

from armillary.api.gremlin.graph.base import Graph
from armillary.api.gremlin.machine.traverser import Traverser
from armillary.budget import Budget
from armillary.limits import GREMLIN_BATCH_TRAVERSERS

REFERENCE_BYTES = 8
TRAVERSER_BYTES = 250
"""What one that is kept counts for in the budget: itself, its part of the trail, its object."""


LooksAt: TypeAlias = Literal["nothing", "ids", "documents"]


@dataclass(slots=True)
class Run:
    """One traversal under way."""

    graph: Graph
    budget: Budget
    random: Random
    tracked: bool = True
    """Some step looks at paths."""
    strict: bool = True
    system: frozenset[str] = frozenset()
    """System properties that are visible."""
    partitions: tuple[Any, ...] | None = None
    write_partition: Any = None
    """Of PartitionStrategy: the key of new vertices that name none."""
    side_effects: dict[str, Any] = field(default_factory=dict)
    note: Callable[[Step, int, float], None] | None = None
    """For executionProfile: a step, how many results, and the seconds it took."""
    clock: Callable[[], float] | None = None

    def expect(self, traversers: int) -> None:
        """A step is about to make so many at once: raise before it does, if they are too many. They
        are held while they go on (`Chain.push`)."""
        self.budget.hold(TRAVERSER_BYTES * traversers)
        self.budget.release(TRAVERSER_BYTES * traversers)

    def keep_copies(self, traversers: Sequence[Traverser]) -> None:
        """Before the object of each is kept as often as it counts for."""
        copies = sum(one.bulk for one in traversers)
        self.budget.hold(TRAVERSER_BYTES * len(traversers) + REFERENCE_BYTES * copies)


class Stage:
    """A step with state in one scope."""

    full = False
    """It will never let another traverser pass."""

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        raise NotImplementedError

    def end(self) -> list[Traverser]:
        """What it has kept; it may be fed again afterwards (in a repeat)."""
        return []


class Step:
    """One step of a traversal, ready to run any number of times."""

    name = ""
    stateful = False
    labels: tuple[str, ...] = ()
    looks_at: LooksAt = "documents"
    """What it asks elements for. Nothing: it hands them on as they came. Ids: it gives something
    else. Hops before it read no more than that."""

    def prepare(self, run: Run) -> None:
        """Before the first traverser: side effects are there even if none comes."""

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        raise NotImplementedError

    def begin(self, run: Run) -> Stage:
        raise NotImplementedError

    @property
    def children(self) -> Iterable[Sequence[Step]]:
        return ()

    @property
    def looks_back(self) -> bool:
        """Whether it needs the path of its traversers."""
        return False


class _Applied(Stage):
    __slots__ = ("_run", "_step")

    def __init__(self, step: Step, run: Run) -> None:
        self._step = step
        self._run = run

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        return self._step.apply(traversers, self._run) if traversers else traversers


class _PerOrigin(Stage):
    """A stage for each parent of a child traversal."""

    def __init__(self, step: Step, run: Run, origins: int) -> None:
        self._step = step
        self._run = run
        self._stages: list[Stage | None] = [None] * origins

    def _stage(self, origin: int) -> Stage:
        stage = self._stages[origin]
        if stage is None:
            stage = self._stages[origin] = self._step.begin(self._run)
        return stage

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        groups: dict[int, list[Traverser]] = {}
        for one in traversers:
            groups.setdefault(one.origin, []).append(one)
        found: list[Traverser] = []
        for origin, group in groups.items():
            found += _from(self._stage(origin).feed(group), origin)
        return found

    def end(self) -> list[Traverser]:
        found: list[Traverser] = []
        for origin in range(len(self._stages)):
            found += _from(self._stage(origin).end(), origin)
        return found


def _from(traversers: list[Traverser], origin: int) -> list[Traverser]:
    return [one if one.origin == origin else one.copy(origin) for one in traversers]


class Chain:
    """The stages of a traversal in one scope, or (with `origins`) in many at once."""

    def __init__(self, steps: Sequence[Step], run: Run, origins: int | None = None) -> None:
        self._run = run
        self._steps = steps
        self._stages = [_stage(step, run, origins) for step in steps]

    @property
    def full(self) -> bool:
        return any(stage.full for stage in self._stages)

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        return [one for batch in self.push(traversers) for one in batch]

    def end(self) -> list[Traverser]:
        return [one for batch in self.last() for one in batch]

    def last(self) -> Iterator[list[Traverser]]:
        for at, stage in enumerate(self._stages):
            kept = stage.end()
            if kept:
                yield from self.push(kept, at + 1)

    def push(self, traversers: list[Traverser], at: int = 0) -> Iterator[list[Traverser]]:
        """Results of a batch, a part at a time: a vertex with a million edges is not a million
        traversers at the end of the chain at once."""
        run, stages = self._run, self._stages
        while traversers and at < len(stages):
            if len(traversers) > GREMLIN_BATCH_TRAVERSERS:
                held = TRAVERSER_BYTES * len(traversers)
                run.budget.hold(held)
                for low in range(0, len(traversers), GREMLIN_BATCH_TRAVERSERS):
                    yield from self.push(traversers[low : low + GREMLIN_BATCH_TRAVERSERS], at)
                    if self.full:
                        break
                run.budget.release(held)
                return
            run.budget.spend(len(traversers))
            if run.note is None:
                traversers = stages[at].feed(traversers)
            else:
                traversers = self._noted(at, traversers)
            at += 1
        if traversers:
            yield traversers

    def _noted(self, at: int, traversers: list[Traverser]) -> list[Traverser]:
        note, clock = self._run.note, self._run.clock
        assert note is not None
        assert clock is not None
        began = clock()
        passed = self._stages[at].feed(traversers)
        note(self._steps[at], len(passed), clock() - began)
        return passed


def _stage(step: Step, run: Run, origins: int | None) -> Stage:
    if not step.stateful:
        return _Applied(step, run)
    return step.begin(run) if origins is None else _PerOrigin(step, run, origins)


def run_each(
    steps: Sequence[Step], traversers: Sequence[Traverser], run: Run
) -> list[list[Traverser]]:
    """The results of a child traversal for each parent by itself, which counts as one in it. Their
    origin is their parent's again; their trail goes on from its trail."""
    chain = Chain(steps, run, len(traversers))
    results: list[list[Traverser]] = [[] for _ in traversers]
    starts = [
        Traverser(one.object, one.trail, 1, one.loops, number)
        for number, one in enumerate(traversers)
    ]
    for one in (*chain.feed(starts), *chain.end()):
        parent = traversers[one.origin]
        results[one.origin].append(
            Traverser(one.object, one.trail, one.bulk * parent.bulk, one.loops, parent.origin)
        )
    return results


def values_of(steps: Sequence[Step], objects: Sequence[Any], run: Run) -> list[list[Any]]:
    """The same for plain values, and values out."""
    tracked = run.tracked
    starts = [Traverser(one, (None, one, ()) if tracked else None) for one in objects]
    results = run_each(steps, starts, run)
    for found in results:
        run.expect(sum(one.bulk for one in found))
    return [[result.object for result in found for _ in range(result.bulk)] for found in results]


def run_all(
    steps: Sequence[Step], batches: Iterator[list[Traverser]], run: Run
) -> Iterator[list[Traverser]]:
    """A whole traversal: results as they come, batch by batch."""
    chain = Chain(steps, run)
    for batch in batches:
        yield from chain.push(batch)
        if chain.full:
            break
    yield from chain.last()
