"""What can go wrong, in our words. Named by what the caller can do about it.

Errors carry facts (sub-status, positions, waits) alongside a sentence that says what was wrong and
what is allowed. This module knows no wire codes: `api/errors.py` is the only place that maps an
error to a status of a protocol. Anything raised that is not a `DbError` is a bug of ours.
"""

from typing import Any, ClassVar


class DbError(Exception):
    """The root. `facts` are plain values; an error survives a trip between processes unchanged."""

    sub_status: ClassVar[int] = 0
    text: ClassVar[str] = "One of the input values is invalid."

    def __init__(self, message: str | None = None, **facts: Any) -> None:
        super().__init__(message or self.text)
        self.facts = facts

    @property
    def message(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.facts)


def _rebuild(kind: type[DbError], message: str, facts: dict[str, Any]) -> DbError:
    return kind(message, **facts)


# --- the request is wrong: change it ------------------------------------------------------------


class BadInput(DbError):
    """The request can never succeed as it is."""


class PartitionKeyMismatch(BadInput):
    """The key given with the item is not the key inside it, or has the wrong number of parts."""

    sub_status = 1001
    text = (
        "Partition key provided either doesn't correspond to definition in the collection or "
        "doesn't match partition key field values specified in the document."
    )


class InvalidUrl(BadInput):
    """An address with control characters, at a server that reads it as the routing gateway does."""

    text = "HTTP Error 400. The request URL is invalid."


class NotTargetable(BadInput):
    """Too little is known to compute partition keys: ask every partition, or say more."""


class NotRepresentable(BadInput):
    """A query computed NaN or Infinity and wants to return it; JSON has no word for either."""

    text = (
        "The query result contains a number that can't be represented in JSON (NaN or Infinity). "
        "Use IS_FINITE_NUMBER to leave such values out."
    )


class TooLarge(DbError):
    text = "The size of the request exceeded the maximum allowed size."

    @classmethod
    def of(cls, body_bytes: int, body_bytes_max: int, text: str = f"{text} ") -> "TooLarge":
        """With the size and the limit, which is what its reader looks for."""
        message = f"{text}It has {body_bytes:,} bytes; {body_bytes_max:,} are allowed."
        return cls(message, body_bytes=body_bytes, body_bytes_max=body_bytes_max)


class OverBudget(DbError):
    """The operation would use more memory or steps than one may."""

    text = (
        "The request needs more memory or more steps than one request may use. Narrow it: filter "
        "earlier, return less, or ask in pages."
    )


class NotSupported(DbError):
    """A real feature of the original that is not built here (yet)."""


class UnknownMethod(DbError):
    """The path is right, what should be done with it is not."""

    text = "The requested verb is not supported."


class WrongContainer(BadInput):
    """The name belongs to another container than the caller thinks: it was made again."""

    sub_status = 1024
    text = (
        "The container of this name is not the one the request was meant for. "
        "Read the container again."
    )


class NeedsMerge(BadInput):
    """A query over several partitions whose partial results the client has to put together.
    `plan` says how."""

    sub_status = 1004
    text = (
        "The provided cross partition query can not be directly served by the gateway. This is a "
        "first chance (internal) exception that all newer clients will know how to handle "
        "gracefully. This exception is traced, but unless you see it bubble up as an exception "
        "(which only happens on older SDK clients), then you can safely ignore this message."
    )


# --- the caller is not allowed to: show another key -----------------------------------------------


class Unauthorized(DbError):
    """The signature is not of one of our keys."""

    text = "Required Header authorization is missing. Ensure a valid Authorization token is passed."


class Forbidden(DbError):
    """We know who it is, and that is not enough."""

    text = (
        "Insufficient permissions provided in the authorization header for the corresponding "
        "request. Please retry with another authorization header."
    )


class NotForEntra(Forbidden):
    """Databases, containers and throughput are managed with a key, not with a person's token."""

    sub_status = 5300
    text = (
        "The given request cannot be authorized by AAD token in data plane. "
        "Learn more: https://aka.ms/cosmos-native-rbac."
    )


class NotWriteRegion(Forbidden):
    """Another region takes the writes: read the account document again, and send it there."""

    sub_status = 3
    text = "The requested operation cannot be performed at this region."


# --- the state of the data says no: look again ----------------------------------------------------


class NotFound(DbError):
    text = (
        "Entity with the specified id does not exist in the system. "
        "More info: https://aka.ms/cosmosdb-tsg-not-found"
    )


class OwnerNotFound(NotFound):
    """The database or container that should hold the item does not exist."""

    sub_status = 1003
    text = "Owner resource does not exist"


class SessionNotAvailable(NotFound):
    """The caller has seen something newer than what we have."""

    sub_status = 1002
    text = "The read session is not available for the input session token."


class Conflict(DbError):
    text = "Entity with the specified id already exists in the system."


class UniqueKeyConflict(Conflict):
    text = "Resource with specified id, name, or unique index already exists."


class PartitionKeyCollision(Conflict):
    """Two different key values with one hash. Refused, because they would share a logical
    partition.
    """

    sub_status = 3302
    text = (
        "The partition key value has the same hash as another partition key value that already has "
        "items in this container. Choose a different partition key value."
    )


class PreconditionFailed(DbError):
    text = "Operation cannot be performed because one of the specified precondition is not met."


class NotModified(DbError):
    """The caller's copy is current: there is nothing to send."""

    text = "The item has not changed."


class PartitionKeyFull(DbError):
    """One logical partition reached its size limit. Retrying is pointless; the key must change."""

    sub_status = 1014
    text = "Partition key reached maximum size."


class ContainerClosed(DbError):
    """Its items have moved to another container, and it is only read. Write there."""

    text = "The container is closed for writing: its items have moved to another container."


class ContainerFull(DbError):
    """A fixed container reached its size limit. Copy it to one that grows."""

    text = "The container reached its maximum size."


class TooManyResources(DbError):
    """The account has as many databases and containers as it may. Delete some, or raise it."""

    text = "The account has too many databases and containers."


class SharedContainersFull(DbError):
    """A database's throughput is shared by as many containers as are allowed."""

    sub_status = 1019
    text = (
        "The database shares its throughput among the maximum number of containers. "
        "Give the container its own throughput."
    )


class NotSplittable(DbError):
    """All of a physical partition belongs to one partition key value: a split can't help."""

    text = (
        "The physical partition can't be split: all its items have one partition key value. "
        "Only a different partition key spreads them."
    )


class DependencyFailed(DbError):
    """Another operation of the same batch failed, so this one did not happen."""

    text = "The operation was not executed because another operation of the batch failed."


class BatchFailed(DbError):
    """One operation of a batch was refused, so none happened. The cause says why."""

    text = "An operation of the batch failed, so nothing was changed."


class ScriptFailed(BadInput):
    """A script threw, aborted or does not compile, so nothing it did has happened. `sub_status` is
    the number of its error, `log` what it logged."""

    text = "The script failed."


class ScriptWrongKey(BadInput):
    """A script reaches for an item of another partition key than its own."""

    text = (
        "Requests originating from scripts cannot reference partition keys other than the one for "
        "which client request was submitted."
    )


class ScriptOutOfMemory(ScriptFailed):
    """The script needed more memory than one may, or its process ended."""

    text = (
        "The process of the script ended: it used more memory than a script may use, or was "
        "killed. Nothing it did was kept."
    )


class ScriptBlocked(DbError):
    """The script went over its bounds again and again. Create it anew when it is mended."""

    text = (
        "The script with id '{0}' is blocked for execution because it has violated its allowed "
        "resource limit several times."
    )


# --- now is the wrong moment: try again ---------------------------------------------------------


class Throttled(DbError):
    sub_status = 3200
    text = (
        "Request rate is large. More Request Units may be needed, so no changes were made. "
        "Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429"
    )


class MetadataThrottled(Throttled):
    """Too many requests about databases, containers and throughput. More RU/s do not help."""

    sub_status = 3201
    text = (
        "The request did not complete due to a high rate of metadata requests. "
        "Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429"
    )


class ScriptsBusy(Throttled):
    """More scripts wait for their turn than may."""

    sub_status = 3084
    text = (
        "Request rate is large. Too many stored procedures are waiting to be executed, so no "
        "changes were made. Please retry this request later."
    )


class RangeGone(DbError):
    """The physical partition asked for is not (or no longer) the owner: read the range table
    again.
    """

    sub_status = 1002
    text = "The requested resource is no longer available at the server."


class Fenced(RangeGone):
    """The row in the snapshot disagrees with the caller's picture of the range. The store reads the
    catalog again; users see it only when that went on for too long."""


class Stale(DbError):
    """The item changed between a look and the write that was computed from it: look again."""

    text = "Retry the request."


class ScriptConflict(DbError):
    """Other writers changed what a script had read, again and again."""

    text = "Conflicting request to resource has been attempted. Retry to avoid conflicts."


class RangeBusy(RangeGone):
    """The physical partition is frozen for a moment while it splits."""

    sub_status = 1007
    text = "Partition key range is finishing split and is not available for reads/writes."


class Locked(DbError):
    """Something that excludes this is under way: wait until it is done."""

    text = "Another operation on this resource is in progress. Try again when it has finished."


class Unavailable(DbError):
    """The engine cannot be reached or is closed. Nothing is known to be lost."""

    text = (
        "Service is currently unavailable. "
        "More info: https://aka.ms/cosmosdb-tsg-service-unavailable"
    )


class WriteUncertain(Unavailable):
    """The commit itself failed: the write may or may not be there after a restart."""

    text = "The write could not be confirmed. Read the item again before you retry."


class OutOfTime(Unavailable):
    """The operation ran to its deadline."""

    text = "The request did not complete within the time it may take. Narrow it, or ask in pages."


class Abandoned(OutOfTime):
    """The client no longer waits for the answer."""

    text = "The client has left."


class ScriptTimedOut(OutOfTime):
    """The script ran to the end of its time. Nothing it did was kept."""

    text = (
        "The script did not complete within the time it may take, so its transaction was rolled "
        "back. Do less in one call, and go on where it ended."
    )


class SnapshotExpired(Unavailable):
    """A read held its snapshot too long. Old snapshots keep dead pages alive, so they are ended."""

    text = "The read took too long on one snapshot. Read less at once, in pages."


# --- the place is wrong: an operator has to act -------------------------------------------------


class StorageFull(DbError):
    text = "The data folder is full. Free some space, or raise the size limit of the store."


class ReadOnlyStore(DbError):
    text = "The data folder can't be written."


class FormatMismatch(DbError):
    """The data was written by another version, or is not ours, or is damaged."""

    text = "The data folder has a format this version can't open."


class DataDamaged(FormatMismatch):
    """Bytes on disk are not those that were written: a checksum does not agree. They are never
    served; `armillary doctor` names all of them."""

    text = "The stored data is damaged. Run `armillary doctor`, then restore a backup."
