"""union, coalesce, optional, local, choose: several ways on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.language.nodes import Chain as ChainNode
from armillary.api.gremlin.language.nodes import Enum
from armillary.api.gremlin.machine.predicates import P
from armillary.api.gremlin.machine.running import Chain, Run, Stage, Step, run_each
from armillary.api.gremlin.machine.traverser import Traverser
from armillary.api.gremlin.machine.values import equal
from armillary.api.gremlin.steps.base import MISSING, Args, By, Spec, Steps


def has_state(steps: Steps) -> bool:
    return any(step.stateful for step in steps)


class UnionStep(Step):
    """Each traverser takes every branch. A barrier in a branch sees all traversers."""

    name = "union"

    def __init__(self, branches: list[list[Step]]) -> None:
        self.branches = branches
        self.stateful = any(map(has_state, branches))

    @property
    def children(self) -> Iterable[Steps]:
        return self.branches

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        found = []
        for branch in self.branches:
            found += Chain(branch, run).feed([one.copy() for one in traversers])
        return found

    def begin(self, run: Run) -> Stage:
        return _Branches(self.branches, run)


class _Branches(Stage):
    def __init__(self, branches: list[list[Step]], run: Run) -> None:
        self.chains = [Chain(branch, run) for branch in branches]
        self._any = False

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        self._any = self._any or bool(traversers)
        found = []
        for chain in self.chains:
            found += chain.feed([one.copy(0) for one in traversers])
        return found

    def end(self) -> list[Traverser]:
        if not self._any:  # nothing came, so not even count() has anything to say
            return []
        return [one for chain in self.chains for one in chain.end()]


class CoalesceStep(Step):
    """The results of the first child that has any; the path of the child is not kept."""

    name = "coalesce"

    def __init__(self, branches: list[list[Step]]) -> None:
        self.branches = branches

    @property
    def children(self) -> Iterable[Steps]:
        return self.branches

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        left = list(range(len(traversers)))
        results: list[list[Traverser]] = [[] for _ in traversers]
        for branch in self.branches:
            found = run_each(branch, [traversers[at] for at in left], run)
            for at, each in zip(left, found, strict=True):
                results[at] = each
            left = [at for at, each in zip(left, found, strict=True) if not each]
            if not left:
                break
        answer = []
        for one, found_here in zip(traversers, results, strict=True):
            for result in found_here:
                moved = one.at(result.object, run.tracked)
                moved.bulk = result.bulk
                answer.append(moved)
        return answer


class OptionalStep(Step):
    name = "optional"

    def __init__(self, child: list[Step]) -> None:
        self.child = child

    @property
    def children(self) -> Iterable[Steps]:
        return (self.child,)

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        results = run_each(self.child, traversers, run)
        return [
            result
            for one, found in zip(traversers, results, strict=True)
            for result in (found or (one,))
        ]


class LocalStep(OptionalStep):
    name = "local"

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        return [one for found in run_each(self.child, traversers, run) for one in found]


class ChooseStep(Step):
    """By a test: then or else. By a value: the option that matches it."""

    name = "choose"

    def __init__(self, choice: By | P, is_test: bool) -> None:
        self.choice = choice
        self.is_test = is_test
        self.options: list[tuple[Any, list[Step]]] = []

    @property
    def children(self) -> Iterable[Steps]:
        if isinstance(self.choice, By) and self.choice.steps:
            yield self.choice.steps
        for _, steps in self.options:
            yield steps

    @property
    def stateful(self) -> bool:  # type: ignore[override]
        return any(has_state(steps) for _, steps in self.options)

    def option(self, args: Args) -> None:
        if self.is_test and len(self.options) >= 2:
            raise args.bad()
        if len(args.values) == 1:
            self.options.append((Enum("Pick", "none"), args.child(args.values[0])))
        elif len(args.values) == 2:
            self.options.append((args.values[0], args.child(args.values[1])))
        else:
            raise args.bad()

    def routes(self, traversers: list[Traverser], run: Run) -> list[list[Traverser]]:
        """The traversers for each option."""
        routes: list[list[Traverser]] = [[] for _ in self.options]
        for one, value in zip(traversers, self._values(traversers, run), strict=True):
            met = [at for at, (test, _) in enumerate(self.options) if _meets(test, value)]
            if not met:
                met = [at for at, (test, _) in enumerate(self.options) if _is_pick(test, "none")]
            met += [at for at, (test, _) in enumerate(self.options) if _is_pick(test, "any")]
            for at in met:
                routes[at].append(one.copy())
        return routes

    def _values(self, traversers: list[Traverser], run: Run) -> list[Any]:
        choice = self.choice
        if isinstance(choice, P):
            return [choice(one.object) for one in traversers]
        if self.is_test:
            return [bool(found) for found in run_each(choice.steps, traversers, run)]
        found = choice.of(traversers, run)
        for one, value in zip(traversers, found, strict=True):
            if value is MISSING:
                raise ScriptError(f"The provided traverser does not map to a value: {one.object!r}")
        return found

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        found: list[Traverser] = []
        for (_, steps), route in zip(self.options, self.routes(traversers, run), strict=True):
            if route:
                found += Chain(steps, run).feed(route)
        return found

    def begin(self, run: Run) -> Stage:
        return _Choosing(self, run)


class _Choosing(Stage):
    def __init__(self, step: ChooseStep, run: Run) -> None:
        self._step = step
        self._run = run
        self._chains = [Chain(steps, run) for _, steps in step.options]
        self._taken = [False] * len(self._chains)

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        found = []
        routes = self._step.routes(traversers, self._run)
        for at, (chain, route) in enumerate(zip(self._chains, routes, strict=True)):
            self._taken[at] = self._taken[at] or bool(route)
            found += chain.feed([one.copy(0) for one in route])
        return found

    def end(self) -> list[Traverser]:
        """A way that was not taken gives nothing, not even count()."""
        taken = [chain for chain, yes in zip(self._chains, self._taken, strict=True) if yes]
        return [one for chain in taken for one in chain.end()]


def _meets(test: Any, value: Any) -> bool:
    if isinstance(test, Enum):
        return False
    return test(value) if isinstance(test, P) else equal(test, value)


def _is_pick(test: Any, name: str) -> bool:
    return isinstance(test, Enum) and test.type == "Pick" and test.name == name


def _union(args: Args) -> Step:
    return UnionStep(args.children())


def _coalesce(args: Args) -> Step:
    return CoalesceStep(args.children())


def _one_child(args: Args) -> Step:
    if len(args.values) != 1:
        raise args.bad()
    kind = OptionalStep if args.name == "optional" else LocalStep
    return kind(args.child(args.values[0]))


def _choose(args: Args) -> Step:
    values = args.values
    if len(values) == 1:
        (what,) = values
        if isinstance(what, P):
            return ChooseStep(what, False)
        if isinstance(what, ChainNode):
            return ChooseStep(By(tuple(args.child(what))), False)
        if isinstance(what, Enum) and what.type == "T":
            return ChooseStep(By(what), False)
        raise args.bad()
    if len(values) not in (2, 3):
        raise args.bad()
    choice = values[0] if isinstance(values[0], P) else By(tuple(args.child(values[0])))
    step = ChooseStep(choice, True)
    step.options.append((True, args.child(values[1])))
    step.options.append((False, args.child(values[2]) if len(values) == 3 else []))
    return step


SPECS = (
    Spec(
        "union", _union, "(t..)", "the results of every child; a barrier in one sees all traversers"
    ),
    Spec("coalesce", _coalesce, "(t..)", "the results of the first child that has any"),
    Spec("optional", _one_child, "(t)", "the results of the child, or the object itself"),
    Spec("local", _one_child, "(t)", "the child for each object by itself"),
    Spec(
        "choose",
        _choose,
        "(t|p, then[, else]), (t).option(v, t)..",
        "by a test, or by a value that options match; without a match nothing",
    ),
)
