"""Groups, different rows and sums from the index of one path: no item is loaded.

    SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city
    SELECT DISTINCT VALUE c.city FROM c
    SELECT SUM(c.n) AS s, AVG(c.n) AS a FROM c

A query without a filter that sees nothing of an item but the value at one path has the same row
for all items with that value. The entries of an index are in the order of values: each run of equal
terms is one item of just that value, folded with its number. `one_path` says for a plan whether it
is such a query; `fold_values` folds a whole physical partition, or says that this one can't be (an
array or a long string at the path, an expired item, a path that is not indexed).

JSON containers only: other models do not decode terms.
"""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final

from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.terms import DOUBLE, NUMBER_CODE, Partial, decode_term
from armillary.query.access.choice import nothing_expired
from armillary.query.access.coverage import covers
from armillary.query.access.lookups import path_at
from armillary.query.access.rids import RID_BYTES
from armillary.query.expr import nodes
from armillary.query.functions import FUNCTIONS
from armillary.query.functions.aggregates import Average, Count, CountIf, Sum
from armillary.query.plan.nodes import Plan
from armillary.store.index.paths import path_hash, path_text
from armillary.store.rows import layout
from armillary.values import JSON, UNDEFINED

if TYPE_CHECKING:
    from armillary.query.run.consume import Groups
    from armillary.query.run.items import StoreView
    from armillary.query.run.program import Program

ENTRIES_AT_ONCE: Final = 2_000  # between two looks whether anybody waits
VALUES_MAX: Final = 100_000  # different ones; more are as well folded item by item
POSITIVE: Final = 0x80  # first byte of numbers from 0 on
EXACT_BELOW: Final = 2.0**53
_AGGREGATES: Final = frozenset({"AVG", "COUNT", "COUNTIF", "MAX", "MIN", "SUM"})


def one_path(plan: Plan, wanted: frozenset[tuple[str, ...]] | None) -> tuple[str, ...] | None:
    """The one path that a grouping query sees of its items; `wanted` are all that it sees."""
    if wanted is None or len(wanted) != 1 or not plan.blocks or plan.where is not None:
        return None
    if plan.fold is None and plan.order:
        return None  # a row's place is that of the first item that has it
    if plan.fold is not None and any(c.function not in _AGGREGATES for c in plan.fold.aggregates):
        return None
    parts: list[nodes.Expr] = [plan.output, *(key.expr for key in plan.order)]
    parts += [] if plan.fold is None else [*plan.fold.keys, *plan.fold.aggregates]
    if not all(_is_fixed(node) for part in parts for node in nodes.walk(part)):
        return None
    (path,) = wanted
    return path or None


def _is_fixed(node: nodes.Node) -> bool:
    """Whether it is the same for all items of one value."""
    if isinstance(node, nodes.Call):
        return FUNCTIONS[node.function].deterministic
    return not isinstance(node, nodes.Native | nodes.StoredItem | nodes.Subquery | nodes.UdfCall)


def fold_values(view: StoreView, program: Program, groups: Groups) -> bool:
    """Whether the groups now hold all of the view; if not they are untouched."""
    path = program.one_path
    if path is None or not view.is_whole or view.state.model is not JSON_MODEL:
        return False
    if not covers(view, path) or not nothing_expired(view):
        return False
    found = _values(view, path)
    if found is None:
        return False
    lacking = view.meta.items - sum(count for _, count, _ in found)
    folding = _Folding(program, groups, path)
    if lacking and program.plan.fold is None and folding.row_of(UNDEFINED) is not UNDEFINED:
        return False  # its place among the others is not known
    if lacking:
        found.append((b"", lacking, UNDEFINED))
    if not folding.add_plain(found):
        for _, count, value in found:
            folding.add(value, count)
    view.metrics.index_used[f"{path_text(path)}/?"] = None
    view.metrics.index_only = True
    return True


def _values(view: StoreView, path: tuple[str, ...]) -> list[tuple[bytes, int, JSON]] | None:
    """(first rid, items, value) of every value there is, in the order in which items first had
    them; None when some term does not tell its value. HOT: once per entry."""
    prefix = layout.IX + path_hash(path)
    at = len(prefix)
    found: list[tuple[bytes, int, JSON]] = []
    rows = view.reader.scan(prefix, layout.after(prefix))
    last: bytes = b""
    while batch := list(islice(rows, ENTRIES_AT_ONCE)):
        view.budget.check()
        at_key = 0
        for term, run in groupby([key[at:-RID_BYTES] for key, _ in batch]):
            count = len(list(run))
            if term == last:  # the run goes on in this batch
                first, before, value = found.pop()
                found.append((first, before + count, value))
            else:
                value = _decoded(term)
                if isinstance(value, Partial):
                    return None
                found.append((batch[at_key][0][-RID_BYTES:], count, value))
            at_key += count
            last = term
        if len(found) > VALUES_MAX:
            return None
    found.sort()
    return found


def _decoded(term: bytes) -> JSON:
    """`decode_term`, with its commonest case inlined: a positive number is packed negated."""
    if term[0] == NUMBER_CODE and term[1] >= POSITIVE:
        value: float = -DOUBLE.unpack_from(term, 1)[0]
        if 0 < value < EXACT_BELOW:
            return int(value) if value.is_integer() else value
    return decode_term(term)[0]


class _Folding:
    """Items of one value each, folded as `consume.Groups` folds items, many at a time."""

    def __init__(self, program: Program, groups: Groups, path: tuple[str, ...]) -> None:
        self._program = program
        self._groups = groups
        self._path = path

    def _rows(self, value: JSON) -> Any:
        item: JSON = value
        for name in reversed(self._path):
            item = {} if item is UNDEFINED else {name: item}
        return self._program.combinations(item)

    def row_of(self, value: JSON) -> JSON:
        return next((self._program.output(row) for row in self._rows(value)), UNDEFINED)

    def add_plain(self, found: list[tuple[bytes, int, JSON]]) -> bool:
        """Aggregates of the path itself over everything need no row for each value."""
        program, groups = self._program, self._groups
        fold, alias = program.plan.fold, program.plan.bound.container
        if fold is None or fold.keys or alias is None:
            return False
        if any(path_at(call.args[0], {alias: ()}) != self._path for call in fold.aggregates):
            return False
        group = groups.new((), [], program.row)
        if group is not None:
            for state in group.states:
                for _, count, value in found:
                    _add_many(state, value, count)
        return True

    def add(self, value: JSON, count: int) -> None:
        program, groups = self._program, self._groups
        for row in self._rows(value):
            if program.plan.fold is None:
                made = program.output(row)
                known = program.identity(made)
                if made is not UNDEFINED and known not in groups.found:
                    groups.new_row(known, made, row)
                continue
            values = [key(row) for key in program.group_keys]
            key = tuple([program.identity(each) for each in values])
            group = groups.found.get(key) or groups.new(key, values, row)
            if group is not None:
                for state, argument in zip(group.states, program.arguments, strict=True):
                    _add_many(state, argument(row), count)


def _add_many(state: Any, value: JSON, count: int) -> None:
    """As often as there are items: `state.add(value)`, `count` times."""
    if isinstance(state, Sum | Average) and type(value) in (int, float):
        state.total += value * count
        state.count += count
    elif isinstance(state, Count):
        state.count += count if value is not UNDEFINED else 0
    elif isinstance(state, CountIf):
        state.count += count if value is True else 0
    else:
        state.add(value)
