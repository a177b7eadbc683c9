"""`GET /`: what a client learns first. All its later traffic goes to the address found here, so the
address is the one it used to get here. Facts: nosql-rest 0, 2.2."""

from __future__ import annotations

from typing import Final

import orjson

from armillary.api.core.settings import GatewaySettings
from armillary.api.http.messages import Request, Response
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
    address = address_of(call.request, call.gateway.settings)
    return reply(call, 200, orjson.dumps(document(call.gateway.settings, address)))


def address_of(request: Request, settings: GatewaySettings) -> str:
    """Scheme and host as the client sees them."""
    host = request.headers.get("host", "localhost")
    scheme = "https" if request.secure else "http"
    if settings.trust_forwarded:
        host = _first(request, "x-forwarded-host") or host
        given = _first(request, "x-forwarded-proto")
        scheme = given if given in ("http", "https") else scheme
    return f"{scheme}://{host}/"


def _first(request: Request, name: str) -> str:
    """Of several proxies, what the outermost said."""
    return request.headers.get(name, "").partition(",")[0].strip()


def _region(settings: GatewaySettings, number: int) -> str:
    return settings.region if number == 0 else f"{settings.region} {number + 1}"


def document(settings: GatewaySettings, address: str) -> dict[str, JSON]:
    places = [
        {"name": _region(settings, number), "databaseAccountEndpoint": one}
        for number, one in enumerate(settings.advertise or (address,))
    ]
    policy: dict[str, JSON] = {"defaultConsistencyLevel": settings.consistency}
    if settings.consistency == "BoundedStaleness":
        policy |= {"maxStalenessPrefix": 100, "maxIntervalInSeconds": 5}
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
