"""The list of faults, read and set: answers that a test asks for, to see what a client does.

    [{"match": {"operation": "create", "container": "shop/orders"},
      "effect": "429", "value": 200, "times": 3}]

A fault strikes after the request was found to be allowed and before it does anything. `times` is
counted over all workers. The list is not looked at while it is empty.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from armillary.api.control.call import ControlCall, answer, refuse_unknown
from armillary.api.core.faults import GONE, OPERATIONS
from armillary.api.http.messages import Response
from armillary.errors import BadInput
from armillary.limits import FAULT_DELAY_MS_MAX, FAULTS_MAX
from armillary.store.catalog.controls import FaultRecord
from armillary.values import JSON

EFFECTS: Final = ("delay", "429", "410", "503")


# --- the controls ---------------------------------------------------------------------------------


def read_faults(call: ControlCall) -> Response:
    return answer(200, [_shown(one) for one in call.controls.shared.record.faults])


def replace_faults(call: ControlCall) -> Response:
    body = call.json()
    if not isinstance(body, list) or len(body) > FAULTS_MAX:
        raise BadInput(f"The faults are a list of at most {FAULTS_MAX}; an empty one removes them.")
    call.controls.shared.set_faults([_parsed(one) for one in body])
    return read_faults(call)


def _shown(fault: FaultRecord) -> JSON:
    given = {name: value for name, value in asdict(fault).items() if value is not None}
    match = {name: given.pop(name) for name in ("operation", "container") if name in given}
    return {"match": match, **given}


def _parsed(one: Any) -> FaultRecord:
    if not isinstance(one, dict):
        raise BadInput("A fault is an object with 'match', 'effect', 'value' and 'times'.")
    refuse_unknown(one, ("match", "effect", "value", "times"))
    match = one.get("match", {})
    if not isinstance(match, dict):
        raise BadInput("'match' is an object with 'operation' and 'container'.")
    refuse_unknown(match, ("operation", "container"))
    operation, container = match.get("operation"), match.get("container")
    if operation is not None and operation not in OPERATIONS:
        raise BadInput(f"There is no operation {operation!r}. There are: {', '.join(OPERATIONS)}.")
    if container is not None and not (isinstance(container, str) and container):
        raise BadInput("'container' is a name, or database/container.")
    effect = str(one.get("effect"))
    if effect not in EFFECTS:
        raise BadInput(f"The effect is one of {', '.join(EFFECTS)}; not {one.get('effect')!r}.")
    value, times = _count(one, "value", 0), _count(one, "times", 1)
    if effect == "delay" and (value is None or value > FAULT_DELAY_MS_MAX):
        raise BadInput(f"A delay needs a 'value' of 0 to {FAULT_DELAY_MS_MAX} milliseconds.")
    if effect == "410" and value is not None and value not in GONE:
        raise BadInput("The 'value' of 410 is its sub-status: 1002 or 1007.")
    return FaultRecord(effect, operation, container, value, times)


def _count(one: dict[str, Any], name: str, least: int) -> int | None:
    value = one.get(name)
    if value is None:
        return None
    if type(value) is not int or not least <= value <= 1_000_000_000:
        raise BadInput(f"'{name}' is a whole number of at least {least}; not {value!r}.")
    return value
