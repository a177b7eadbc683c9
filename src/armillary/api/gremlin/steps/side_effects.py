"""Collections off the stream: store, aggregate, group('x') and cap() that brings them back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.language.nodes import Chain, Enum
from armillary.api.gremlin.machine.running import Run, Stage, Step, run_each
from armillary.api.gremlin.machine.traverser import Traverser, each, start
from armillary.api.gremlin.machine.values import Map
from armillary.api.gremlin.steps.base import Args, Modulated, Spec, Steps, cycled


class Collected(Protocol):
    """A side effect that is computed when somebody looks: a group."""

    def value(self, run: Run) -> Any: ...


def side_effect_value(run: Run, name: str) -> Any:
    found = run.side_effects[name]
    return found if isinstance(found, list) else found.value(run)


def _list(run: Run, name: str) -> list[Any]:
    found = run.side_effects.setdefault(name, [])
    if not isinstance(found, list):
        raise ScriptError(f"The side effect '{name}' is not a list.")
    return found


class StoreStep(Modulated):
    """store: as traversers pass."""

    name = "store"
    bys_max = 1

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key

    def prepare(self, run: Run) -> None:
        _list(run, self.key)

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        kept = _list(run, self.key)
        values = cycled(self.bys, 0).needed(traversers, run)
        run.keep_copies(traversers)
        for one, value in zip(traversers, values, strict=True):
            kept.extend([value] * one.bulk)
        return traversers


class AggregateStep(StoreStep):
    """aggregate: all of them before the first goes on."""

    name = "aggregate"
    stateful = True

    def begin(self, run: Run) -> Stage:
        return _Aggregated(self, run)


class _Aggregated(Stage):
    def __init__(self, step: AggregateStep, run: Run) -> None:
        self._step = step
        self._run = run
        self._kept: list[Traverser] = []

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        self._kept += self._step.apply(traversers, self._run)
        return []

    def end(self) -> list[Traverser]:
        kept, self._kept = self._kept, []
        return kept


class CapStep(Step):
    name = "cap"
    stateful = True

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys

    def begin(self, run: Run) -> Stage:
        return _Capped(self.keys, run)


class _Capped(Stage):
    def __init__(self, keys: tuple[str, ...], run: Run) -> None:
        self._keys = keys
        self._run = run

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        return []

    def end(self) -> list[Traverser]:
        run = self._run
        for key in self._keys:
            if key not in run.side_effects:
                raise ScriptError(f"The side effect key does not have an associated value: {key}")
        values = [side_effect_value(run, key) for key in self._keys]
        value = values[0] if len(values) == 1 else Map(zip(self._keys, values, strict=True))
        return [start(value, run.tracked)]


class SideEffectStep(Step):
    name = "sideEffect"

    def __init__(self, child: list[Step]) -> None:
        self._child = child

    @property
    def children(self) -> Iterable[Steps]:
        return (self._child,)

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        run_each(self._child, each(traversers), run)
        return traversers


class InjectStep(Step):
    name = "inject"
    stateful = True

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values

    def begin(self, run: Run) -> Stage:
        return _Injected(self, run)

    def first(self, run: Run) -> list[Traverser]:
        return [start(value, run.tracked) for value in self.values]


class _Injected(Stage):
    """The values come before the first traverser, and also when there is none."""

    def __init__(self, step: InjectStep, run: Run) -> None:
        self._waiting = step.first(run)

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        return [*self.end(), *traversers]

    def end(self) -> list[Traverser]:
        waiting, self._waiting = self._waiting, []
        return waiting


def _store(args: Args) -> Step:
    if len(args.values) != 1:
        raise args.bad()
    return StoreStep(*args.strings())


def _aggregate(args: Args) -> Step:
    values = list(args.values)
    scope = "global"
    if values and isinstance(values[0], Enum) and values[0].type == "Scope":
        if args.build.strict:
            raise args.bad()
        scope = values.pop(0).name
    if len(values) != 1:
        raise args.bad()
    return (StoreStep if scope == "local" else AggregateStep)(*args.strings(values))


def _cap(args: Args) -> Step:
    if not args.values:
        raise args.bad()
    return CapStep(args.strings())


def _side_effect(args: Args) -> Step:
    if len(args.values) != 1:
        raise args.bad()
    return SideEffectStep(args.child(args.values[0]))


def _inject(args: Args) -> Step:
    if any(isinstance(one, Chain | Enum) for one in args.values):
        raise args.bad()
    return InjectStep(args.values)


SPECS = (
    Spec("store", _store, "('x').by(..)", "adds each object to a list as it passes"),
    Spec(
        "aggregate",
        _aggregate,
        "('x').by(..)",
        "adds all objects to a list before the first goes on",
    ),
    Spec("cap", _cap, "('x'..)", "a side effect in place of the stream"),
    Spec("sideEffect", _side_effect, "(t)", "runs the child and forgets its results"),
    Spec("inject", _inject, "(v..)", "values into the stream", starts=True),
)
