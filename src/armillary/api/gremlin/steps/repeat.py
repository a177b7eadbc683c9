"""repeat, with times, until and emit before it (while-do) or after it (do-while).

Level by level for all traversers together: one read for each level and partition.
"""

from __future__ import annotations

from collections.abc import Iterable

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.language.nodes import Chain as ChainNode
from armillary.api.gremlin.machine.predicates import P
from armillary.api.gremlin.machine.running import (
    TRAVERSER_BYTES,
    Chain,
    LooksAt,
    Run,
    Stage,
    Step,
    run_each,
)
from armillary.api.gremlin.machine.traverser import Traverser, merged
from armillary.api.gremlin.steps.base import Args, Spec, Steps
from armillary.api.gremlin.steps.branch import has_state
from armillary.api.gremlin.steps.filters import IsStep
from armillary.limits import GREMLIN_REPEATS_MAX


class TimesStep(Step):
    """The condition of times(n)."""

    name = "times"

    def __init__(self, count: int) -> None:
        self.count = count

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        return [one for one in traversers if one.loops and one.loops[-1] >= self.count]


class RepeatStep(Step):
    name = "repeat"

    def __init__(self) -> None:
        self.body: list[Step] | None = None
        self.until: list[Step] | None = None
        self.until_first = False
        self.emit: list[Step] | None = None
        self.emit_first = False

    @property
    def children(self) -> Iterable[Steps]:
        return [one for one in (self.body, self.until, self.emit) if one]

    @property
    def stateful(self) -> bool:  # type: ignore[override]
        return has_state(self.body or ())

    @property
    def counts_only(self) -> bool:
        """It ends by times(), and emits nothing on the way."""
        until = self.until or ()
        return self.emit is None and all(isinstance(one, TimesStep) for one in until)

    @property
    def looks_at(self) -> LooksAt:  # type: ignore[override]
        first = self.body[0].looks_at if self.body and self.counts_only else "documents"
        return "documents" if first == "nothing" else first

    def takes(self, name: str) -> bool:
        """Whether a word belongs to this repeat(); if not, it begins the next one."""
        if name == "repeat":
            return self.body is None
        return (self.emit if name == "emit" else self.until) is None

    def modulate(self, args: Args) -> None:
        before = self.body is None
        if args.name == "repeat":
            if len(args.values) != 1:
                raise args.bad()
            self.body = args.child(args.values[0])
            return
        if args.name == "emit":
            self.emit, self.emit_first = self._condition(args), before
            return
        if args.name == "times":
            if len(args.values) != 1 or args.integer(args.values[0]) < 0:
                raise args.bad()
            count = args.integer(args.values[0])
            self.until = [TimesStep(count)]
            if args.build.strict and count > GREMLIN_REPEATS_MAX:
                raise too_many()
        else:
            self.until = self._condition(args)
        self.until_first = before

    @staticmethod
    def _condition(args: Args) -> list[Step]:
        if not args.values and args.name == "emit":
            return []
        match args.values:
            case (ChainNode() as chain,):
                return args.child(chain)
            case (P() as test,):
                return [IsStep(test)]
        raise args.bad()

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        return _Looping(self, run).rounds(traversers)

    def begin(self, run: Run) -> Stage:
        return _Looping(self, run)


class _Looping(Stage):
    """Keeps everything when the body has a barrier: each level goes through it as one."""

    def __init__(self, step: RepeatStep, run: Run) -> None:
        self._step = step
        self._run = run
        self._kept: list[Traverser] = []

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        self._kept += traversers
        return []

    def end(self) -> list[Traverser]:
        kept, self._kept = self._kept, []
        return self.rounds(kept)

    def rounds(self, traversers: list[Traverser]) -> list[Traverser]:
        step, run = self._step, self._run
        assert step.body is not None
        stateful = step.stateful
        chain = Chain(step.body, run)
        done: list[Traverser] = []
        level = [_loops(one, (*one.loops, 0)) for one in traversers]
        rounds = held = of_done = 0
        while level:
            if step.until_first:
                level = self._exit(level, done)
            if step.emit_first:
                self._emit(level, done)
            if not level:
                break
            if rounds >= GREMLIN_REPEATS_MAX and run.strict:
                raise too_many()
            rounds += 1
            run.budget.check()
            body = chain if stateful else Chain(step.body, run)
            before, held = held, 0
            going, level = level, []
            for batch in body.push(going):
                size = TRAVERSER_BYTES * len(batch)
                run.budget.hold(size)
                held += size
                level += batch
            run.budget.release(before)
            if stateful:
                level += [_loops(one, one.loops or (rounds - 1,)) for one in chain.end()]
            # What a step of the body put in has no loops yet.
            counted = [(one, one.loops or (rounds - 1,)) for one in level]
            level = merged([_loops(one, (*at[:-1], at[-1] + 1)) for one, at in counted])
            left = min(held, TRAVERSER_BYTES * len(level))
            run.budget.release(held - left)
            held = left
            if not step.until_first:
                level = self._exit(level, done)
            if not step.emit_first:
                self._emit(level, done)
            run.budget.hold(TRAVERSER_BYTES * (len(done) - of_done))
            of_done = len(done)
        run.budget.release(held + TRAVERSER_BYTES * of_done)
        return done

    def _exit(self, level: list[Traverser], done: list[Traverser]) -> list[Traverser]:
        """Those that go on."""
        until = self._step.until
        if until is None:
            return level
        going = []
        for one, met in zip(level, run_each(until, level, self._run), strict=True):
            if met:
                done.append(_loops(one, one.loops[:-1]))
            else:
                going.append(one)
        return going

    def _emit(self, level: list[Traverser], done: list[Traverser]) -> None:
        emit = self._step.emit
        if emit is None:
            return
        results = run_each(emit, level, self._run) if emit else [level] * len(level)
        done += [
            _loops(one, one.loops[:-1]) for one, met in zip(level, results, strict=True) if met
        ]


def _loops(one: Traverser, loops: tuple[int, ...]) -> Traverser:
    return Traverser(one.object, one.trail, one.bulk, loops, one.origin)


def too_many() -> ScriptError:
    return ScriptError(f"repeat() may go round {GREMLIN_REPEATS_MAX} times.", "limit")


def _repeat(args: Args) -> Step:
    step = RepeatStep()
    step.modulate(args)
    return step


SPECS = (
    Spec(
        "repeat",
        _repeat,
        "(t) with times(n), until(t|p), emit([t|p]) before or after",
        "goes round, at most 32 times",
    ),
)
