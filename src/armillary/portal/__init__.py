"""The portal: the pages under `/_portal` of a server, in a process of their own.

    server ── /_portal ──▶ Unix socket ──▶ this process ── signed HTTP ──▶ server

It is one more client: pages see and do only what the public HTTP API offers (`data/client.py`), so
whatever they show can be had as JSON too. NiceGUI draws them from Python; its scripts and fonts
come out of the wheel, and no request leaves the machine.

`hosting.py` runs the process, `data/` speaks to the server, `widgets/` has the parts of pages (the
frame that all have in common among them), `pages/` one module per page.
Nothing here is imported by the server.
"""
