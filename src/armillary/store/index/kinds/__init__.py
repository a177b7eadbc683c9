"""Kinds of index besides ranges and unique keys: one module each, and a table of them.

    composite  cx  number, terms, rid     → epk               the terms of several paths in one key
    spatial    sx  path, cell, rid        → epk               each cell of each shape at the path
    full_text  fx  path, 01, token, rid   → epk               each different token of a text
               fx  path, 00, rid          → words, epk        how many tokens, repeated ones too
    vector     vx  path, rid              → 01, floats, epk   a vector of the policy's length
                                            00, epk           something else that may be compared

    in    an indexing policy and the container's other policies; an item
    out   errors of policies; rows (keys without the rid at the end, values without the EPK)

`registry.KINDS` is all that the rest of the program knows of them: a new kind is a module here with
a `Kind`, a line in the registry, a prefix in `store/rows/layout.py`, and its reading in
`query/access/kinds/`, which has a registry of its own. tests/unit/test_architecture.py holds that.
"""
