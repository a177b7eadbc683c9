"""The numbers that scripts know errors by: `err.number`, compared with `ErrorCodes`.

They are part of the language of scripts, on every protocol and in process alike, and look like HTTP
statuses because the service's library took them from there. What a client is answered is decided in
`api/errors.py`.
"""

from __future__ import annotations

from typing import Final

from armillary.errors import (
    Conflict,
    ContainerClosed,
    ContainerFull,
    DbError,
    NotFound,
    OutOfTime,
    PartitionKeyFull,
    PreconditionFailed,
    Stale,
    StorageFull,
    Throttled,
    TooLarge,
    Unavailable,
)

BAD_REQUEST: Final = 400
NUMBERS: Final[dict[type[DbError], int]] = {
    NotFound: 404,
    Conflict: 409,
    PreconditionFailed: 412,
    TooLarge: 413,
    PartitionKeyFull: 403,
    ContainerClosed: 403,
    ContainerFull: 403,
    StorageFull: 403,
    Throttled: 429,
    Stale: 449,
    OutOfTime: 408,
    Unavailable: 503,
}


def number_of(error: DbError) -> int:
    return next((NUMBERS[kind] for kind in type(error).__mro__ if kind in NUMBERS), BAD_REQUEST)
