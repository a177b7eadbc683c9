"""A plan as a tree that people read: the last step first, where items come from at the bottom.

    Limit 10
    └─ Output {"id": c.id}
       └─ Filter c.age > 3
          └─ Items of 1 partition key

The same text is in tests, in the portal and in the answer of `explain`.
"""

from __future__ import annotations

from collections.abc import Sequence

from armillary.query.expr import nodes
from armillary.query.expr.queries import BoundSource
from armillary.query.expr.text import print_expression
from armillary.query.plan.nodes import Piece, Plan
from armillary.query.run.metrics import QueryMetrics


def explain(plan: Plan, pieces: Sequence[Piece], metrics: QueryMetrics | None = None) -> str:
    """With the metrics of a page also how its items were found."""
    lines = _steps(plan, pieces, _access(metrics))
    return "\n".join("   " * (depth - 1) + "└─ " * (depth > 0) + line for depth, line in lines)


def _access(metrics: QueryMetrics | None) -> str:
    if metrics is None or not metrics.index_used:
        return "Items"
    what = "Only" if metrics.index_only and not metrics.retrieved_items else "Items by"
    return f"{what} index {', '.join(metrics.index_used)}"


def _steps(plan: Plan, pieces: Sequence[Piece], access: str) -> list[tuple[int, str]]:
    steps: list[str] = []
    if plan.limit is not None:
        steps.append(f"Limit {plan.limit}")
    if plan.offset:
        steps.append(f"Offset {plan.offset}")
    if plan.distinct:
        steps.append("Distinct")
    steps.append(f"Output {_text(plan.output)}")
    if plan.fold is not None:
        parts = [_text(call) for call in plan.fold.aggregates]
        keys = ", ".join(map(_text, plan.fold.keys))
        steps.append(f"Group {', '.join(parts)}" + (f" by {keys}" if keys else ""))
    if plan.order:
        keys = ", ".join(_text(key.expr) + " descending" * key.descending for key in plan.order)
        steps.append(f"Sort {keys}")
    if plan.rank is not None:
        steps.append(f"Rank {_text(plan.rank.score)}")
    if plan.where is not None:
        steps.append(f"Filter {_text(plan.where)}")
    for source in reversed(plan.sources[1:]):
        steps.append(f"Each {_source(source)}")
    if plan.sources and plan.sources[0].yields != "item":
        steps.append(f"Each {_source(plan.sources[0])}")
    lines = list(enumerate(steps))
    if plan.base is not None:
        depth = len(steps)
        return lines + [(depth + at, line) for at, line in _steps(plan.base, pieces, access)]
    return [*lines, (len(steps), _items(plan, pieces, access))]


def _items(plan: Plan, pieces: Sequence[Piece], access: str) -> str:
    if not plan.sources:
        return "One row"
    return f"{access} of {_where(pieces)}"


def _where(pieces: Sequence[Piece]) -> str:
    if not pieces:
        return "nothing"
    keys = sum(piece.key is not None for piece in pieces)
    if keys == len(pieces):
        return f"{keys} partition key{'s' * (keys > 1)}"
    if len(pieces) == 1 and (pieces[0].start, pieces[0].end) == (b"", b"\xff"):
        return "every partition"
    return f"{len(pieces)} part{'s' * (len(pieces) > 1)} of the hash space"


def _source(source: BoundSource) -> str:
    if source.query is not None:
        return f"{source.alias or 'row'} of a query"
    joint = " in " if source.yields == "elements" else " = "
    return f"{source.alias}{joint}{_text(source.collection)}"


def _text(expr: nodes.Expr) -> str:
    return print_expression(expr)
