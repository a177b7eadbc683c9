"""IIF and CHOOSE (reference 6.2). Both take every argument evaluated: scalar evaluation has no
side effects, so laziness would not show.
"""

from armillary.query.functions.base import Function, integer
from armillary.values import JSON, UNDEFINED


def iif(test: JSON, then: JSON, otherwise: JSON) -> JSON:
    return then if test is True else otherwise


def choose(index: JSON, *options: JSON) -> JSON:
    """1-based. An undefined option that is not chosen does not matter (unverified)."""
    position = integer(index)
    if position is None or not 1 <= position <= len(options):
        return UNDEFINED
    return options[position - 1]


FUNCTIONS = (
    Function("CHOOSE", 2, None, choose),
    Function("IIF", 3, 3, iif),
)
