"""Throughput on the wire: offers. Facts: nosql-rest 8.

    query or list   SDKs look an offer up by the rid or the link of its container or database
    PUT             more or less RU/s; what needs splits answers with `isOfferReplacePending`, and
                    the splits go on in the background

Switching between manual and autoscale takes a header of its own.
"""

from __future__ import annotations

import math
from typing import Any, Final, cast

from armillary.api.http.messages import Response
from armillary.api.nosql.call import Call, resource
from armillary.api.nosql.metadata.listing import list_page
from armillary.api.nosql.metadata.presenting import offer_json
from armillary.encoding.rids import parse_rid
from armillary.engine.base import CATALOG_SPACE
from armillary.errors import BadInput, NotFound
from armillary.partition.provisioning.offers import refuse_serverless
from armillary.partition.provisioning.partitions import OfferKind
from armillary.store.catalog.records import ContainerRecord, DatabaseRecord, Throughput
from armillary.store.catalog.resources import find_owner
from armillary.store.throughput.autoscale import autoscale, container_levels, database_levels
from armillary.store.throughput.increment import increment_in, set_increment
from armillary.store.throughput.offers import OfferRecord, list_offers
from armillary.store.throughput.provisioned import (
    change_throughput,
    migrate_kind,
    minimum,
    stored_bytes,
)
from armillary.store.throughput.shared import change_shared_throughput, shared_minimum
from armillary.values import JSON

MIGRATIONS: Final[dict[str, OfferKind]] = {
    "x-ms-cosmos-migrate-offer-to-autopilot": "autoscale",
    "x-ms-cosmos-migrate-offer-to-manual-throughput": "manual",
}


def list_all_offers(call: Call) -> Response:
    rows = [(parse_rid(one.rid).number, _json(call, one)) for one in _offers(call)]
    return list_page(call, "", "Offers", rows)


def read_offer(call: Call) -> Response:
    return _answer(call, _find(call))


def replace_offer(call: Call) -> Response:
    offer = _find(call)
    owner = _owner(call, offer)
    if_match = call.options.if_match
    for header, kind in MIGRATIONS.items():
        if call.options.flag(header):
            return _answer(
                call, migrate_kind(call.gateway.engine, offer.owner, kind, if_match=if_match)
            )
    body = call.document()
    kind, ru = asked_in(body, offer)
    _refuse_manual(call, body["content"], offer)
    percent = increment_in(body["content"].get("offerAutopilotSettings"))
    if isinstance(owner, DatabaseRecord):
        account = call.gateway.account
        changed = change_shared_throughput(account, owner, ru, kind=kind, if_match=if_match)
        return _answer(call, _with_increment(call, changed, percent))
    store = call.gateway.container(owner.database, owner.id)
    limits = call.gateway.account.limits
    changed = change_throughput(store, ru, kind=kind, if_match=if_match, of=limits)
    if call.gateway.account.meter is not None:
        call.gateway.account.meter.forget(store.state)
    if changed.pending is not None:
        call.gateway.scale_later(store)
    return _answer(call, _with_increment(call, changed, percent))


def _with_increment(call: Call, offer: OfferRecord, percent: int | None) -> OfferRecord:
    return offer if percent is None else set_increment(call.gateway.engine, offer.owner, percent)


def asked_in(body: dict[str, Any], offer: OfferRecord) -> Throughput:
    """What the body of a replace asks for."""
    content = body.get("content")
    if not isinstance(content, dict):
        raise BadInput("The offer must have 'content' with 'offerThroughput'.")
    settings = content.get("offerAutopilotSettings")
    if isinstance(settings, dict):
        return "autoscale", _number(settings.get("maxThroughput"), "maxThroughput")
    return "manual", _number(content.get("offerThroughput"), "offerThroughput")


def _refuse_manual(call: Call, content: dict[str, Any], offer: OfferRecord) -> None:
    """Clients put a new number alongside the autoscale settings that they read: without a word, it
    would change nothing."""
    settings = content.get("offerAutopilotSettings")
    given = content.get("offerThroughput")
    if offer.kind != "autoscale" or not isinstance(settings, dict) or given is None:
        return
    shown = cast(dict[str, Any], _json(call, offer)["content"])
    if settings.get("maxThroughput") == offer.ru and given not in (
        shown["offerThroughput"],
        offer.ru,
    ):
        raise BadInput(
            f"The throughput is autoscale, up to {offer.ru} RU/s: it can't be set to {given}. "
            "Change its maximum (offerAutopilotSettings.maxThroughput), or migrate it to manual "
            "throughput first."
        )


def _number(value: Any, name: str) -> int:
    if type(value) is not int:
        raise BadInput(f"The property '{name}' of an offer must be a whole number.")
    return value


def _offers(call: Call) -> list[OfferRecord]:
    if call.gateway.account.serverless:
        refuse_serverless()
    with call.gateway.engine.read(CATALOG_SPACE) as reader:
        return list_offers(reader, call.budget)


def _find(call: Call) -> OfferRecord:
    wanted = call.names[0]
    found = next((one for one in _offers(call) if one.rid == wanted), None)
    if found is None:
        raise NotFound
    return found


def _owner(call: Call, offer: OfferRecord) -> DatabaseRecord | ContainerRecord:
    with call.gateway.engine.read(CATALOG_SPACE) as reader:
        owner = find_owner(reader, offer.owner)
    if owner is None:
        raise NotFound
    return owner


def _answer(call: Call, offer: OfferRecord) -> Response:
    return resource(
        call,
        200,
        _json(call, offer),
        {
            "x-ms-cosmos-min-throughput": str(_minimum(call, offer)),
            "x-ms-offer-replace-pending": str(offer.pending is not None).lower(),
        },
    )


def _json(call: Call, offer: OfferRecord) -> dict[str, JSON]:
    """With the throughput of the moment if it is autoscale."""
    if offer.kind != "autoscale":
        return offer_json(offer)
    try:
        owner = _owner(call, offer)
        account = call.gateway.account
        if isinstance(owner, DatabaseRecord):
            levels = database_levels(account, owner, offer)
        else:
            levels = container_levels(call.gateway.container(owner.database, owner.id), offer)
    except NotFound:  # deleted since the offers were listed
        levels = []
    return offer_json(offer, math.ceil(autoscale(call.gateway.engine, offer, levels).current))


def _minimum(call: Call, offer: OfferRecord) -> int:
    owner = _owner(call, offer)
    if isinstance(owner, DatabaseRecord):
        return shared_minimum(call.gateway.account, owner, offer)
    store = call.gateway.container(owner.database, owner.id)
    return minimum(offer, sum(stored_bytes(store).values()))
