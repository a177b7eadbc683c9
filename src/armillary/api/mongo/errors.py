"""What a client gets when a command fails: a code, its name and a sentence.

Errors of the language and of arguments are raised here with their code, because the codes are part
of the language. Errors of the store get theirs in `api/errors.py`.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from armillary.api.errors import mongo_code
from armillary.errors import DbError, Throttled

log = logging.getLogger("armillary.mongo")

NAMES: Final = {
    1: "InternalError",
    2: "BadValue",
    4: "NoSuchKey",
    9: "FailedToParse",
    11: "UserNotFound",
    13: "Unauthorized",
    14: "TypeMismatch",
    15: "Overflow",
    16: "InvalidLength",
    17: "ProtocolError",
    18: "AuthenticationFailed",
    20: "IllegalOperation",
    22: "InvalidBSON",
    26: "NamespaceNotFound",
    27: "IndexNotFound",
    28: "PathNotViable",
    40: "ConflictingUpdateOperators",
    43: "CursorNotFound",
    48: "NamespaceExists",
    50: "MaxTimeMSExpired",
    52: "DollarPrefixedFieldName",
    53: "InvalidIdField",
    54: "NotSingleValueField",
    56: "EmptyFieldName",
    57: "DottedFieldName",
    59: "CommandNotFound",
    61: "ShardKeyNotFound",
    66: "ImmutableField",
    67: "CannotCreateIndex",
    68: "IndexAlreadyExists",
    72: "InvalidOptions",
    73: "InvalidNamespace",
    79: "UnknownReplWriteConcern",
    85: "IndexOptionsConflict",
    86: "IndexKeySpecsConflict",
    96: "OperationFailed",
    112: "WriteConflict",
    115: "CommandNotSupported",
    121: "DocumentValidationFailure",
    146: "ExceededMemoryLimit",
    166: "CommandNotSupportedOnView",
    168: "InvalidPipelineOperator",
    197: "InvalidIndexSpecificationOption",
    225: "TransactionTooOld",
    238: "NotImplemented",
    241: "ConversionFailure",
    251: "NoSuchTransaction",
    256: "TransactionCommitted",
    260: "InvalidResumeToken",
    263: "OperationNotSupportedInTransaction",
    280: "ChangeStreamFatalError",
    286: "ChangeStreamHistoryLost",
    352: "UnsupportedOpQueryCommand",
    10334: "BSONObjectTooLarge",
    11000: "DuplicateKey",
    16500: "RequestRateTooLarge",
}

TRANSIENT: Final = "TransientTransactionError"


class MongoError(Exception):
    """One command, or one statement of a bulk, failed."""

    def __init__(
        self, code: int, message: str, *, labels: tuple[str, ...] = (), **facts: Any
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.labels = labels
        self.facts = facts

    @property
    def name(self) -> str:
        return NAMES.get(self.code, f"Location{self.code}")

    def reply(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "ok": 0.0,
            "errmsg": self.message,
            "code": self.code,
            "codeName": self.name,
            "$err": self.message,
            **self.facts,
        }
        if self.labels:
            made["errorLabels"] = list(self.labels)
        return made

    def entry(self, index: int) -> dict[str, Any]:
        """One of `writeErrors`."""
        return {"index": index, "code": self.code, "errmsg": self.message, **self.facts}


def failed(name: str) -> dict[str, Any]:
    """What a client hears of a mistake of ours. In an `except` block: the log gets the rest."""
    log.exception("mongo command %s failed", name)
    return MongoError(1, "An internal error occurred; the server's log has it.").reply()


def bad_value(message: str) -> MongoError:
    return MongoError(2, message)


def failed_to_parse(message: str) -> MongoError:
    return MongoError(9, message)


def wrong_type(field: str, actual: str, *expected: str) -> MongoError:
    if len(expected) == 1:
        wanted = f"expected type '{expected[0]}'"
    else:
        wanted = "expected types '[" + ", ".join(expected) + "]'"
    return MongoError(14, f"BSON field '{field}' is the wrong type '{actual}', {wanted}")


def unknown_field(field: str) -> MongoError:
    return MongoError(40415, f"BSON field '{field}' is an unknown field.")


def missing_field(field: str) -> MongoError:
    return MongoError(40414, f"BSON field '{field}' is missing but a required field")


def mongo_error(error: DbError) -> MongoError:
    """An error of the store, as a client gets it."""
    code = mongo_code(error)
    if isinstance(error, Throttled):
        wait = int(error.facts.get("retry_after_ms", 0))
        return MongoError(
            code,
            f"Error={code}, RetryAfterMs={wait}, Details='Response status code does not indicate "
            f"success: TooManyRequests (429); Substatus: {error.sub_status}; "
            f"Reason: ({error.message})",
        )
    return MongoError(code, error.message)
