"""From calls to steps: names looked up, arguments resolved, modulators given to their step.

What is wrong with a script is found here, before anything runs; the texts are the service's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from armillary.api.gremlin.errors import Position, ScriptError, no_method, no_symbol
from armillary.api.gremlin.graph.base import Condition
from armillary.api.gremlin.language import nodes
from armillary.api.gremlin.language.names import BARE
from armillary.api.gremlin.language.nodes import Call, Chain
from armillary.api.gremlin.machine.predicates import P
from armillary.api.gremlin.machine.running import Step
from armillary.api.gremlin.machine.values import Map
from armillary.api.gremlin.steps.base import Args, Modulated
from armillary.api.gremlin.steps.branch import ChooseStep
from armillary.api.gremlin.steps.filters import ChildFilterStep, HasStep, PathFilterStep
from armillary.api.gremlin.steps.maps import AsStep, PathStep
from armillary.api.gremlin.steps.moves import Arriving, ElementsStep
from armillary.api.gremlin.steps.repeat import RepeatStep
from armillary.api.gremlin.steps.table import MODULATORS, STEPS
from armillary.api.gremlin.steps.writes import AddEdgeStep, PropertyStep, Writing

REPEAT_WORDS: Final = frozenset({"repeat", "times", "until", "emit"})
PAIRS: Final = frozenset({"inside", "outside", "between"})
SETTINGS: Final = {
    "PartitionStrategy": frozenset({"partitionKey", "readPartitions", "writePartition"}),
    "ProjectionStrategy": frozenset({"IncludeSystemProperties"}),
}


@dataclass(slots=True)
class Program:
    """A script that is ready to run."""

    steps: list[Step]
    tracked: bool
    profile: bool = False
    system: frozenset[str] = frozenset()
    partition_name: str | None = None
    partitions: tuple[Any, ...] | None = None
    write_partition: Any = None
    """The key of new vertices that name none."""
    writes: bool = False


@dataclass(slots=True)
class Builder:
    bindings: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = True

    # --- the whole ------------------------------------------------------------------------------

    def program(self, script: Chain) -> Program:
        calls = list(script.calls)
        program = Program([], False)
        while calls and calls[0].name == "withStrategies":
            for strategy in calls.pop(0).args:
                self._configure(program, strategy)
        if calls and calls[-1].name == "executionProfile" and not calls[-1].args:
            program.profile = True
            calls.pop()
        if not calls:
            raise ScriptError("A traversal needs a step after 'g'.", "parse", script.at)
        self._check_start(calls[0])
        program.steps = self.steps(calls, 1)
        program.tracked = any(step.looks_back for step in walk(program.steps))
        program.writes = any(
            step.name in ("addV", "addE", "property", "drop") for step in walk(program.steps)
        )
        return program

    def _check_start(self, call: Call) -> None:
        spec = STEPS.get(call.name)
        if spec is None or not spec.starts:
            raise no_method(call.name, call.at)
        if call.name == "addE" and self.strict:
            raise ScriptError("AddE should follow by a Vertex", "binding", call.at)

    def _configure(self, program: Program, strategy: Any) -> None:
        if not isinstance(strategy, nodes.Strategy):
            raise no_symbol(
                str(getattr(strategy, "name", strategy)), getattr(strategy, "at", Position(1, 1))
            )
        for name, args in strategy.settings:
            if name not in SETTINGS[strategy.name]:
                raise no_method(name, strategy.at)
            values = [one for arg in args for one in _flat(self.argument(arg))]
            match name:
                case "IncludeSystemProperties":
                    program.system |= frozenset(map(str, values))
                case "partitionKey":
                    program.partition_name = str(values[0]) if values else None
                case "readPartitions":
                    program.partitions = tuple(values)
                case "writePartition":
                    program.write_partition = values[0] if values else None

    # --- steps ----------------------------------------------------------------------------------

    def child(self, chain: Chain) -> list[Step]:
        if chain.rooted:
            if not chain.calls:
                raise ScriptError("A traversal needs a step after 'g'.", "parse", chain.at)
            self._check_start(chain.calls[0])
        return self.steps(chain.calls)

    def steps(self, calls: Sequence[Call], start: int = 0) -> list[Step]:
        """`start`: calls at the beginning that and() and or() between steps leave alone."""
        infix = self._infix(calls, start)
        if infix is not None:
            return infix
        steps: list[Step] = []
        for call in calls:
            self._add(steps, call)
        if any(isinstance(one, RepeatStep) and one.body is None for one in steps):
            raise ScriptError("The repeat()-traversal was not defined.", "syntax", calls[-1].at)
        with_documents(steps)
        return with_conditions(steps)

    def _infix(self, calls: Sequence[Call], start: int) -> list[Step] | None:
        for word in ("or", "and"):
            marks = [at for at, one in enumerate(calls) if one.name == word and not one.args]
            if not marks:
                continue
            if start and calls[0].name not in ("V", "E", "inject"):
                raise no_method(word, calls[marks[0]].at)  # what is new has no other side
            low = start
            bounds = [low - 1 if low else -1, *marks, len(calls)]
            parts = [calls[a + 1 : b] for a, b in pairwise(bounds)]
            if low:
                parts[0] = calls[low : marks[0]]
            inner = [self.steps(part) for part in parts]
            return [*self.steps(calls[:low], low), ChildFilterStep(word, inner)]
        return None

    def _add(self, steps: list[Step], call: Call) -> None:
        name = call.name
        last = steps[-1] if steps else None
        args = self.args(call)
        if name in REPEAT_WORDS:
            if not isinstance(last, RepeatStep) or not last.takes(name):
                last = RepeatStep()
                steps.append(last)
            last.modulate(args)
        elif name == "property" and isinstance(last, Writing | PropertyStep):
            last.property(args)
        elif name in MODULATORS:
            self._modulate(last, args)
        else:
            spec = STEPS.get(name)
            if spec is None or (spec.extra and self.strict):
                raise no_method(name, call.at)
            made = spec.make(args)
            steps.extend(made if isinstance(made, list) else [made])

    @staticmethod
    def _modulate(last: Step | None, args: Args) -> None:
        if args.name == "by" and isinstance(last, Modulated):
            last.by(args)
        elif args.name in ("from", "to") and isinstance(last, AddEdgeStep):
            last.end(args)
        elif args.name in ("from", "to") and isinstance(last, PathStep | PathFilterStep):
            last.part.set(args)
        elif args.name == "option" and isinstance(last, ChooseStep):
            last.option(args)
        else:
            raise no_method(args.name, args.at)

    # --- arguments ------------------------------------------------------------------------------

    def args(self, call: Call) -> Args:
        return Args(call.name, tuple(map(self.argument, call.args)), call.at, self)

    def argument(self, node: Any) -> Any:
        match node:
            case nodes.Binding(name, at):
                if name in self.bindings:
                    return from_json(self.bindings[name])
                if name not in BARE:
                    raise no_symbol(name, at)
                return BARE[name]
            case nodes.ListOf(items):
                return [self.argument(one) for one in items]
            case nodes.MapOf(entries):
                return Map((self.argument(key), self.argument(value)) for key, value in entries)
            case nodes.Predicate():
                return self.test(node)
            case nodes.Enum("Pick", name) if self.strict:
                raise no_symbol(name, Position(1, 1))
        return node

    def test(self, node: nodes.Predicate) -> P:
        values = [self.argument(one) for one in node.args]
        if node.name in ("and", "or", "negate"):
            if not all(isinstance(one, P) for one in values):
                raise Args(node.name, tuple(values), node.at, self).bad()
            return P(node.name, None, tuple(values))
        if node.name in ("within", "without"):
            if len(values) == 1 and isinstance(values[0], list):
                values = values[0]
            return P(node.name, values)
        if len(values) != (2 if node.name in PAIRS else 1):
            raise Args(node.name, tuple(values), node.at, self).bad()
        return P(node.name, tuple(values) if node.name in PAIRS else values[0])


def _flat(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def from_json(value: Any) -> Any:
    """A value of the request as the machine has it."""
    if isinstance(value, dict):
        return Map((key, from_json(each)) for key, each in value.items())
    return [from_json(one) for one in value] if isinstance(value, list) else value


def with_conditions(steps: list[Step]) -> list[Step]:
    """V() and E() know the filters that follow them, so that the graph reads less."""
    for at, step in enumerate(steps):
        if not isinstance(step, ElementsStep):
            continue
        conditions: list[Condition] = []
        for following in steps[at + 1 :]:
            if isinstance(following, HasStep):
                if following.condition is not None:
                    conditions.append(following.condition)
            elif not isinstance(following, AsStep):
                break
        step.conditions = tuple(conditions)
    return steps


def with_documents(steps: Sequence[Step], at_end: bool = True) -> None:
    """Steps to vertices know whether the documents of those are going to be looked at: by what
    follows, or (`at_end`) by the receiver of the results."""
    for at, step in enumerate(steps):
        wanted = _are_looked_at(steps[at + 1 :], at_end)
        if isinstance(step, Arriving):
            step.documents = wanted
        elif isinstance(step, RepeatStep) and step.body and step.counts_only:
            with_documents(step.body, wanted or _are_looked_at(step.body, wanted))


def _are_looked_at(steps: Sequence[Step], at_end: bool) -> bool:
    for step in steps:
        if step.looks_at != "nothing":
            return step.looks_at == "documents"
    return at_end


def walk(steps: Iterable[Step]) -> Iterable[Step]:
    for step in steps:
        yield step
        for child in step.children:
            yield from walk(child)
