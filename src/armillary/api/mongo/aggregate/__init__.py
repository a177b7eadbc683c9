"""Aggregation pipelines: stages in, a function from rows to rows out.

`documents.py` has the stages that turn one document into one, `stages.py` those over streams,
`grouping.py` and `accumulators.py` groups, `joins.py` what reads other collections (through
functions it is given), `pipeline.py` puts them together. Nothing here knows the store.
"""
