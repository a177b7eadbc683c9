"""From our errors to wire codes: the only place that knows them. No handler picks a status.

One row per error, one column per protocol (NoSQL today; the others get theirs with their folder).
Status, code and client reaction follow the NoSQL REST reference, sections 9.1 and 9.2. A status is
chosen by what it makes an SDK *do*: 429 and 410 are waited out or re-routed, 503 is sent again,
other answers reach the application. Where the original has no such situation, the row says why.

    raise Conflict(...)  ──▶  wire(error)  ──▶  409, sub-status 0, "Conflict", the sentence

Not here: the JSON around it, headers such as retry-after (facts of the error), and what is not a
`DbError`, which is a bug of ours: log it whole and answer `INTERNAL`.
"""

from dataclasses import dataclass
from typing import NamedTuple

from armillary.errors import (
    Abandoned,
    BadInput,
    BatchFailed,
    Conflict,
    ContainerFull,
    DbError,
    DependencyFailed,
    Fenced,
    Forbidden,
    FormatMismatch,
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
    SessionNotAvailable,
    SharedContainersFull,
    SnapshotExpired,
    Stale,
    StorageFull,
    Throttled,
    TooLarge,
    Unauthorized,
    Unavailable,
    UniqueKeyConflict,
    UnknownMethod,
    WriteUncertain,
    WrongContainer,
)
from armillary.query.sql.errors import BadQuery, RefusedQuery


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
    # 503 says "this did not happen": SDKs send it again, writes too.
    Unavailable: Wire(503, "ServiceUnavailable"),
    # So 503 would be a lie here. 408 is the original's word for an unknown outcome ("Write
    # timeouts", partitioning reference 4.3): azure-cosmos 4.17 sends a create once for 408 and
    # twice for 503 (tests/unit/api/test_errors.py). 500 is not resent either, but would look like
    # a bug of ours instead of something to read again.
    WriteUncertain: Wire(408, "RequestTimeout"),
    OutOfTime: Wire(408, "RequestTimeout"),
    Abandoned: Wire(408, "RequestTimeout"),  # nobody reads it; for logs
    OverBudget: Wire(400, "BadRequest"),
    SnapshotExpired: Wire(408, "RequestTimeout"),  # as for a query that runs too long
    # An operator has to act, so nobody should retry: 403 without sub-status is what the original
    # answers when a storage quota is used up. Never 403/3, which sends SDKs to another region,
    # and not 507, which no SDK knows.
    StorageFull: Wire(403, "Forbidden"),
    ReadOnlyStore: Wire(403, "Forbidden"),
    # Normally refused at open. If a server meets it later the data is damaged: nothing the caller
    # sent is wrong, and trying again will not help.
    FormatMismatch: INTERNAL,
}


#: MongoDB: the code alone; its name is in `api/mongo/errors.py`. What is not listed is told as its
#: parent, or as 1 (InternalError).
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
    ContainerFull: 2,
    SharedContainersFull: 2,
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
}


def mongo_code(error: DbError) -> int:
    return next((MONGO[kind] for kind in type(error).__mro__ if kind in MONGO), 1)


def wire(error: DbError) -> Reply:
    """What the NoSQL protocol says for `error`. A subclass made elsewhere speaks like its parent;
    the bare root says nothing a client could act on, so it is treated as a bug of ours.
    """
    row = next((WIRE[kind] for kind in type(error).__mro__ if kind in WIRE), INTERNAL)
    return Reply(row.status, error.sub_status, row.code, error.message)
