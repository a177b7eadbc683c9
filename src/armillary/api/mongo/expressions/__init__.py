"""Aggregation expressions: a document in, a function (document, variables) → value out.

`compiled.py` takes an expression apart; the operators are tables of plain functions, one module per
family. `values.py` has what they share: truth, paths, numbers that widen.
"""
