"""What LMDB says, in our words: the one table, and the two cases that are more than a word.

A panic means that LMDB could not write its meta page and no longer knows its own state; the only
safe way on is a new process. A failed commit is uncertain unless it is known that nothing of it
reached the meta page.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import lmdb

from armillary.errors import (
    BadInput,
    DbError,
    FormatMismatch,
    ReadOnlyStore,
    StorageFull,
    Unavailable,
    WriteUncertain,
)

EXIT_PANIC = 70  # EX_SOFTWARE of sysexits.h: a supervisor restarts us

_DAMAGED = "The data is damaged: {}. Restore a backup."
_CLOSED = "The engine is closed, or the snapshot has ended: {}."

WORDS: dict[type[lmdb.Error], tuple[type[DbError], str]] = {
    lmdb.MapFullError: (StorageFull, "The store reached its size limit: {}. Raise its map size."),
    lmdb.DiskError: (StorageFull, "The disk is full: {}."),
    lmdb.TxnFullError: (StorageFull, "One transaction changes too much: {}."),
    lmdb.BadValsizeError: (BadInput, "A key or value has a size the engine can't hold: {}."),
    lmdb.CorruptedError: (FormatMismatch, _DAMAGED),
    lmdb.PageNotFoundError: (FormatMismatch, _DAMAGED),
    lmdb.InvalidError: (FormatMismatch, "The data file is not one of ours, or damaged: {}."),
    lmdb.VersionMismatchError: (FormatMismatch, "The data file has another LMDB version: {}."),
    lmdb.IncompatibleError: (FormatMismatch, _DAMAGED),
    lmdb.PageFullError: (FormatMismatch, _DAMAGED),
    lmdb.CursorFullError: (FormatMismatch, _DAMAGED),
    lmdb.ReadonlyError: (ReadOnlyStore, "The data folder can't be written: {}."),
    lmdb.ReadersFullError: (Unavailable, "Too many reads at once over all processes: {}."),
    lmdb.MapResizedError: (Unavailable, "Another process opened the store larger; reopen: {}."),
    lmdb.MemoryError: (Unavailable, "Not enough memory or address space for the store: {}."),
    lmdb.LockError: (Unavailable, "The store is locked: {}."),
    lmdb.PanicError: (WriteUncertain, "The store lost its own state: {}. Restart the process."),
    lmdb.BadDbiError: (Unavailable, _CLOSED),
    lmdb.BadTxnError: (Unavailable, _CLOSED),
    lmdb.Error: (Unavailable, "The store reported an error: {}."),
}

if hasattr(lmdb, "ProblemError"):  # only builds that carry LMDB 1.0 know it
    WORDS[lmdb.ProblemError] = (FormatMismatch, _DAMAGED)


def translate(error: lmdb.Error) -> DbError:
    for kind in type(error).__mro__:
        if kind in WORDS:
            word, text = WORDS[kind]
            return word(text.format(error))
    raise AssertionError(f"{error!r} is not an lmdb.Error") from error


def uncertain(error: lmdb.Error) -> WriteUncertain:
    return WriteUncertain(
        f"The commit failed: {error}. The write may or may not be there; read before you retry."
    )


def end_process(error: BaseException) -> NoReturn:
    """Not sys.exit: that would only end the writer thread, and run code on a broken store."""
    sys.stderr.write(f"armillary: the store can't go on and this process ends: {error}\n")
    sys.stderr.flush()
    os._exit(EXIT_PANIC)
