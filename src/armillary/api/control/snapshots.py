"""Snapshots of the account: a test suite fills an account once and begins every test from there."""

from __future__ import annotations

from dataclasses import asdict

from armillary.api.control.call import ControlCall, answer
from armillary.api.http.messages import Response


def list_snapshots(call: ControlCall) -> Response:
    return answer(200, [asdict(one) for one in call.controls.snapshots.all()])


def take_snapshot(call: ControlCall) -> Response:
    return answer(200, asdict(call.controls.snapshots.take(call.names["name"])))


def restore_snapshot(call: ControlCall) -> Response:
    return answer(200, asdict(call.controls.snapshots.restore(call.names["name"])))


def delete_snapshot(call: ControlCall) -> Response:
    call.controls.snapshots.delete(call.names["name"])
    return answer(200, {"name": call.names["name"]})
