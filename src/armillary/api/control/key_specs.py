"""The synthetic key of a container. Where there is one, a request whose key header is `[{}]` or
missing leaves the key to the server, which computes it from the item."""

from __future__ import annotations

from armillary.api.control.call import ControlCall, answer
from armillary.api.http.messages import Response
from armillary.errors import BadInput
from armillary.store.catalog.key_specs import replace_key_spec


def read_key_spec(call: ControlCall) -> Response:
    record = call.container().state.record
    return answer(200, {"spec": record.definition.get("syntheticKey")})


def write_key_spec(call: ControlCall) -> Response:
    body = call.json()
    if not isinstance(body, dict | None):
        raise BadInput("A synthetic key is defined by a JSON object; null takes it away.")
    record = replace_key_spec(call.gateway.account, call.container(), body)
    return answer(200, {"spec": record.definition.get("syntheticKey")})
