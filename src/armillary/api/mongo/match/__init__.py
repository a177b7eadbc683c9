"""Filters: a query document in, a function from documents to true or false out.

`compiled.py` takes the query apart, `operators.py` is the table of operators on a field, `paths.py`
says which values a dotted path means, `positions.py` which array element a filter matched.
"""

from armillary.api.mongo.match.compiled import compile_filter
from armillary.api.mongo.match.operators import Filter

__all__ = ["Filter", "compile_filter"]
