"""From our errors to wire codes: the only place that knows them. No handler picks a status.

One row per error, one column per protocol (NoSQL today; the others get theirs with their folder).
Status, code and client reaction follow the NoSQL REST reference, sections 9.1 and 9.2. A status is
chosen by what it makes an SDK *do*: 429 and 410 are waited out or re-routed, 503 is sent again,
other answers reach the application. Where the original has no such situation, the row says why.

    raise Conflict(...)  ──▶  wire(error)  ──▶  409, sub-status 0, "Conflict", the sentence

Not here: the JSON around it, headers such as retry-after (facts of the error), and what is not a
`DbError`, which is a bug of ours: log it whole and answer `INTERNAL`.
"""

import logging
from dataclasses import dataclass
from typing import NamedTuple

from armillary.errors import (
    Abandoned,
    BadInput,
    BatchFailed,
    Conflict,
    ContainerClosed,
    ContainerFull,
    DataDamaged,
    DbError,
    DependencyFailed,
    Fenced,
    Forbidden,
    FormatMismatch,
    InvalidUrl,
    Locked,
    MetadataThrottled,
    NeedsMerge,
    NotForEntra,
    NotFound,
    NotModified,
    NotRepresentable,
    NotSplittable,
    NotSupported,
    NotTargetable,
    NotWriteRegion,
    OutOfTime,
    OverBudget,
    OwnerNotFound,
    PartitionKeyCollision,
    PartitionKeyFull,
    PartitionKeyMismatch,
    PreconditionFailed,
    RangeBusy,
    RangeGone,
    ReadOnlyStore,
    ScriptBlocked,
    ScriptConflict,
    ScriptFailed,
    ScriptOutOfMemory,
    ScriptsBusy,
    ScriptTimedOut,
    ScriptWrongKey,
    SessionNotAvailable,
    SharedContainersFull,
    SnapshotExpired,
    Stale,
    StorageFull,
    Throttled,
    TooLarge,
    TooManyResources,
    Unauthorized,
    Unavailable,
    UniqueKeyConflict,
    UnknownMethod,
    WriteUncertain,
    WrongContainer,
)
from armillary.query.problems import BadQuery, RefusedQuery

log = logging.getLogger("armillary.api")


@dataclass(frozen=True, slots=True)
class Wire:
    status: int
    code: str
    """The word in the `code` field of the body."""


class Reply(NamedTuple):
    status: int
    sub_status: int
    code: str
    message: str


INTERNAL = Wire(500, "InternalServerError")

WIRE: dict[type[DbError], Wire] = {
    BadInput: Wire(400, "BadRequest"),
    PartitionKeyMismatch: Wire(400, "BadRequest"),
    InvalidUrl: Wire(400, "BadRequest"),
    NotTargetable: Wire(400, "BadRequest"),
    NotRepresentable: Wire(400, "BadRequest"),
    BadQuery: Wire(400, "BadRequest"),
    RefusedQuery: Wire(400, "BadRequest"),
    # The original answers 400 to what an account can't do. 501 is in none of its tables.
    NotSupported: Wire(400, "BadRequest"),
    WrongContainer: Wire(400, "BadRequest"),
    NeedsMerge: Wire(400, "BadRequest"),
    UnknownMethod: Wire(405, "MethodNotAllowed"),
    Unauthorized: Wire(401, "Unauthorized"),
    Forbidden: Wire(403, "Forbidden"),
    NotForEntra: Wire(403, "Forbidden"),
    NotWriteRegion: Wire(403, "Forbidden"),
    TooLarge: Wire(413, "RequestEntityTooLarge"),
    NotFound: Wire(404, "NotFound"),
    OwnerNotFound: Wire(404, "NotFound"),
    SessionNotAvailable: Wire(404, "NotFound"),
    Conflict: Wire(409, "Conflict"),
    UniqueKeyConflict: Wire(409, "Conflict"),
    PartitionKeyCollision: Wire(409, "Conflict"),
    PreconditionFailed: Wire(412, "PreconditionFailed"),
    NotModified: Wire(304, "NotModified"),  # has no body: the code is for logs only
    PartitionKeyFull: Wire(403, "Forbidden"),
    ContainerClosed: Wire(403, "Forbidden"),
    ContainerFull: Wire(403, "Forbidden"),
    DependencyFailed: Wire(424, "FailedDependency"),
    BatchFailed: Wire(207, "MultiStatus"),
    Throttled: Wire(429, "429"),  # the original sends the number as the code
    MetadataThrottled: Wire(429, "429"),
    RangeGone: Wire(410, "Gone"),
    RangeBusy: Wire(410, "Gone"),
    Fenced: Wire(410, "Gone"),
    Locked: Wire(423, "Locked"),
    NotSplittable: Wire(400, "BadRequest"),
    SharedContainersFull: Wire(403, "Forbidden"),
    Stale: Wire(449, "RetryWith"),
    # A script chooses the sub-status by the number of its error, never the status (scripts 0.2).
    ScriptFailed: Wire(400, "BadRequest"),
    ScriptOutOfMemory: Wire(400, "BadRequest"),
    ScriptWrongKey: Wire(400, "BadRequest"),
    ScriptBlocked: Wire(403, "Forbidden"),
    ScriptsBusy: Wire(429, "429"),
    ScriptConflict: Wire(449, "RetryWith"),
    ScriptTimedOut: Wire(408, "RequestTimeout"),
    # 503 says "this did not happen": SDKs send it again, writes too.
    Unavailable: Wire(503, "ServiceUnavailable"),
    # So 503 would be a lie here. 408 is the original's word for an unknown outcome ("Write
    # timeouts", partitioning reference 4.3): azure-cosmos 4.17 sends a create once for 408 and
    # twice for 503 (tests/unit/api/test_errors.py). 500 is not resent either, but would look like
    # a bug of ours instead of something to read again.
    WriteUncertain: Wire(408, "RequestTimeout"),
    OutOfTime: Wire(408, "RequestTimeout"),
    Abandoned: Wire(408, "RequestTimeout"),  # for logs: the client has left
    OverBudget: Wire(400, "BadRequest"),
    SnapshotExpired: Wire(408, "RequestTimeout"),  # as for a query that runs too long
    # An operator has to act; clients should not retry: 403 without sub-status is what the original
    # answers when a storage quota is used up. Never 403/3, which sends SDKs to another region,
    # and not 507, which no SDK knows.
    StorageFull: Wire(403, "Forbidden"),
    TooManyResources: Wire(403, "Forbidden"),
    ReadOnlyStore: Wire(403, "Forbidden"),
    # Normally refused at open. If a server meets it later the data is damaged: nothing the caller
    # sent is wrong, and trying again will not help.
    FormatMismatch: INTERNAL,
    DataDamaged: INTERNAL,
}


#: MongoDB: the code alone; its name is in `api/mongo/errors.py`. What is not listed is sent as its
#: parent; damaged data as 1 (InternalError).
MONGO: dict[type[DbError], int] = {
    BadInput: 2,
    NotSupported: 115,
    Unauthorized: 18,
    Forbidden: 13,
    TooLarge: 10334,
    OverBudget: 146,
    NotFound: 26,
    Conflict: 11000,
    PreconditionFailed: 112,
    Stale: 112,
    PartitionKeyFull: 2,
    ContainerClosed: 13,
    ContainerFull: 2,
    SharedContainersFull: 2,
    TooManyResources: 2,
    Throttled: 16500,
    # Drivers send a read again for these two, and a retryable write.
    RangeGone: 6,
    Unavailable: 6,
    WriteUncertain: 64,
    OutOfTime: 50,
    SnapshotExpired: 50,
    Locked: 117,
    NotSplittable: 2,
    StorageFull: 14031,
    ReadOnlyStore: 13,
    # Not met by the commands there are; none of them would be a mistake of ours.
    UnknownMethod: 115,
    NotModified: 112,
    DependencyFailed: 112,
    BatchFailed: 96,
    ScriptBlocked: 13,
    ScriptConflict: 112,
}


def mongo_code(error: DbError) -> int:
    return next((MONGO[kind] for kind in type(error).__mro__ if kind in MONGO), 1)


def log_damage(error: DbError, asked: object) -> None:
    """Damaged data is nothing the client did: it is logged for the operator of the server."""
    if isinstance(error, FormatMismatch):
        log.error("damaged data: %s: %s", asked, error.message)


def wire(error: DbError) -> Reply:
    """What the NoSQL protocol says for `error`. A subclass made elsewhere speaks like its parent;
    the bare root says nothing a client could act on, so it is treated as a bug of ours.
    """
    row = next((WIRE[kind] for kind in type(error).__mro__ if kind in WIRE), INTERNAL)
    sub_status = error.facts.get("sub_status", error.sub_status)
    return Reply(row.status, sub_status, row.code, error.message)


# --- Gremlin --------------------------------------------------------------------------------------


class GremlinReply(NamedTuple):
    """`status` of the response message, and what its attributes say (gremlin reference 4)."""

    status: int
    ms_status: int
    sub_status: int
    exception: str
    message: str


#: What is wrong with a script, by its kind: status and x-ms-status-code.
GREMLIN_SCRIPT: dict[str, tuple[int, int]] = {
    "binding": (597, 400),
    "symbol": (597, 400),
    "parse": (597, 400),
    "syntax": (597, 400),
    "runtime": (597, 1002),
    "value": (597, 1002),
    "unsupported": (500, 1000),
    "malformed": (498, 1004),
    "serialization": (599, 1001),
    "limit": (500, 429),
    "busy": (500, 1008),
}
#: Errors of the store that have a name and a sentence of their own in this protocol.
GREMLIN: dict[type[DbError], tuple[int, int, str, str | None]] = {
    Unauthorized: (401, 401, "UnauthorizedException", "Unauthorized: Invalid credentials provided"),
    Forbidden: (500, 403, "ForbiddenException", None),
    OwnerNotFound: (500, 404, "NotFoundException", None),
    NotFound: (
        500,
        404,
        "NotFoundException",
        "NotFoundException: Entity with the specified id does not exist in the system.",
    ),
    Conflict: (
        500,
        409,
        "ConflictException",
        "Conflicting request to resource has been attempted. Retry to avoid conflicts.",
    ),
    PreconditionFailed: (
        500,
        412,
        "PreconditionFailedException",
        "PreconditionFailedException: One of the specified pre-condition is not met",
    ),
    Throttled: (500, 429, "RequestRateTooLargeException", None),
    OutOfTime: (598, 1009, "GraphTimeoutException", None),
    OverBudget: (500, 1003, "GraphMemoryException", None),
}


def gremlin_script_status(kind: str) -> tuple[int, int]:
    return GREMLIN_SCRIPT[kind]


def gremlin_wire(error: DbError) -> GremlinReply:
    """Failures of the store arrive as 500, with their HTTP status in x-ms-status-code."""
    for kind in type(error).__mro__:
        if kind in GREMLIN:
            status, ms_status, name, text = GREMLIN[kind]
            return GremlinReply(status, ms_status, error.sub_status, name, text or error.message)
    known = wire(error)
    name = f"{known.code}Exception"
    return GremlinReply(500, known.status, known.sub_status, name, error.message)


# --- Table --------------------------------------------------------------------------------------


class TableWire(NamedTuple):
    """What the Table protocol says: for Cosmos DB, and for Storage where that differs."""

    status: int
    code: str
    text: str = ""
    """Empty: the error's own sentence. `{0}` is its detail."""
    storage: "TableWire | None" = None


def _invalid(text: str) -> TableWire:
    return TableWire(400, "InvalidInput", text, _STORAGE_INVALID)


_STORAGE_INVALID = TableWire(400, "InvalidInput", "One of the request inputs is not valid.")
_NOT_MET = "The update condition specified in the request was not satisfied."
_NO_RESOURCE = "The specified resource does not exist."
_RATE = (
    'Message: {"Errors":["Request rate is large. More Request Units may be needed, so no changes '
    "were made. Please retry this request later. Learn more: "
    'http://aka.ms/cosmosdb-error-429"]}'
)
_FAILED_AUTHENTICATION = (
    "Server failed to authenticate the request. Make sure the value of Authorization header is "
    "formed correctly including the signature."
)

#: What `api/table` finds wrong with a request, by the words it uses. Facts: table 10, 11. The texts
#: marked * make azure-data-tables raise ValueError about the name of a table.
TABLE_PROBLEMS: dict[str, TableWire] = {
    "input": _invalid("One of the input values is invalid."),  # *
    "url": _invalid("Request url is invalid."),  # *
    # Storage takes the first segment for an account that it does not know.
    "url segments": TableWire(
        400,
        "InvalidInput",
        "Request url is invalid.",  # *
        TableWire(403, "AuthenticationFailed", _FAILED_AUTHENTICATION),
    ),
    "filter": _invalid("Request url is invalid."),
    "table name character": TableWire(
        400,
        "InvalidInput",
        "The table name contains an invalid character {0}.",  # *
        TableWire(
            400,
            "InvalidResourceName",
            "The specifed resource name contains invalid characters.",
        ),
    ),
    "table name space": _invalid("Table name cannot end with a space."),  # *
    "table name length": TableWire(
        400,
        "BadRequest",
        "The input name is invalid. Ensure to provide a unique non-empty string less than '255' "
        "characters.",  # *
        TableWire(
            400,
            "OutOfRangeInput",
            "The specified resource name length is not within the permissible limits.",
        ),
    ),
    "keys missing": TableWire(
        400,
        "PropertiesNeedValue",
        "The values are not specified for all properties in the entity.",
    ),
    "keys empty": TableWire(400, "PropertiesNeedValue", "PartitionKey/RowKey cannot be empty"),
    "key characters": TableWire(
        400,
        "InvalidInput",
        "One of the input values is invalid.",
        TableWire(400, "OutOfRangeInput", "One of the request inputs is out of range."),
    ),
    "key length": TableWire(
        400,
        "KeyValueTooLarge",
        "The size of the key exceeds the maximum: {0}.",
        TableWire(400, "KeyValueTooLarge", "The specified key value is too large."),
    ),
    "property name": TableWire(
        400,
        "PropertyNameInvalid",
        "The property name '{0}' is invalid.",
        TableWire(400, "PropertyNameInvalid", "The property name is invalid."),
    ),
    "property name length": TableWire(
        400,
        "PropertyNameTooLong",
        "The property name exceeds the maximum allowed length (255).",
    ),
    "property count": TableWire(
        400,
        "TooManyProperties",
        "The entity contains more properties than allowed. Each entity can include up to 252 "
        "properties to store data. Each entity also has 3 system properties.",
    ),
    "property size": TableWire(
        400, "PropertyValueTooLarge", "The property value exceeds the maximum allowed size (64KB)."
    ),
    "entity size": TableWire(
        400,
        "EntityTooLarge",
        "The size of the entity exceeds the maximum allowed size of {0}.",
    ),
    "condition": TableWire(412, "UpdateConditionNotSatisfied", _NOT_MET),
    "condition missing": TableWire(
        400, "InvalidInput", "The operation needs the header If-Match: an ETag, or *."
    ),
    "condition form": _invalid("One of the input values is invalid."),
    "table exists": TableWire(
        409,
        "TableAlreadyExists",
        "The specified table already exists.",
        TableWire(409, "TableAlreadyExists", "The table specified already exists."),
    ),
    "table missing": TableWire(
        404,
        "ResourceNotFound",
        _NO_RESOURCE,
        TableWire(404, "TableNotFound", "The table specified does not exist."),
    ),
    "entity exists": TableWire(409, "EntityAlreadyExists", "The specified entity already exists."),
    "entity missing": TableWire(404, "ResourceNotFound", _NO_RESOURCE),
    "unauthorized": TableWire(
        401, "Unauthorized", "", TableWire(403, "AuthenticationFailed", _FAILED_AUTHENTICATION)
    ),
    "permission": TableWire(
        403,
        "AuthorizationPermissionMismatch",
        "This request is not authorized to perform this operation using this permission.",
    ),
    "read-only key": TableWire(
        403,
        "Forbidden",
        "The key that signed this request reads only.",
        TableWire(
            403, "AuthorizationFailure", "This request is not authorized to perform this operation."
        ),
    ),
    "sas keys": TableWire(
        405,
        "MethodNotAllowed",
        "Shared access signature with PartitionKey or RowKey are not supported",
    ),
    "method": TableWire(405, "MethodNotAllowed", "The requested verb is not supported."),
    "format": TableWire(
        415,
        "AtomFormatNotSupported",
        "Atom format is not supported.",
    ),
    "not implemented": TableWire(
        501, "NotImplemented", "The requested operation is not supported."
    ),
    "batch operations": TableWire(
        400,
        "InvalidInput",
        "The batch request operation exceeds the maximum 100 changes per change set.",
    ),
    "batch partitions": TableWire(
        400,
        "CommandsInBatchActOnDifferentPartitions",
        "All commands in a batch must operate on same entity group.",
    ),
    "batch duplicate": TableWire(
        400,
        "InvalidDuplicateRow",
        "The batch request contains multiple changes with same row key. An entity can appear only "
        "once in a batch request.",
    ),
    "batch size": TableWire(
        413,
        "RequestBodyTooLarge",
        "The request body is too large and exceeds the maximum permissible limit.",
    ),
    "xml": TableWire(400, "InvalidXmlDocument", "XML specified is not syntactically valid. {0}"),
}

#: The same for errors of the store.
TABLE: dict[type[DbError], TableWire] = {
    BadInput: _invalid(""),
    NotSupported: TABLE_PROBLEMS["not implemented"],
    UnknownMethod: TABLE_PROBLEMS["method"],
    Unauthorized: TABLE_PROBLEMS["unauthorized"],
    Forbidden: TableWire(403, "Forbidden", "", TableWire(403, "AuthorizationFailure", "")),
    TooLarge: TABLE_PROBLEMS["batch size"],
    NotFound: TABLE_PROBLEMS["entity missing"],
    OwnerNotFound: TABLE_PROBLEMS["table missing"],
    Conflict: TABLE_PROBLEMS["entity exists"],
    PreconditionFailed: TABLE_PROBLEMS["condition"],
    Throttled: TableWire(429, "TooManyRequests", _RATE),
    Stale: TableWire(503, "ServerBusy", "The server is busy."),
    RangeGone: TableWire(503, "ServerBusy", "The server is busy."),
    Unavailable: TableWire(503, "ServerBusy", "The server is busy."),
    WriteUncertain: TableWire(500, "OperationTimedOut", ""),
    OutOfTime: TableWire(500, "OperationTimedOut", ""),
}

TABLE_INTERNAL = TableWire(
    500, "InternalError", "The server encountered an internal error. Please retry the request."
)


def table_wire(error: DbError, *, storage: bool = False) -> Reply:
    """What the Table protocol says for `error`. What has no row of its own keeps the status and the
    word of NoSQL, which clients of both services read the same."""
    row = TABLE_PROBLEMS.get(error.facts.get("problem", ""))
    if row is None:
        kinds = type(error).__mro__
        row = next((TABLE[kind] for kind in kinds if kind in TABLE), None)
        general = next((WIRE[kind] for kind in kinds if kind in WIRE), INTERNAL)
        if row is None:
            row = TableWire(general.status, general.code)
    if storage and row.storage is not None:
        row = row.storage
    detail = error.facts.get("detail", "")
    text = row.text.replace("{0}", str(detail)) if row.text else error.message
    if hint := error.facts.get("hint"):
        text = f"{text} {hint}"
    return Reply(row.status, error.sub_status, row.code, text)
