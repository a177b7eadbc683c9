"""The throughput of a container, read and changed as any client does: through its offer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from armillary.portal.context import Place
from armillary.portal.data.client import Client, path_of

QUERY_HEADERS = {
    "content-type": "application/query+json",
    "x-ms-documentdb-isquery": "true",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """What is provisioned, and for whom."""

    rid: str
    ru: int
    autoscale: bool
    shared: bool
    """It is the database's, shared by its containers."""
    minimum: int
    body: Mapping[str, Any]
    pending: bool = False


async def read_offer(client: Client, place: Place) -> Offer | None:
    """None: nothing is provisioned, as in a serverless account."""
    own = (await client.rest("GET", place.path)).body["_rid"]
    found = await _offer_of(client, own)
    shared = found is None
    if found is None:
        owner = (await client.rest("GET", path_of("dbs", place.database))).body["_rid"]
        found = await _offer_of(client, owner)
    if found is None:
        return None
    reply = await client.rest("GET", path_of("offers", found["_rid"]))
    content = reply.body["content"]
    autoscale = content.get("offerAutopilotSettings") or {}
    ru = autoscale.get("maxThroughput") or content["offerThroughput"]
    minimum = int(float(reply.headers.get("x-ms-cosmos-min-throughput", 400)))
    pending = reply.headers.get("x-ms-offer-replace-pending", "").lower() == "true"
    return Offer(found["_rid"], ru, bool(autoscale), shared, minimum, reply.body, pending)


async def change_offer(client: Client, offer: Offer, ru: int) -> Offer:
    """Raises Refused with the server's reason: out of bounds, or a change is under way."""
    body = dict(offer.body)
    content = dict(body["content"])
    if offer.autoscale:
        content["offerAutopilotSettings"] = {"maxThroughput": ru}
        content.pop("offerThroughput", None)
    else:
        content["offerThroughput"] = ru
    body["content"] = content
    reply = await client.rest("PUT", path_of("offers", offer.rid), body)
    pending = reply.headers.get("x-ms-offer-replace-pending", "").lower() == "true"
    return Offer(offer.rid, ru, offer.autoscale, offer.shared, offer.minimum, reply.body, pending)


async def _offer_of(client: Client, rid: str) -> Mapping[str, Any] | None:
    query = {
        "query": "SELECT * FROM root r WHERE r.offerResourceId = @rid",
        "parameters": [{"name": "@rid", "value": rid}],
    }
    reply = await client.rest("POST", "offers", query, QUERY_HEADERS)
    offers = reply.body["Offers"]
    return offers[0] if offers else None
