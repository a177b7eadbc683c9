"""Looking back: select() and where() with labels. A label names an entry of the current map, a side
effect, or a place of the path, in this order, which is that of TinkerPop 3.4."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.language.nodes import Call, Chain, Enum
from armillary.api.gremlin.machine.predicates import P
from armillary.api.gremlin.machine.running import Run, Step
from armillary.api.gremlin.machine.traverser import Traverser, places
from armillary.api.gremlin.machine.values import Entry, Map, equal
from armillary.api.gremlin.steps.base import (
    MISSING,
    Args,
    Modulated,
    Spec,
    Steps,
    column_of,
    cycled,
)
from armillary.api.gremlin.steps.filters import ChildFilterStep
from armillary.api.gremlin.steps.side_effects import side_effect_value


def scope_value(one: Traverser, label: str, run: Run, pop: str = "last") -> Any:
    """What a label stands for, or MISSING."""
    object = one.object
    if isinstance(object, Map) and label in object:
        return object[label]
    if isinstance(object, Entry) and isinstance(object.key, str) and object.key == label:
        return object.value
    if label in run.side_effects:
        return side_effect_value(run, label)
    found = [at for at, labels in places(one.trail) if label in labels] if one.trail else []
    if found:
        match pop:
            case "first":
                return found[0]
            case "all":
                return found
            case "mixed":
                return found[0] if len(found) == 1 else found
        return found[-1]
    return MISSING


def needed_value(one: Traverser, label: str, run: Run, step: str) -> Any:
    found = scope_value(one, label, run)
    if found is MISSING:
        raise ScriptError(f"Neither the map, sideEffects, nor path has a {label}-key: {step}")
    return found


class SelectStep(Modulated):
    name = "select"

    def __init__(self, labels: tuple[str, ...], pop: str) -> None:
        super().__init__()
        self.names = labels
        self.pop = pop

    @property
    def looks_back(self) -> bool:
        return True

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        rows: list[tuple[Traverser, Any]] = []
        for one in traversers:
            row = [scope_value(one, name, run, self.pop) for name in self.names]
            if not any(value is MISSING for value in row):
                rows.append((one, row))
        columns = []
        for at in range(len(self.names)):
            values = [row[at] for _, row in rows]
            by = cycled(self.bys, at)
            columns.append(values if by.what is None else _each(by, values, run))
        found = []
        for (one, _), found_row in zip(rows, zip(*columns, strict=True), strict=True):
            single = len(self.names) == 1
            value = found_row[0] if single else Map(zip(self.names, found_row, strict=True))
            found.append(one.at(value, run.tracked))
        return found


def _each(by: Any, values: list[Any], run: Run) -> list[Any]:
    found: list[Any] = by.of_objects(values, run)
    return found


class ColumnStep(Step):
    """select(keys), select(values)."""

    name = "select"

    def __init__(self, column: str) -> None:
        self.column = column

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        return [one.at(column_of(one.object, self.column), run.tracked) for one in traversers]


class WhereTestStep(Modulated):
    """where(P), where('a', P): values of the predicate are labels."""

    name = "where"

    def __init__(self, label: str | None, test: P) -> None:
        super().__init__()
        self.label = label
        self.test = test

    @property
    def looks_back(self) -> bool:
        return True

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        return [one for one in traversers if self._passes(one, run)]

    def _passes(self, one: Traverser, run: Run) -> bool:
        bys = self.bys
        turn = count(1)
        left = one.object if self.label is None else self._value(one, self.label, run)

        def right(label: Any) -> Any:
            found = self._value(one, label, run)
            at = next(turn)
            return cycled(bys, at).of_objects([found], run)[0] if bys else found

        if bys:
            (left,) = cycled(bys, 0).of_objects([left], run)
        return self.test.with_values(right)(left)

    @staticmethod
    def _value(one: Traverser, label: Any, run: Run) -> Any:
        if not isinstance(label, str):
            raise ScriptError("The values of a predicate in where() are labels of steps.")
        return needed_value(one, label, run, f"where({label})")


class LabelStep(Step):
    """as() at an end of where(__.as('a')…as('b')): a label that is looked up, not set."""

    name = "as"

    def __init__(self, label: str) -> None:
        self.label = label

    @property
    def looks_back(self) -> bool:
        return True


class StartLabelStep(LabelStep):
    """The beginning: at the labelled value. The trail stays: labels of the outer traversal are
    compared at the end."""

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        return [
            one.at(needed_value(one, self.label, run, "where"), run.tracked) for one in traversers
        ]


class EndLabelStep(LabelStep):
    """The end: keeps what arrives at the labelled value."""

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        found = []
        for one in traversers:
            value = scope_value(Traverser(None, one.trail), self.label, run)
            if value is not MISSING and equal(one.object, value):
                found.append(one)
        return found


class WhereChildStep(ChildFilterStep):
    """where(t)"""

    def __init__(self, child: list[Step]) -> None:
        super().__init__("where", [child])

    @property
    def children(self) -> Iterable[Steps]:
        return self._children


def _select(args: Args) -> Step:
    values = list(args.values)
    pop = "last"
    if values and isinstance(values[0], Enum) and values[0].type == "Pop":
        pop = values.pop(0).name
    if len(values) == 1 and isinstance(values[0], Enum) and values[0].type == "Column":
        return ColumnStep(values[0].name)
    if not values:
        raise args.bad()
    return SelectStep(args.strings(values), pop)


def _where(args: Args) -> Step:
    match args.values:
        case (Chain() as child,):
            return WhereChildStep(where_child(child, args))
        case (P() as test,):
            return WhereTestStep(None, test)
        case (str() as label, P() as test):
            return WhereTestStep(label, test)
    raise args.bad()


CONNECTIVES = frozenset({"and", "or", "not", "where"})


def where_child(chain: Chain, args: Args) -> list[Step]:
    """The steps of a child of where(), whose first and last as() are labels to be met. Those of
    and(), or() and not() in it have labels of their own."""
    calls = list(chain.calls)
    if len(calls) == 1 and calls[0].name in CONNECTIVES and _has_labels(calls[0]):
        (only,) = calls
        inner = [where_child(one, args) for one in only.args if isinstance(one, Chain)]
        return [ChildFilterStep("filter" if only.name == "where" else only.name, inner)]
    first: list[Step] = []
    last: list[Step] = []
    if calls and calls[0].name == "as":
        first = [StartLabelStep(_label(calls.pop(0), args))]
    if calls and calls[-1].name == "as":
        last = [EndLabelStep(_label(calls.pop(), args))]
    return [*first, *args.build.steps(calls), *last]


def _label(call: Call, args: Args) -> str:
    if not call.args:
        raise args.bad()
    return str(call.args[0])


def _has_labels(call: Call) -> bool:
    return all(isinstance(one, Chain) for one in call.args)


SPECS = (
    Spec(
        "select",
        _select,
        "([pop,] label..).by(..), (keys|values)",
        "labelled values, one or a map; keys or values of a map",
    ),
    Spec(
        "where",
        _where,
        "(t), (p), (label, p).by(..)",
        "a child has results, or values compare with labelled ones",
    ),
)
