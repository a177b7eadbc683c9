"""count, sum, min, max, mean, fold: one value for all, or (`local`) for the parts of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.language.nodes import Enum
from armillary.api.gremlin.machine.running import Run, Stage, Step
from armillary.api.gremlin.machine.traverser import Traverser, start
from armillary.api.gremlin.machine.values import Map, Path, comparable, is_number, type_name
from armillary.api.gremlin.steps.base import MISSING, Args, LocalStep, Spec

#: From (kept so far, value, how often) to what is kept.
Fold = Callable[[Any, Any, int], Any]


def _number(value: Any) -> Any:
    if not is_number(value):
        raise ScriptError(f"{type_name(value)} is not a number: {value!r}")
    return value


def _sum(kept: Any, value: Any, bulk: int) -> Any:
    added = _number(value) * bulk
    return added if kept is MISSING else kept + added


def _mean(kept: Any, value: Any, bulk: int) -> Any:
    total, count = (0, 0) if kept is MISSING else kept
    return (total + _number(value) * bulk, count + bulk)


def _best(is_better: Callable[[Any, Any], bool]) -> Fold:
    def fold(kept: Any, value: Any, bulk: int) -> Any:
        if kept is MISSING:
            if not comparable(value, value):
                raise ScriptError(f"{type_name(value)} has no order.")
            return value
        if not comparable(kept, value):
            raise ScriptError(f"{type_name(value)} can't be compared with {type_name(kept)}.")
        return value if is_better(value, kept) else kept

    return fold


FOLDS: Final[dict[str, Fold]] = {
    "count": lambda kept, value, bulk: (0 if kept is MISSING else kept) + bulk,
    "sum": _sum,
    "mean": _mean,
    "min": _best(lambda value, kept: value < kept),
    "max": _best(lambda value, kept: value > kept),
}


def _result(name: str, kept: Any) -> Any:
    if name == "count" and kept is MISSING:
        return 0
    if name == "mean" and kept is not MISSING:
        return kept[0] / kept[1]
    return kept


class ReduceStep(Step):
    stateful = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.looks_at = "ids" if name == "count" else "documents"

    def begin(self, run: Run) -> Stage:
        return _Reducing(self.name, run)


class _Reducing(Stage):
    def __init__(self, name: str, run: Run) -> None:
        self._name = name
        self._run = run
        self._fold = FOLDS[name]
        self._kept: Any = MISSING

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        kept, fold = self._kept, self._fold
        for one in traversers:
            kept = fold(kept, one.object, one.bulk)
        self._kept = kept
        return []

    def end(self) -> list[Traverser]:
        value = _result(self._name, self._kept)
        self._kept = MISSING
        return [] if value is MISSING else [start(value, self._run.tracked)]


class FoldStep(Step):
    name = "fold"
    stateful = True

    def begin(self, run: Run) -> Stage:
        return _Folding(run)


class _Folding(Stage):
    def __init__(self, run: Run) -> None:
        self._run = run
        self._kept: list[Any] = []

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        self._run.keep_copies(traversers)
        for one in traversers:
            self._kept.extend([one.object] * one.bulk)
        return []

    def end(self) -> list[Traverser]:
        kept, self._kept = self._kept, []
        return [start(kept, self._run.tracked)]


class LocalReduceStep(LocalStep):
    def __init__(self, name: str) -> None:
        self.name = name

    def of(self, object: Any) -> Any:
        if self.name == "count":
            if isinstance(object, Path):
                return len(object.objects)
            return len(object) if isinstance(object, list | Map | set | tuple) else 1
        kept: Any = MISSING
        for value in parts(object):
            kept = FOLDS[self.name](kept, value, 1)
        return _result(self.name, kept)


def parts(object: Any) -> Iterable[Any]:
    if isinstance(object, Path):
        return object.objects
    if isinstance(object, list | tuple | set):
        return object
    return object.values() if isinstance(object, Map) else (object,)


def is_local(args: Args) -> bool:
    """([local]) or ([global])"""
    if not args.values:
        return False
    scope = args.values[0]
    if len(args.values) > 1 or not (isinstance(scope, Enum) and scope.type == "Scope"):
        raise args.bad()
    return scope.name == "local"


def _reduce(args: Args) -> Step:
    return LocalReduceStep(args.name) if is_local(args) else ReduceStep(args.name)


def _fold(args: Args) -> Step:
    args.none()
    return FoldStep()


SPECS = (
    Spec("count", _reduce, "([local])", "how many; 0 of nothing"),
    Spec("sum", _reduce, "([local])", "of numbers; nothing of nothing"),
    Spec("min", _reduce, "([local])", "the smallest; nothing of nothing"),
    Spec("max", _reduce, "([local])", "the largest; nothing of nothing"),
    Spec("mean", _reduce, "([local])", "of numbers, always a double; nothing of nothing"),
    Spec("fold", _fold, "()", "all as one list; an empty one of nothing"),
)
