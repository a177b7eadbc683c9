"""Where the account is: its regions, the copies of its data, and which node holds which range; and
moving the writes to another region."""

from __future__ import annotations

import math

from armillary.api.control.call import ControlCall, answer
from armillary.api.http.messages import Response
from armillary.engine.base import CATALOG_SPACE
from armillary.engine.replicas import Replica
from armillary.errors import BadInput
from armillary.store.catalog.records import list_containers, list_databases
from armillary.values import JSON

HERE = "this server"


def read_topology(call: ControlCall) -> Response:
    gateway = call.gateway
    regions = gateway.regions
    known = regions.ordered()
    writes = regions.write_region()
    listed: list[JSON] = [
        {
            "name": one.name,
            "endpoint": one.endpoint,
            "writes": one.name == writes,
            "replica": _replica(regions.replicas.get(one.name)),
        }
        for one in known
    ]
    if not known:
        listed = [{"name": writes, "endpoint": "", "writes": True, "replica": None}]
    body: JSON = {"here": regions.here, "regions": listed, "containers": _containers(call)}
    return answer(200, body)


def _replica(replica: Replica | None) -> JSON:
    if replica is None:
        return None
    lag_s = replica.lag_s()
    return {
        "address": replica.shown,
        "reads": lag_s is not None,
        "lag_ms": None if lag_s is None or math.isinf(lag_s) else round(lag_s * 1000),
        "reason": replica.reason,
    }


def _containers(call: ControlCall) -> list[JSON]:
    gateway, budget = call.gateway, call.budget
    with gateway.engine.read(CATALOG_SPACE) as reader:
        records = [
            one
            for database in list_databases(reader, budget)
            for one in list_containers(reader, database.id, budget)
        ]
    nodes = gateway.engine.nodes([one.space for record in records for one in record.ranges])
    return [
        {
            "database": record.database,
            "container": record.id,
            "ranges": [
                {"id": str(one.ordinal), "node": nodes.get(one.space, HERE)}
                for one in record.ranges
            ],
        }
        for record in records
    ]


def fail_over(call: ControlCall) -> Response:
    wanted = call.document("region").get("region")
    if wanted is not None and not isinstance(wanted, str):
        raise BadInput("'region' is the name of a region.")
    before = call.gateway.regions.write_region()
    after = call.gateway.regions.fail_over(wanted)
    return answer(200, {"from": before, "to": after})
