"""group, groupCount and tree: maps of everything, at once or alongside the stream.

The value of a group is what its by() gives for all of the group's traversers if it reduces them
(`count()`, `fold()`), else the last value it gives for one of them (gremlin reference 9).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.machine.running import (
    TRAVERSER_BYTES,
    Chain,
    Run,
    Stage,
    Step,
    run_each,
)
from armillary.api.gremlin.machine.traverser import Traverser, each, places, start
from armillary.api.gremlin.machine.values import Map, Tree, hash_key
from armillary.api.gremlin.steps.base import IDENTITY, Args, By, Modulated, Spec, cycled


class GroupStep(Modulated):
    """Without a name: one map in place of the stream."""

    bys_max = 2
    stateful = True

    def __init__(self, name: str, key: str | None) -> None:
        super().__init__()
        self.name = name
        self.key = key
        self.stateful = key is None

    @property
    def counts(self) -> bool:
        return self.name == "groupCount"

    def by(self, args: Args) -> None:
        if self.counts and self.bys:
            raise args.bad()
        super().by(args)

    def new(self) -> Groups:
        value = self.bys[1] if len(self.bys) > 1 else IDENTITY
        return Groups(cycled(self.bys[:1], 0), value, self.counts)

    def begin(self, run: Run) -> Stage:
        return _Grouping(self, run)

    def prepare(self, run: Run) -> None:
        if self.key is not None:
            run.side_effects.setdefault(self.key, self.new())

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        """Alongside the stream."""
        assert self.key is not None
        groups = run.side_effects[self.key]
        if not isinstance(groups, Groups):
            raise ScriptError(f"The side effect '{self.key}' is not a map.")
        groups.add(traversers, run, cycled(self.bys[:1], 0))
        return traversers


class _Grouping(Stage):
    def __init__(self, step: GroupStep, run: Run) -> None:
        self._step = step
        self._run = run
        self._groups = step.new()

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        self._groups.add(traversers, self._run)
        return []

    def end(self) -> list[Traverser]:
        value = self._groups.value(self._run)
        self._groups = self._step.new()
        return [start(value, self._run.tracked)]


class Groups:
    """Groups under way. A value that reduces keeps its own chain of steps, fed as traversers come,
    so that counting a million needs no memory of them."""

    def __init__(self, key: By, value: By, counts: bool) -> None:
        self._key = key
        self._value = value
        self._counts = counts
        self._keys: dict[Hashable, Any] = {}
        self._kept: dict[Hashable, Any] = {}
        self._reduces = any(step.stateful for step in value.steps)

    def add(self, traversers: list[Traverser], run: Run, by: By | None = None) -> None:
        """`by`: of another step that groups under the same name."""
        keys = (by or self._key).needed(traversers, run)
        before = len(self._keys)
        if self._counts:
            for one, key in zip(traversers, keys, strict=True):
                at = self._at(key)
                self._kept[at] = self._kept.get(at, 0) + one.bulk
        elif self._value.is_plain:
            values = self._value.needed(traversers, run)
            run.keep_copies(traversers)
            for one, key, value in zip(traversers, keys, values, strict=True):
                self._kept.setdefault(self._at(key), []).extend([value] * one.bulk)
        elif self._reduces:
            self._feed(traversers, keys, run)
        else:
            run.expect(sum(one.bulk for one in traversers))
            results = run_each(self._value.steps, each(traversers), run)
            many = [key for one, key in zip(traversers, keys, strict=True) for _ in range(one.bulk)]
            for key, found in zip(many, results, strict=True):
                if found:
                    self._kept[self._at(key)] = found[0].object
        run.budget.hold(TRAVERSER_BYTES * (len(self._keys) - before))

    def _at(self, key: Any) -> Hashable:
        at = hash_key(key)
        self._keys.setdefault(at, key)
        return at

    def _feed(self, traversers: list[Traverser], keys: list[Any], run: Run) -> None:
        groups: dict[Hashable, list[Traverser]] = {}
        for one, key in zip(traversers, keys, strict=True):
            groups.setdefault(self._at(key), []).append(one)
        for at, group in groups.items():
            state = self._kept.get(at)
            if state is None:
                state = self._kept[at] = (Chain(self._value.steps, run), [])
            chain, early = state
            early += chain.feed(group)

    def value(self, run: Run) -> Map:
        found = Map()
        for at, key in self._keys.items():
            if at not in self._kept:
                continue
            kept = self._kept[at]
            if self._reduces and not self._counts:
                chain, early = kept
                results = early or chain.end()
                early[:] = results
                if not results:
                    continue
                kept = results[0].object
            found[key] = kept
        return found


# --- tree -----------------------------------------------------------------------------------------


class TreeStep(Modulated):
    name = "tree"

    def __init__(self, key: str | None) -> None:
        super().__init__()
        self.key = key
        self.stateful = key is None

    @property
    def looks_back(self) -> bool:
        return True

    def begin(self, run: Run) -> Stage:
        return _Growing(self, run)

    def prepare(self, run: Run) -> None:
        if self.key is not None:
            run.side_effects.setdefault(self.key, _Grown())

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        assert self.key is not None
        grow(run.side_effects[self.key].tree, self, traversers, run)
        return traversers


class _Grown:
    def __init__(self) -> None:
        self.tree = Tree()

    def value(self, run: Run) -> Tree:
        return self.tree


class _Growing(Stage):
    def __init__(self, step: TreeStep, run: Run) -> None:
        self._step = step
        self._run = run
        self._tree = Tree()

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        grow(self._tree, self._step, traversers, self._run)
        return []

    def end(self) -> list[Traverser]:
        tree, self._tree = self._tree, Tree()
        return [start(tree, self._run.tracked)]


def grow(tree: Tree, step: TreeStep, traversers: list[Traverser], run: Run) -> None:
    for one in traversers:
        at = tree
        for number, (object, _) in enumerate(places(one.trail)):
            key = cycled(step.bys, number).of_objects([object], run)[0]
            if key not in at:
                at[key] = Tree()
                run.budget.hold(TRAVERSER_BYTES)
            at = at[key]


def _group(args: Args) -> Step:
    if len(args.values) > 1:
        raise args.bad()
    names = args.strings()
    return GroupStep(args.name, names[0] if names else None)


def _tree(args: Args) -> Step:
    if len(args.values) > 1:
        raise args.bad()
    names = args.strings()
    return TreeStep(names[0] if names else None)


SPECS = (
    Spec(
        "group",
        _group,
        "(['x']).by(key).by(value)",
        "a map from key to what the second by() makes of the group, a list without it",
    ),
    Spec("groupCount", _group, "(['x']).by(key)", "a map from key to how many"),
    Spec("tree", _tree, "().by(..)", "all paths as nested maps"),
)
