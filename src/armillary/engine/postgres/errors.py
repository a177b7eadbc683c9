"""PostgreSQL's errors in our words: the border. No psycopg exception goes further up.

The table is by SQLSTATE, then by its class (first two characters). What is in neither is either a
lost connection (no SQLSTATE, an OperationalError) or a wrong statement, which is our bug and is
raised as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import psycopg

from armillary.errors import DbError, FormatMismatch, ReadOnlyStore, StorageFull, Unavailable


@dataclass(frozen=True, slots=True)
class Kind:
    raises: type[DbError]
    text: str
    again: bool = False
    """Trying again at once may help, and nothing has been written."""


LOST: Final = Kind(Unavailable, "The connection to the database was lost.", again=True)
_BUSY: Final = Kind(
    Unavailable, "The database could not run this transaction alongside others.", again=True
)

BY_STATE: Final[dict[str, Kind]] = {
    # `fence_guard` divides by zero when the fence is not the one that was taken; nothing else does.
    "22012": Kind(Unavailable, "The lock on the fence was lost before the write.", again=True),
    "53100": Kind(StorageFull, "The disk of the database is full. Free some space there."),
    "53200": Kind(Unavailable, "The database is out of memory."),
    "53300": Kind(Unavailable, "The database accepts no more connections."),
    "53400": Kind(Unavailable, "A configured limit of the database was reached."),
    "40001": _BUSY,
    "40P01": _BUSY,
    "55P03": _BUSY,
    "57014": Kind(Unavailable, "The database took too long and the statement was cancelled."),
    "57P01": LOST,
    "57P02": LOST,
    "57P03": Kind(Unavailable, "The database is starting or stopping.", again=True),
    "57P05": LOST,
    "25P03": LOST,  # idle in transaction for too long
    "25P04": LOST,  # transaction timeout
    "25006": Kind(ReadOnlyStore, "The database is read-only (a standby?)."),
    "42501": Kind(ReadOnlyStore, "The database user lacks a privilege."),
    "3D000": Kind(Unavailable, "The database does not exist."),
    "3F000": Kind(FormatMismatch, "The schema does not exist."),
    "42P01": Kind(FormatMismatch, "The tables are not there: dropped while in use?"),
    "42703": Kind(FormatMismatch, "The tables are not ours."),
    "XX001": Kind(FormatMismatch, "The database says its data is damaged."),
    "XX002": Kind(FormatMismatch, "The database says an index is damaged."),
}

BY_CLASS: Final[dict[str, Kind]] = {
    "08": LOST,
    "28": Kind(Unavailable, "The database refused the user or the password."),
    "53": Kind(Unavailable, "The database is short of resources."),
    "57": Kind(Unavailable, "The database was asked to stop."),
    "58": Kind(Unavailable, "The database has trouble with its files."),
}


def kind_of(error: psycopg.Error) -> Kind | None:
    """None means that the statement itself was wrong."""
    state = error.sqlstate
    if state is None:
        return LOST if isinstance(error, psycopg.OperationalError) else None
    return BY_STATE.get(state) or BY_CLASS.get(state[:2])


def translated(error: psycopg.Error) -> Exception:
    """What to raise from `error`."""
    kind = kind_of(error)
    if kind is None:
        return AssertionError(f"a wrong statement ({error.sqlstate}): {error}")
    return kind.raises(f"{kind.text} ({_detail(error)})", sqlstate=error.sqlstate)


def _detail(error: psycopg.Error) -> str:
    lines = (error.diag.message_primary or str(error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__
