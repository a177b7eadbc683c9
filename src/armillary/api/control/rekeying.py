"""A container under another partition key, by a server: some steps per request, asked again until
it is done. The catalog knows how far it is, so any worker may take the next steps, and a client or
a server that dies is followed by another one. `store/migration/rekey.py` has the phases.

And the synthetic key of a container. Where there is one, a request whose key header is `[{}]` or
missing leaves the key to the server, which computes it from the item."""

from __future__ import annotations

from typing import Any, Final

from armillary.api.control.call import ControlCall, answer
from armillary.api.http.messages import Response
from armillary.errors import BadInput
from armillary.partition.provisioning.offers import requested
from armillary.store.catalog.key_specs import replace_key_spec
from armillary.store.catalog.records import Throughput
from armillary.store.migration import rekey as rekeying

KEYS: Final = ("partitionKey", "syntheticKey")
STEPS_PER_REQUEST: Final = 10  # some hundred items each: an answer every second or so


def rekey(call: ControlCall) -> Response:
    body = call.document(
        "target", "partitionKey", "syntheticKey", "throughput", "autoscale_max", "cut_over"
    )
    target = body.get("target")
    if not isinstance(target, str) or not target:
        raise BadInput("The body needs the name of the new container: target.")
    keys: dict[str, Any] = {
        name: body[name] for name in ("partitionKey", "syntheticKey") if name in body
    }
    if not keys:
        raise BadInput("The body needs the new key: partitionKey, syntheticKey, or both.")
    run = rekeying.begin(
        call.gateway.account,
        call.names["db"],
        call.names["coll"],
        {"id": target, **keys},
        throughput=_throughput(body),
        cut_over=body.get("cut_over") is True,
    )
    budget = call.budget
    taken, progress = 0, rekeying.RekeyProgress(run.record.phase, run.record.copied, 0)
    while run.record.phase != rekeying.DONE:
        is_over = taken >= STEPS_PER_REQUEST or budget.is_cancelled or not budget.seconds_left
        if is_over and run.may_pause:
            break
        progress = run.advance()
        taken += 1
    is_done = run.record.phase == rekeying.DONE
    return answer(200, _told(progress, run.report() if is_done else None))


def _throughput(body: dict[str, Any]) -> Throughput | None:
    for number in (manual := body.get("throughput"), most := body.get("autoscale_max")):
        if number is not None and type(number) is not int:
            raise BadInput("Throughput is a whole number of RU/s.")
    return requested(manual, most)


def _told(progress: rekeying.RekeyProgress, report: rekeying.RekeyReport | None) -> dict[str, Any]:
    return {
        "phase": progress.phase,
        "copied": progress.copied,
        "source_items": progress.source_items,
        "without_key": progress.keyless,
        "report": None
        if report is None
        else {
            "source_items": report.source_items,
            "target_items": report.target_items,
            "verified": report.verified,
            "closed": report.closed,
            "without_key": report.keyless,
            "logical_partitions": report.logical_partitions,
            "different": report.different,
            "left": [{"id": one.id, "key": one.key, "why": one.why} for one in report.left],
        },
    }


def read_key_spec(call: ControlCall) -> Response:
    record = call.container().state.record
    return answer(200, {"spec": record.definition.get("syntheticKey")})


def write_key_spec(call: ControlCall) -> Response:
    body = call.json()
    if not isinstance(body, dict | None):
        raise BadInput("A synthetic key is defined by a JSON object; null takes it away.")
    record = replace_key_spec(call.gateway.account, call.container(), body)
    return answer(200, {"spec": record.definition.get("syntheticKey")})
