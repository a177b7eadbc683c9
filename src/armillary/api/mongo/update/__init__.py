"""Updates: what a document becomes.

`apply.py` takes an update apart (replacement, operators, pipeline), `operators.py` and `arrays.py`
are the tables of operators, `paths.py` finds the places a dotted path with `$`, `$[]` and `$[name]`
means and writes there, `upserts.py` makes the document that an upsert begins with.
"""
