"""The steps: `table` names them all, `building` makes them from calls, the other modules run them.

    Chain of calls ─▶ building (arguments, modulators) ─▶ Steps ─▶ machine/running

Semantics are TinkerPop 3.4's (gremlin reference 8 and 9).
"""
