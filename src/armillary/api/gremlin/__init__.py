"""Gremlin over WebSocket: scripts in, partial responses out.

    bytes ─▶ wire/ ─▶ service: login, turns ─▶ language/ ─▶ steps/ ─▶ machine/
                                                                        │
    bytes ◀─ wire/ ◀─ results, 64 at a time ◀───────────────────────────┘ graph/ ─▶ store

`service.make_streams` is what a server is given. Facts: gremlin reference.
"""
