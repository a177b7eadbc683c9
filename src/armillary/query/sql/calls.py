"""Is this call of a function possible: does it exist, has it the right number of arguments, may it
stand here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from armillary.query.functions import SIGNATURES
from armillary.query.problems import QueryError
from armillary.query.sql import ast

#: Written by the query-plan rewriter into the texts of a hybrid search (nosql-rest 5.6); no user
#: writes them.
INTERNAL: Final[dict[str, tuple[int, int | None]]] = {
    "_FULLTEXTSCORE": (5, 5),
    "_FULLTEXTWORDCOUNT": (1, 1),
}
#: Counts inside the bounds that are wrong all the same: NOW takes none or two.
_NOT_COUNTS: Final = {"NOW": 1}
_MULTIPLIERS: Final = ("searchListSizeMultiplier", "quantizedVectorListMultiplier")


def call_errors(call: ast.Call) -> list[QueryError]:
    """For a call outside ORDER BY RANK. The arguments are not looked into."""
    if call.function == "FULLTEXTSCORE":
        message = "The FullTextScore function is only allowed in the ORDER BY RANK clause."
        return [QueryError("SC2240", message, call.start, call.end)]
    if call.function == "RRF":
        return [_unknown(call)]
    return signature_errors(call)


def signature_errors(call: ast.Call) -> list[QueryError]:
    signature = SIGNATURES.get(call.function) or INTERNAL.get(call.function)
    if signature is None:
        return [_unknown(call)]
    least, most = signature
    given = len(call.args)
    if given < least or (most is not None and given > most) or _is_gap(call.function, given):
        message = f"The {call.name.upper()} function requires {_count(least, most)} argument(s)."
        return [QueryError("SC2050", message, call.start, call.end)]
    return list(_multiplier_errors(call)) if call.function == "VECTORDISTANCE" else []


def _is_gap(function: str, given: int) -> bool:
    return _NOT_COUNTS.get(function) == given


def _count(least: int, most: int | None) -> str:
    if most is None:
        return f"at least {least}"
    return str(least) if least == most else f"{least} to {most}"


def _unknown(call: ast.Call) -> QueryError:
    message = f"'{call.name}' is not a recognized built-in function name."
    return QueryError("SC2005", message, call.start, call.name_end)


def _multiplier_errors(call: ast.Call) -> Iterator[QueryError]:
    """VectorDistance's options, where they are written out; a parameter is checked when it runs."""
    if len(call.args) < 4 or not isinstance(options := call.args[3], ast.ObjectLiteral):
        return
    for member in options.members:
        value = number(member.value)
        if member.name in _MULTIPLIERS and value is not None and not 1 <= value <= 100:
            message = (
                f"The '{member.name}' value {value} specified in the VectorDistance function is "
                "outside the supported range. The value must be between 1 and 100."
            )
            yield QueryError("SC2213", message, call.start, call.end)


def number(expr: ast.Expr) -> int | float | None:
    """The value of a number as people write it: a literal, maybe with a sign."""
    match expr:
        case ast.Literal(int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.Unary("-", ast.Literal(int() | float() as value)) if not isinstance(value, bool):
            return -value
        case _:
            return None
