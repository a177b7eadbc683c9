"""Budgets in a memory-mapped file: fixed slots, one lock each.

    0   "ARMLEDGR" version:u32 slots:u32          64 bytes
    64  key+1:u64 │ ru balance bank used:f64 second:u64 crc32:u32 │ 12 unused     64 bytes a slot

A key lives in one of `LEDGER_PROBES_MAX` slots from the place its hash names. A slot that was once
taken is never free again, so looking may end at the first free one; when all are taken, the one
that was quiet for longest changes its owner.

Processes die at any instruction. A lock of `fcntl` is then let go by the kernel (a lock in shared
memory would not be), and a half-written slot is recognised by its checksum. It covers the key as
well, as the seed: a slot that changed its owner looks half-written to a process that remembers it.
Reading therefore needs no lock; only who writes takes it.

`fcntl` locks belong to the process, and closing any handle of the file drops them all. So a file is
opened once per process, and threads exclude each other by a lock of their own.
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from armillary.errors import FormatMismatch, StorageFull
from armillary.limits import LEDGER_PROBES_MAX, LEDGER_SLOTS
from armillary.partition.budgets.admission import BudgetState

if sys.platform != "win32":
    import fcntl

    def lock(handle: int, start: int) -> None:
        fcntl.lockf(handle, fcntl.LOCK_EX, 1, start)

    def unlock(handle: int, start: int) -> None:
        fcntl.lockf(handle, fcntl.LOCK_UN, 1, start)

else:

    def lock(handle: int, start: int) -> None:
        """There is no such lock: one process only."""

    def unlock(handle: int, start: int) -> None:
        """See `lock`."""


MAGIC: Final = b"ARMLEDGR"
VERSION: Final = 1
SLOT_BYTES: Final = 64
HEADER: Final = struct.Struct("<8sII")
KEY: Final = struct.Struct("<Q")
STATE: Final = struct.Struct("<ddddQ")
CRC: Final = struct.Struct("<I")
BODY_START: Final = KEY.size
BODY_END: Final = KEY.size + STATE.size + CRC.size
#: What CRC-32 gives for any text followed by its own CRC-32, whatever the seed.
RESIDUE: Final = 0x2144DF1C

log = logging.getLogger("armillary.partition")

_files: dict[str, SlotFile] = {}
_files_lock = threading.Lock()


def open_slots(path: Path, slots: int = LEDGER_SLOTS) -> SlotFile:
    """The file of this process for `path`, made if absent. Close it as often as it was opened."""
    name = os.path.realpath(path)
    with _files_lock:
        file = _files.get(name)
        if file is None:
            file = _files[name] = SlotFile(name, slots)
        file.opened += 1
        return file


class SlotFile:
    """Not made directly: see `open_slots`."""

    def __init__(self, name: str, slots: int) -> None:
        self.name = name
        self.opened = 0
        self.lock = threading.Lock()
        """Held by the thread that locks a slot."""
        while not self._open(slots):
            os.close(self.handle)  # another file lies there now

    def _open(self, slots: int) -> bool:
        """False: the file was damaged, and a new one has taken its place."""
        self.handle = os.open(self.name, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            with self.locked(0):
                if not os.path.samestat(os.fstat(self.handle), os.stat(self.name)):
                    return False  # replaced while we waited for the lock
                if self._is_damaged():
                    _replace(self.name, slots)
                    return False
                self.slots = self._prepared(slots)
            self.map = mmap.mmap(self.handle, SLOT_BYTES * (1 + self.slots))
        except BaseException:
            os.close(self.handle)
            raise
        return True

    def _is_damaged(self) -> bool:
        """Not the file of another version, which a server may be using."""
        head = os.pread(self.handle, HEADER.size, 0)
        if head.strip(b"\0") == b"":
            return False
        magic, version, found = HEADER.unpack(head.ljust(HEADER.size, b"\0"))
        size = os.fstat(self.handle).st_size
        is_whole = size == SLOT_BYTES * (1 + int(found))
        return bool(magic != MAGIC or (version == VERSION and not is_whole))

    def _prepared(self, slots: int) -> int:
        """Check the stamp, or write it. It is written last: without it nothing is in the file."""
        head = os.pread(self.handle, HEADER.size, 0)
        if head.strip(b"\0") == b"":
            _reserve(self.handle, SLOT_BYTES * (1 + slots))
            os.pwrite(self.handle, HEADER.pack(MAGIC, VERSION, slots), 0)
            return slots
        _, version, found = HEADER.unpack(head)
        if version != VERSION:
            raise FormatMismatch(
                f"{self.name} is no ledger of this version. It holds nothing that lasts: remove it "
                "when no server runs on this folder."
            )
        return int(found)

    def close(self) -> None:
        with _files_lock:
            self.opened -= 1
            if self.opened == 0:
                del _files[self.name]
                self.map.close()
                os.close(self.handle)

    # --- locks --------------------------------------------------------------------------------

    @contextmanager
    def locked(self, start: int) -> Iterator[None]:
        """The slot at `start` (0: who lives where) is ours. Never take 0 inside another."""
        lock(self.handle, start)
        try:
            yield
        finally:
            unlock(self.handle, start)

    # --- slots --------------------------------------------------------------------------------

    def read(self, start: int, seed: int) -> BudgetState | None:
        """None: half-written, being written, or somebody else's."""
        body = self.map[start + BODY_START : start + BODY_END]
        if zlib.crc32(body, seed) != RESIDUE:
            return None
        return BudgetState._make(STATE.unpack_from(body))

    def write(self, start: int, seed: int, state: BudgetState) -> None:
        body = STATE.pack(*state)
        self.map[start + BODY_START : start + BODY_END] = body + CRC.pack(zlib.crc32(body, seed))

    def owner(self, start: int) -> int:
        """The key that lives there, or -1."""
        (stored,) = KEY.unpack_from(self.map, start)
        return int(stored) - 1

    def find(self, key: int, fresh: BudgetState) -> int:
        """Where `key` lives; it moves in with `fresh` if it lives nowhere yet."""
        start = self._home(key)
        if start is None:
            with self.lock, self.locked(0):
                start = self._home(key)  # somebody else may have been quicker
                if start is None:
                    start = self._vacant(key)
                    with self.locked(start):
                        KEY.pack_into(self.map, start, key + 1)
                        self.write(start, seed_of(key), fresh)
        return start

    def _places(self, key: int) -> Iterator[int]:
        first = zlib.crc32(KEY.pack(key)) % self.slots
        for probe in range(min(LEDGER_PROBES_MAX, self.slots)):
            yield SLOT_BYTES * (1 + (first + probe) % self.slots)

    def _home(self, key: int) -> int | None:
        for start in self._places(key):
            owner = self.owner(start)
            if owner == key:
                return start
            if owner < 0:
                return None
        return None

    def _vacant(self, key: int) -> int:
        """A free place for `key`, or the one that was quiet for longest."""
        stalest, since = 0, -1
        for start in self._places(key):
            owner = self.owner(start)
            if owner < 0:
                return start
            state = self.read(start, seed_of(owner))
            second = state.second if state is not None else 0
            if since < 0 or second < since:
                stalest, since = start, second
        return stalest


def _replace(name: str, slots: int) -> None:
    """A new file, not a repaired one: a process with the old one mapped goes on with it. Budgets
    are about this second, so nothing that lasts is lost."""
    log.warning("%s is damaged and is made anew", name)
    made = f"{name}.{os.getpid()}.new"
    handle = os.open(made, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _reserve(handle, SLOT_BYTES * (1 + slots))
        os.pwrite(handle, HEADER.pack(MAGIC, VERSION, slots), 0)
        os.replace(made, name)
    finally:
        os.close(handle)


def seed_of(key: int) -> int:
    return zlib.crc32(KEY.pack(key))


def _reserve(handle: int, size: int) -> None:
    """Real blocks, not a hole: writing to a hole of a full disk through a map kills the process."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, size)
        else:
            os.pwrite(handle, bytes(size), 0)
    except OSError as error:
        raise StorageFull(f"There is no room for a ledger of {size} bytes.") from error
