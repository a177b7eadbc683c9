"""Records of the catalog as the JSON that clients know. Facts: nosql-rest 2.2 to 2.5, 4.5, 8.1."""

from __future__ import annotations

from typing import Any, Final

from armillary.encoding.rids import parse_rid, pkrange_rid
from armillary.store.catalog.records import ContainerRecord, DatabaseRecord
from armillary.store.catalog.resources import ResourceRecord
from armillary.store.throughput.offers import OfferRecord
from armillary.values import JSON

#: Kind of a resource → the words of its path and of its feed.
FEEDS: Final[dict[str, tuple[str, str]]] = {
    "user": ("users", "Users"),
    "permission": ("permissions", "Permissions"),
    "sproc": ("sprocs", "StoredProcedures"),
    "trigger": ("triggers", "Triggers"),
    "udf": ("udfs", "UserDefinedFunctions"),
    "clientencryptionkey": ("clientencryptionkeys", "ClientEncryptionKeys"),
}


def database_json(record: DatabaseRecord) -> dict[str, JSON]:
    return {
        "id": record.id,
        "_rid": record.rid,
        "_self": database_link(record.rid),
        "_etag": f'"{record.etag}"',
        "_colls": "colls/",
        "_users": "users/",
        "_ts": record.ts,
    }


def container_json(record: ContainerRecord) -> dict[str, JSON]:
    return {
        **record.definition,
        "_rid": record.rid,
        "_ts": record.ts,
        "_self": container_link(record.rid),
        "_etag": f'"{record.etag}"',
        "_docs": "docs/",
        "_sprocs": "sprocs/",
        "_triggers": "triggers/",
        "_udfs": "udfs/",
        "_conflicts": "conflicts/",
    }


def resource_json(record: ResourceRecord, owner_link: str) -> dict[str, JSON]:
    extra: dict[str, Any] = {"_permissions": "permissions/"} if record.kind == "user" else {}
    body = {name: value for name, value in record.body.items() if not name.startswith("_")}
    return {
        **body,
        "id": record.id,
        "_rid": record.rid,
        "_self": f"{owner_link}{FEEDS[record.kind][0]}/{record.rid}/",
        "_etag": f'"{record.etag}"',
        "_ts": record.ts,
        **extra,
    }


def range_json(
    record: ContainerRecord, lsns: dict[int, int], coming: frozenset[int] = frozenset()
) -> list[dict[str, JSON]]:
    """The ranges of a container. `lsns` by ordinal; a range without one is not read yet. `coming`:
    ranges that will be split."""
    link = container_link(record.rid)
    moving = coming | {parent for move in record.moves for parent in move.parents}
    found: list[dict[str, JSON]] = []
    for one in record.ranges:
        rid = pkrange_rid(record.rid, one.ordinal + 2)
        found.append(
            {
                "_rid": rid,
                "id": str(one.ordinal),
                "_etag": f'"{record.etag}"',
                "minInclusive": one.start,
                "maxExclusive": one.end,
                "ridPrefix": one.ordinal,
                "_self": f"{link}pkranges/{rid}/",
                "throughputFraction": 1 / len(record.ranges),
                "status": "splitting" if one.ordinal in moving else "online",
                "parents": list(map(str, one.parents)),
                "ownedArchivalPKRangeIds": [],
                "_ts": record.ts,
                "lsn": lsns.get(one.ordinal, 0),
                "vectorClockVersion": 0,
            }
        )
    return found


def offer_json(record: OfferRecord, current_ru: int | None = None) -> dict[str, JSON]:
    """`current_ru`: where autoscale is now."""
    content: dict[str, Any] = {
        "offerThroughput": record.ru if current_ru is None else current_ru,
        "offerIsRUPerMinuteThroughputEnabled": False,
        "offerMinimumThroughputParameters": {
            "maxThroughputEverProvisioned": record.highest_ru,
            "maxConsumedStorageEverInKB": 0,
        },
        "isOfferReplacePending": record.pending is not None,
    }
    if record.kind == "autoscale":
        content["offerAutopilotSettings"] = {
            "maxThroughput": record.ru,
            "autoUpgradePolicy": {
                "throughputPolicy": {"incrementPercent": record.increment_percent}
            },
        }
    return {
        "offerVersion": "V2",
        "offerType": "Invalid",
        "resource": record.resource,
        "offerResourceId": record.owner,
        "content": content,
        "id": record.rid,
        "_rid": record.rid,
        "_self": f"offers/{record.rid}/",
        "_etag": f'"{record.etag}"',
        "_ts": record.ts,
    }


def database_link(rid: str) -> str:
    return f"dbs/{rid}/"


def container_link(rid: str) -> str:
    return f"dbs/{parse_rid(rid).parent}/colls/{rid}/"
