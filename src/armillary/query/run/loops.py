"""A scan as one compiled loop: decode, test, and keep what is asked for, without a call per stage.

    SELECT VALUE c.id FROM c WHERE c.age > 30

    def run(rows, keep):
      for key, value in rows:
        s = decode(value[63 + value[62]:])          # of the JSON only "age" and "id"
        v0 = s.f0
        if not (((t1 := type(v0)) is int or t1 is float) and v0 > k0): continue
        v1 = s.f1
        if v1 is not U: keep((key, v1))

The text is written by `codegen.Writer`, which finds the paths of the item in variables instead of
slots of a row; it is compiled and kept as every other text of `compile.py`. Three loops:

    rows      (key, output) of each item that passes; the stored bytes where the output is the item
    places    (key, stored bytes, values of the sort keys)
    groups    states of aggregates that grow, found by the values of the group keys

A query has no loop when something in it needs a whole row: a query inside an expression, a join, a
computed property. Then closures do it all, as they do the first rows of every scan.

HOT: once per item of a scan; numbers in bench/query.py; reference tests/property/test_loops.py,
which compares with the naive evaluator and with closures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from armillary.encoding.documents import EPK_AT, EPK_LENGTH_AT
from armillary.query.expr import nodes
from armillary.query.expr.codegen import CHECKS, TEXT_TESTS, Fixed, Writer
from armillary.query.expr.compile import function_of, is_large
from armillary.query.expr.decoding import Path, parts_for, paths_in
from armillary.query.expr.evaluate import Scope
from armillary.query.expr.nested import KEEPING
from armillary.query.functions import FUNCTIONS
from armillary.query.plan.nodes import Plan
from armillary.values import UNDEFINED

#: (key with its kind in front, stored document)
Stored: TypeAlias = tuple[bytes, bytes]
#: (rows, what takes a result)
Loop: TypeAlias = Callable[[list[Stored], Callable[[Any], None]], None]
#: (rows, states by key, what makes states for a key: of the key, its values and the JSON)
GroupLoop: TypeAlias = Callable[
    [list[Stored], dict[Any, Any], Callable[[tuple[Any, ...], list[Any], bytes], Any]], None
]

_ROW: Final = re.compile(r"\brow\b")
_TEXT: Final = f"value[{EPK_AT} + value[{EPK_LENGTH_AT}]:]"


def may_loop(plan: Plan) -> bool:
    """Whether the query is of the kind that a loop is written for."""
    if len(plan.sources) != 1 or plan.base is not None or plan.computed or plan.rank is not None:
        return False
    source = plan.sources[0]
    if source.yields != "item" or source.alias is None:
        return False
    if not isinstance(source.collection, nodes.Identifier):
        return False
    if plan.bound.subqueries or plan.bound.udfs:
        return False
    if plan.fold is not None and any(call.function in KEEPING for call in plan.fold.aggregates):
        return False
    return not any(
        isinstance(node, nodes.Native | nodes.AtPath | nodes.StoredItem)
        for each in _parts(plan)
        for node in nodes.walk(each)
    )


def is_quick(plan: Plan) -> bool:
    """Whether no item can take long: only then are many looked at between two looks at the
    clock.
    """
    return not any(_is_call(node) for each in _parts(plan) for node in nodes.walk(each))


def _is_call(node: nodes.Node) -> bool:
    """Of something that may take long for one item, a pattern above all."""
    if isinstance(node, nodes.Call):
        function = FUNCTIONS[node.function]
        is_plain = node.function in CHECKS or node.function in TEXT_TESTS
        return function.kind == "scalar" and not is_plain
    return isinstance(node, nodes.Like | nodes.Native)


def _parts(plan: Plan) -> list[nodes.Expr]:
    parts = [plan.output, *(key.expr for key in plan.order)]
    if plan.where is not None:
        parts.append(plan.where)
    if plan.fold is not None:
        parts += plan.fold.keys
    return parts


# --- the three loops ------------------------------------------------------------------------------


def loop_of_rows(plan: Plan, scope: Scope) -> Loop | None:
    """Gives (key, value), or (key, JSON) when what is selected is the item itself."""
    gives_item = isinstance(plan.output, nodes.Identifier)
    writing = _Writing.begun(plan, scope, [] if gives_item else [plan.output])
    if writing is None:
        return None
    if gives_item:
        writing.add(f"keep((key, {_TEXT}))")
    elif isinstance(plan.output, nodes.ObjectLiteral) and plan.output.members:
        writing.add("made = {}")
        for name, first, again in writing.writer.members(plan.output):
            writing.add(f"if {first} is not U: made[{name}] = {again}")
        writing.add("keep((key, made))")
    else:
        writing.add(f"v = {writing.writer.value(plan.output)}", "if v is not U: keep((key, v))")
    made: Loop | None = writing.function("rows, keep")
    return made


def loop_of_places(plan: Plan, scope: Scope) -> Loop | None:
    """Gives (key, JSON, values of the sort keys)."""
    keys = [key.expr for key in plan.order]
    writing = _Writing.begun(plan, scope, keys)
    if writing is None:
        return None
    values = ", ".join(writing.writer.value(key) for key in keys)
    writing.add(f"keep((key, {_TEXT}, ({values},)))")
    made: Loop | None = writing.function("rows, keep")
    return made


def loop_of_groups(plan: Plan, scope: Scope) -> GroupLoop | None:
    """Adds each item to the states of its group. `made` of a new key gives its states, or None
    when that group is not wanted.
    """
    fold = plan.fold
    assert fold is not None
    arguments = [call.args[0] for call in fold.aggregates]
    writing = _Writing.begun(plan, scope, [*fold.keys, *arguments])
    if writing is None:
        return None
    writer = writing.writer
    keys: list[str] = []
    for number, key in enumerate(fold.keys):
        writing.add(f"g{number} = {writer.value(key)}")
        keys.append(f"g{number}")
    # Texts and integers are their own identity, which is nearly every key.
    same = [f"({g} if type({g}) is str or type({g}) is int else identity({g}))" for g in keys]
    listed = "".join(f"{each}, " for each in same)
    whole = "(known,)" if len(same) == 1 else "known"
    writing.add(
        f"known = {same[0]}" if len(same) == 1 else f"known = ({listed})",
        "states = found.get(known)",
        "if states is None:",
        " if known in found: continue",
        f" states = found[known] = made({whole}, [{', '.join(keys)}], {_TEXT})",
        " if states is None: continue",
    )
    for number, call in enumerate(fold.aggregates):
        writing.add(*_added(call.function, number, call.args[0], writer))
    made: GroupLoop | None = writing.function("rows, found, made")
    return made


def _added(function: str, number: int, argument: nodes.Expr, writer: Writer) -> Iterable[str]:
    """A value added to a state, as `functions/aggregates.py` does it."""
    code = writer.code(argument)
    if function == "COUNT" and isinstance(code, Fixed):
        return [] if code.value is UNDEFINED else [f"states[{number}].count += 1"]
    value = f"v = {writer.as_value(code)}"
    if function == "COUNT":
        return value, f"if v is not U: states[{number}].count += 1"
    if function in ("SUM", "AVG"):
        return (
            value,
            f"state = states[{number}]",
            "t = type(v)",
            "if t is int or t is float:",
            " state.total += v",
            " state.count += 1",
            "elif v is not U: state.spoiled = True",
        )
    return value, f"states[{number}].add(v)"


# --- writing --------------------------------------------------------------------------------------


class _Writing:
    """A loop whose head is written: the item decoded, the filter passed, the paths of the rest in
    variables.
    """

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._lines: list[str] = []

    def add(self, *lines: str) -> None:
        self._lines += lines

    @classmethod
    def begun(cls, plan: Plan, scope: Scope, rest: Sequence[nodes.Expr]) -> _Writing | None:
        alias = plan.sources[0].alias
        assert alias is not None
        if any(map(is_large, _parts(plan))):
            return None
        first: frozenset[Path] | None = frozenset()
        if plan.where is not None:
            first = paths_in(plan.where, frozenset((alias,)))
        seen = [paths_in(each, frozenset((alias,))) for each in rest]
        if first is None or any(paths is None for paths in seen):
            return None
        every = first.union(*(paths for paths in seen if paths is not None))
        parts = parts_for(every)
        if parts is None:
            return None
        writing = cls(Writer(scope))
        if parts.decode is not None:
            writing.add(f"s = {writing.writer.fixed(parts.decode)}({_TEXT})")
        slot = scope.names[alias]
        is_early = {path: any(_meet(path, one) for one in first) for path in parts.fields}
        for early in (True, False):
            if not early and plan.where is not None:
                writing.add(f"if not ({writing.writer.truth(plan.where)}): continue")
            for path, (owner, field) in parts.fields.items():
                if is_early[path] is early:
                    writing._read(slot, path, owner, field, parts.structs)
        return writing

    def _read(
        self,
        slot: int,
        path: Path,
        owner: Path,
        field: str,
        structs: dict[Path, type[Struct]],
    ) -> None:
        """The value at a path into a variable that the writer knows."""
        base = "s"
        for depth in range(1, len(owner) + 1):
            place = (slot, None, *owner[:depth])  # which is no path
            name = self.writer.known.get(place, "")
            if not name:
                name = self._learn(place)
                kind = self.writer.fixed(structs[owner[:depth]])
                at = structs[owner[: depth - 1]].__struct_encode_fields__.index(owner[depth - 1])
                self.add(
                    f"{name} = {base}.f{at}" + ("" if base == "s" else f" if {base} else U"),
                    f"if type({name}) is not {kind}: {name} = None",
                )
            base = name
        variable = self._learn((slot, *reversed(path)))  # as the writer names them
        self.add(f"{variable} = {base}.{field}" + ("" if base == "s" else f" if {base} else U"))

    def _learn(self, place: tuple[Any, ...]) -> str:
        variable = self.writer.known[place] = self.writer.new("v")
        return variable

    def function(self, arguments: str) -> Any:
        if any(_ROW.search(line) for line in self._lines):
            return None  # some closure wants a row
        body = ["for key, value in rows:", *(f" {line}" for line in self._lines)]
        return function_of(arguments, body, self.writer)


def _meet(one: Path, other: Path) -> bool:
    """Whether one is the beginning of the other."""
    length = min(len(one), len(other))
    return one[:length] == other[:length]
