"""The redo log: what groups have written since the last commit of LMDB.

    group ──▶ record ──fdatasync──▶ head (base, end) ──▶ callers are answered
    many groups ──▶ one commit of LMDB, with a new mark ──▶ head (base, 0): the log begins again

A commit of LMDB writes pages in as many places as a group has keys, and copies the branches above
them each time. A record lies in one place. So a group is made durable here, and dozens of
commands go to LMDB in one commit, where they share pages, branches and a run.

    file      head page (4 KB) ‖ record ‖ record …         of a fixed size, written before
    head      base(8) end(8) mark(8) open(1) boot(16)     not durable: of this machine's processes
    record    checksum(4) length(4) mark(8) body
    body      msgpack  [[space, [key, …], [value or nil, …]], …]

`base` is the number of the LMDB transaction that the records lie on top of, `mark` a random number
that this transaction has in a row of its own (`MARK_KEY`). A record counts while its mark is the
one in LMDB: it can't be taken for another state of the data, whatever happens to either file. The
head says how far the records go, for readers (`tail.py`), and whether somebody has the log open:
who writes next and finds it so knows that he died. What is left after a loss of power is found by
reading records from the first on: those that are whole, in their order. After a mere death the head
knows better (`boot` says that the system has not been started since): what lies behind its end was
not acknowledged, and readers have seen that it is not there.

Only who holds the folder's lock `writing` appends, begins again or ends.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec
from mmh3 import mmh3_x64_128_digest as murmur_128

from armillary.limits import REDO_LOG_BYTES, REDO_RECORD_BYTES_MAX

if sys.platform == "darwin":
    import fcntl

REDO_NAME: Final = "redo.log"
MARK_KEY: Final = b"redo"
MARKED_AT_KEY: Final = b"redo at"
"""The number of the transaction that has set the mark."""
MARK_BYTES: Final = 8
UNKNOWN_BOOT: Final = bytes(16)
HEAD_PAGE: Final = 4_096

#: The space, its keys, and their values; None: deleted.
Part: TypeAlias = tuple[int, Sequence[bytes], Sequence[bytes | None]]

#: As the machine has them: a number is one load then, which is never half of another.
_HEAD: Final = struct.Struct("@QQ8s")
_BASE_AT, END_AT = 0, 1  # among the numbers of the head
_MARK_AT: Final = slice(16, 24)
_RECORD: Final = struct.Struct("<4sI8s")
_OPEN_AT: Final = 24  # in the head page
BOOT_AT: Final = slice(32, 48)
_FILLED_AT: Final = 64
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[int, list[bytes], list[bytes | None]]]).decode


class RedoLog:
    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / REDO_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if os.fstat(self._file).st_size < HEAD_PAGE + REDO_LOG_BYTES:
            os.ftruncate(self._file, HEAD_PAGE + REDO_LOG_BYTES)
        self._map = mmap.mmap(self._file, HEAD_PAGE)
        # One store each. `Struct.pack_into` fills with zeros first: other processes would see for
        # some nanoseconds that there are no records. Readers look at END_AT.
        self.numbers = memoryview(self._map).cast("Q")

    # --- for readers ------------------------------------------------------------------------------

    # HOT: twice per read.
    def head(self) -> tuple[int, int, bytes]:
        """Base, end, mark. Without an end there are no records."""
        return _HEAD.unpack_from(self._map)

    def records(self, start: int, end: int, mark: bytes) -> Iterator[list[Part]] | None:
        """Of these bytes. None: something else lies there by now."""
        data = os.pread(self._file, end - start, HEAD_PAGE + start)
        found = list(_whole_records(data, mark))
        return iter([parts for parts, _ in found]) if found and found[-1][1] == len(data) else None

    # --- for the one who writes -------------------------------------------------------------------

    def begin(self, base: int, mark: bytes) -> None:
        """From the first record on, on top of this transaction."""
        if not self._map[_FILLED_AT]:
            # Written before, so that no append changes the size or the extents of the file.
            os.pwrite(self._file, bytes(REDO_LOG_BYTES), HEAD_PAGE)
            self._map[_FILLED_AT] = 1
            os.fsync(self._file)
        self._map[BOOT_AT] = boot()
        self._map[_OPEN_AT] = 1
        self.numbers[END_AT] = 0
        self.numbers[_BASE_AT] = base
        self._map[_MARK_AT] = mark

    @property
    def is_open(self) -> bool:
        """For who has just got the right to write: the one before has died."""
        return self._map[_OPEN_AT] != 0

    def append(self, parts: Sequence[Part]) -> bool:
        """Durable on return. False: there is no room, and nothing that counts has happened. After
        an OSError nobody knows whether the record is on the disk."""
        _, end, mark = self.head()
        body = _encode(parts)
        size = _RECORD.size + len(body)
        if len(body) > REDO_RECORD_BYTES_MAX or end + size > REDO_LOG_BYTES:
            return False
        checksum = murmur_128(mark + body)[:4]
        record = _RECORD.pack(checksum, len(body), mark) + body
        try:
            if os.pwrite(self._file, record, HEAD_PAGE + end) < size:
                return False
        except OSError:  # a full disk, of a file system that writes nothing in its old place
            return False
        sync(self._file)
        self.numbers[END_AT] = end + size
        return True

    def end(self) -> None:
        """All records are in LMDB, or there are none that count."""
        self.numbers[END_AT] = 0
        with suppress(OSError):  # a backup of the data from before would have their mark
            os.pwrite(self._file, bytes(_RECORD.size), HEAD_PAGE)
        self._map[_OPEN_AT] = 0

    def left(self, mark: bytes | None) -> list[list[Part]]:
        """The records that are not in LMDB, whose mark this is; none while it has no mark."""
        if mark is None or os.pread(self._file, MARK_BYTES, HEAD_PAGE + 8) != mark:
            return []
        size = REDO_LOG_BYTES
        if self.is_open and self._map[BOOT_AT] == boot() != UNKNOWN_BOOT:
            size = self.head()[1]
        data = os.pread(self._file, size, HEAD_PAGE)
        return [parts for parts, _ in _whole_records(data, mark)]

    def hide(self) -> None:
        """No reader sees records from now on. Who writes next still knows that they are there."""
        self.numbers[END_AT] = 0

    def close(self) -> None:
        os.close(self._file)  # the map goes with the last reader


@cache
def boot() -> bytes:
    """Another one each time that the system is started."""
    try:
        return UUID(Path("/proc/sys/kernel/random/boot_id").read_text().strip()).bytes
    except (OSError, ValueError):
        return UNKNOWN_BOOT


def sync(file: int) -> None:
    """What was written is on the disk when this returns."""
    if sys.platform == "darwin":
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(file)


def _whole_records(data: bytes, mark: bytes) -> Iterator[tuple[list[Any], int]]:
    """Each with where it ends."""
    at = 0
    while at + _RECORD.size <= len(data):
        checksum, length, own = _RECORD.unpack_from(data, at)
        body = data[at + _RECORD.size : at + _RECORD.size + length]
        if own != mark or len(body) < length or murmur_128(mark + body)[:4] != checksum:
            return
        at += _RECORD.size + length
        yield _decode(body), at
