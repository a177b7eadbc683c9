"""The account at a glance: what the first page of a portal shows."""

from __future__ import annotations

from contextlib import suppress

from armillary.api.control.call import ControlCall, answer
from armillary.api.http.messages import Response
from armillary.budget import Budget
from armillary.engine.base import CATALOG_SPACE, Reader, SpaceGone
from armillary.errors import NotFound
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.records import ContainerRecord, list_containers, list_databases
from armillary.store.rows.meta import unpack_meta
from armillary.store.throughput.offers import find_offer
from armillary.values import JSON
from armillary.version import VERSION


def read_account(call: ControlCall) -> Response:
    account, budget = call.gateway.account, call.budget
    with account.engine.read(CATALOG_SPACE) as reader:
        found = [
            (
                database,
                _throughput(reader, database.rid),
                list_containers(reader, database.id, budget),
            )
            for database in sorted(list_databases(reader, budget), key=lambda one: one.number)
        ]
        offers = {one.rid: _throughput(reader, one.rid) for _, _, all in found for one in all}
    databases: list[JSON] = [
        {
            "id": database.id,
            "throughput": throughput,
            "containers": [
                _container(account, one, offers[one.rid], shared=throughput, budget=budget)
                for one in containers
            ],
        }
        for database, throughput, containers in found
    ]
    name = call.gateway.settings.account
    return answer(200, {"version": VERSION, "account": name, "databases": databases})


def _throughput(reader: Reader, rid: str) -> JSON:
    offer = find_offer(reader, rid)
    return None if offer is None else {"kind": offer.kind, "ru": offer.ru}


def _container(
    account: AccountStore,
    record: ContainerRecord,
    throughput: JSON,
    *,
    shared: JSON,
    budget: Budget,
) -> JSON:
    items = size_bytes = 0
    for one in record.ranges:
        budget.spend()
        # Split under our eyes, or deleted: its numbers are missing until somebody looks again.
        with suppress(SpaceGone, NotFound), account.engine.read(one.space) as reader:
            meta = unpack_meta(reader.meta)
            items += meta.items
            size_bytes += meta.body_bytes + meta.index_bytes
    definition = record.definition
    return {
        "id": record.id,
        "partition_key": list(definition["partitionKey"]["paths"]),
        "synthetic_key": definition.get("syntheticKey"),
        "throughput": throughput,
        "shared_throughput": shared if throughput is None else None,
        "partitions": len(record.ranges),
        "items": items,
        "bytes": size_bytes,
    }
