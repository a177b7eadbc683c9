"""Questions over one container: from text to rows.

1. `sql/lexer.py` cuts the text into tokens, `sql/parser.py` makes an AST of frozen nodes.
2. `sql/binder.py` resolves every name and makes every check that needs no data.
3. The bound query becomes a plan of nodes that know no SQL; other front ends make the same nodes.
4. Rules improve the plan: constants folded, ranges narrowed, an index chosen.
5. The plan's expressions are compiled and run over items, a page at a time.

`functions/` holds the built-in functions, one small module per family. Nothing here does I/O of
its own: items come through `store/`.
"""
