"""The event loop: uvloop where there is one. On Windows the selector loop of asyncio, because the
proactor loop can't watch a socket without reading from it."""

import asyncio
import sys


def new_loop() -> asyncio.AbstractEventLoop:
    if sys.platform == "win32":
        return asyncio.SelectorEventLoop()
    import uvloop

    return uvloop.new_event_loop()
