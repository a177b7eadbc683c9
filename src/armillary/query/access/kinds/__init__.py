"""Kinds of index besides ranges, as queries read them: one module each, and a table.

    spatial     ST_WITHIN(c.at, {…}), ST_DISTANCE(c.at, {…}) < 500
    full_text   FullTextContains(c.text, "red bicycle"); words and holders of terms
    vector      ORDER BY VectorDistance(c.vector, [ … ])

`registry.py` is all that the rest of `query/` knows of them. What they put into an index is in
`store/index/kinds/`, under the same names.
"""
