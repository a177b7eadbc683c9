"""The clock of the server: put ahead, so that a test need not wait for what time does (items that
expire, budgets that fill up, tokens that end). Signatures are still judged by the real time."""

from __future__ import annotations

from armillary.api.control.call import ControlCall, answer
from armillary.api.nosql.messages import Response
from armillary.errors import BadInput


def read_clock(call: ControlCall) -> Response:
    now_ms = call.gateway.engine.now_ms()
    return answer(200, {"now_ms": now_ms, "ahead_ms": call.controls.shared.record.ahead_ms})


def advance_clock(call: ControlCall) -> Response:
    advance_ms = call.document("advance_ms").get("advance_ms")
    if type(advance_ms) is not int or advance_ms < 0:
        raise BadInput("'advance_ms' is a whole number of milliseconds, 0 or more.")
    call.controls.shared.advance(advance_ms)
    return read_clock(call)
