"""`GET /`: what a client learns first. All its later traffic goes to the address found here, so the
address is the one it used to get here. Facts: nosql-rest 0, 2.2."""

from __future__ import annotations

from typing import Final

import orjson

from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import GatewaySettings
from armillary.api.http.messages import Response
from armillary.api.nosql.call import Call, reply
from armillary.values import JSON

#: A string that holds an object that is not empty: a .NET client does not start without.
ENGINE: Final = orjson.dumps(
    {
        "maxSqlQueryInputLength": 524288,
        "maxJoinsPerSqlQuery": 10,
        "maxLogicalAndPerSqlQuery": 2000,
        "maxLogicalOrPerSqlQuery": 2000,
        "maxUdfRefPerSqlQuery": 10,
        "maxInExpressionItemsCount": 16000,
        "queryMaxGroupByTableCellCount": 500000,
        "queryMaxInMemorySortDocumentCount": 500,
        "maxQueryRequestTimeoutFraction": 0.9,
        "sqlAllowNonFiniteNumbers": False,
        "sqlAllowAggregateFunctions": True,
        "sqlAllowSubQuery": True,
        "sqlAllowScalarSubQuery": True,
        "allowNewKeywords": True,
        "sqlAllowLike": True,
        "sqlAllowGroupByClause": True,
        "sqlAllowTop": True,
        "enableSpatialIndexing": True,
        "maxSpatialQueryCells": 12,
        "spatialMaxGeometryPointCount": 256,
        "sqlDisableOptimizationFlags": 0,
        "enableSqlFunctions": True,
    }
).decode()


def read_account(call: Call) -> Response:
    address = address_of(call)
    return reply(call, 200, orjson.dumps(document(call.gateway, address)))


def address_of(call: Call) -> str:
    """Scheme and host as the client sees them."""
    scheme = "https" if call.request.secure else "http"
    if call.gateway.settings.trust_forwarded:
        given = call.request.headers.get("x-forwarded-proto", "").partition(",")[0].strip()
        scheme = given if given in ("http", "https") else scheme
    return f"{scheme}://{call.host}/"


def _region(settings: GatewaySettings, number: int) -> str:
    return settings.region if number == 0 else f"{settings.region} {number + 1}"


def _places(gateway: Gateway, address: str) -> list[JSON]:
    """The region that takes the writes, then the others by priority."""
    settings, regions = gateway.settings, gateway.regions
    if regions.places:
        pairs = [(one.name, one.endpoint) for one in regions.ordered()]
    else:
        given = enumerate(settings.advertise or (address,))
        pairs = [(_region(settings, number), one) for number, one in given]
    return [{"name": name, "databaseAccountEndpoint": one} for name, one in pairs]


def document(gateway: Gateway, address: str) -> dict[str, JSON]:
    settings, places = gateway.settings, _places(gateway, address)
    policy: dict[str, JSON] = {"defaultConsistencyLevel": settings.consistency}
    if settings.consistency == "BoundedStaleness":
        policy |= {
            # Only the interval is measured. The service's least prefix over several regions is
            # more than a server writes within it.
            "maxStalenessPrefix": 100_000 if gateway.regions.replicas else 100,
            "maxIntervalInSeconds": int(gateway.regions.staleness_s),
        }
    replicas = {"minReplicaSetSize": 1, "maxReplicasetSize": 4}
    return {
        "_self": "",
        "id": settings.account,
        "_rid": f"{settings.account}.sql.cosmos.azure.com",
        "media": "//media/",
        "addresses": "//addresses/",
        "_dbs": "//dbs/",
        "writableLocations": places[:1],
        "readableLocations": places,
        "enableMultipleWriteLocations": False,
        "continuousBackupEnabled": False,
        "enableNRegionSynchronousCommit": False,
        "enablePerPartitionFailoverBehavior": False,
        "disableCrossRegionalHedging": False,
        "userReplicationPolicy": {"asyncReplication": False, **replicas},
        "userConsistencyPolicy": policy,
        "systemReplicationPolicy": replicas,
        "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
        "queryEngineConfiguration": ENGINE,
    }
