"""The system functions of the query language: one table, name → what runs.

Names are looked up upper-cased and without underscores, so `ARRAY_LENGTH`, `ArrayLength` and
`arraylength` are one function (reference 1); a leading underscore, which marks the functions that
only rewritten queries use, stays. Packages that take long to import (shapely, numpy, regex,
snowballstemmer) are loaded by the first call that needs them.

One folder although it is large: a module is a family of the reference, in its order, and all of
them do the same for the table.
"""

from armillary.query.functions import (
    aggregates,
    array,
    conditional,
    conversions,
    dates,
    full_text,
    items,
    mathematics,
    patterns,
    spatial,
    strings,
    types,
    vectors,
)
from armillary.query.functions.base import Context, Function

__all__ = ["FUNCTIONS", "SIGNATURES", "Context", "Function"]

FUNCTIONS: dict[str, Function] = {
    function.key: function
    for module in (
        aggregates,
        array,
        conditional,
        conversions,
        dates,
        full_text,
        items,
        mathematics,
        patterns,
        spatial,
        strings,
        types,
        vectors,
    )
    for function in module.FUNCTIONS
}

#: Name → fewest and most arguments; None means any number.
SIGNATURES: dict[str, tuple[int, int | None]] = {
    key: (function.min_args, function.max_args) for key, function in FUNCTIONS.items()
}
