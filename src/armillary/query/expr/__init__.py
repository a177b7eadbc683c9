"""Expressions over values, free of any query language: nodes in, functions of a row out.

    nodes, queries     expressions, and queries over values with every name resolved
    text               how they are written in plans and errors
    operators, like    what operators mean; `units`: strings as UTF-16
    evaluate, nested   nodes → closures; inner queries (`alternatives`: long ORs)
    compile, codegen   nodes → Python functions, after some hundred rows
    decoding           how much of an item an expression can see
    output             how a computed value leaves

Functions are in `query/functions/`. Front ends (`query/sql/`, and filters of other protocols) make
these nodes; nothing here imports one.

One folder although it is large: one module per stage above, each imported by the next.
"""
