"""The clock of the server: put ahead, so that a test need not wait for what time does (items that
expire, budgets that fill up, tokens that end); or stopped, so that time does nothing. Signatures
are still judged by the real time."""

from __future__ import annotations

from armillary.api.control.call import ControlCall, answer
from armillary.api.http.messages import Response
from armillary.errors import BadInput


def read_clock(call: ControlCall) -> Response:
    now_ms = call.gateway.engine.now_ms()
    record = call.controls.shared.record
    stopped = record.stopped_ms != 0
    return answer(200, {"now_ms": now_ms, "ahead_ms": record.ahead_ms, "stopped": stopped})


def advance_clock(call: ControlCall) -> Response:
    asked = call.document("advance_ms", "stopped")
    advance_ms, stopped = asked.get("advance_ms", 0), asked.get("stopped")
    if not asked:
        raise BadInput("The clock needs 'advance_ms', 'stopped', or both.")
    if type(advance_ms) is not int or advance_ms < 0:
        raise BadInput("'advance_ms' is a whole number of milliseconds, 0 or more.")
    if stopped is not None and type(stopped) is not bool:
        raise BadInput("'stopped' is true or false.")
    if stopped is not None:
        call.controls.shared.stop(stopped)
    if advance_ms:
        call.controls.shared.advance(advance_ms)
    return read_clock(call)
