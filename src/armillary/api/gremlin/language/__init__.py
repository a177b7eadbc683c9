"""The text form of Gremlin: script in, calls with positions out.

    script ─▶ lexer ─▶ parser ─▶ Script(calls) ─▶ steps/building: steps that run

The grammar is one expression; nothing here knows what a step means. Facts: gremlin reference 7.
"""
