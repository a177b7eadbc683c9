"""What a test makes all workers do: faults to answer with, and a clock that is ahead or stands
still.

    catalog   controls → ControlRecord                    what is true, changed by commands
    cells     faults: version or 0, clock: milliseconds   what every request looks at

The cells are a small mapped file in the data folder, so that a look costs some nanoseconds and all
workers see a change at once. On PostgreSQL each server has cells of its own and compares them with
the catalog at most every half second. The record is kept over restarts: time must not go back under
data that was written ahead of it.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from armillary.clock import put_ahead
from armillary.encoding.records import converter, decoder
from armillary.engine.base import CATALOG_SPACE, Command, Engine, Handler, Reader, Writer
from armillary.engine.lmdb.turnstile import FileLock
from armillary.errors import BadInput, DbError
from armillary.limits import CLOCK_AHEAD_MS_MAX, CONTROLS_POLL_MS

CONTROLS: Final = b"\xd1"
FILE_NAME: Final = "controls.bin"
LOCK_NAME: Final = "controls.lock"
CELLS: Final = 8
TOLD_SECONDS: Final = 0.25  # within which a request that has to look has done so
FAULTS, AHEAD_MS, WRITE_REGION = 0, 1, 2


@dataclass(frozen=True, slots=True)
class FaultRecord:
    effect: str
    """delay, 429, 410 or 503"""
    operation: str | None = None
    """None: any."""
    container: str | None = None
    """`container` or `database/container`; None: any."""
    value: int | None = None
    """Of a delay and of 429: milliseconds. Of 410: the sub-status."""
    times: int | None = None
    """How often it still strikes; None: always."""


@dataclass(frozen=True, slots=True)
class ControlRecord:
    version: int = 0
    faults: tuple[FaultRecord, ...] = ()
    ahead_ms: int = 0
    stopped_ms: int = 0
    """The time at which the clock is stopped; 0: it goes."""
    write_region: str = ""
    """Which region takes the writes, after a failover; empty: the first by priority."""
    restores: int = 0
    """Snapshots taken up again so far: each must go on above all others."""


decode_controls = decoder(ControlRecord)
_fault_of = converter(FaultRecord)


def read_controls(reader: Reader) -> ControlRecord:
    row = reader.get(CONTROLS)
    return ControlRecord() if row is None else decode_controls(row)


def save_controls(tx: Writer, record: ControlRecord) -> bytes:
    row = msgspec.json.encode(replace(record, version=record.version + 1))
    tx.put(CONTROLS, row)
    return row


# --- commands -----------------------------------------------------------------------------------


def _set_faults(tx: Writer, faults: list[dict[str, object]]) -> None:
    found = tuple(_fault_of(one) for one in faults)
    save_controls(tx, replace(read_controls(tx), faults=found))


def _take_fault(tx: Writer, fault: dict[str, object]) -> bool:
    """Let it strike once more. False: others had its last."""
    record = read_controls(tx)
    wanted = replace(_fault_of(fault), times=None)
    for at, one in enumerate(record.faults):
        if one.times is not None and replace(one, times=None) == wanted:
            left = (replace(one, times=one.times - 1),) if one.times > 1 else ()
            faults = (*record.faults[:at], *left, *record.faults[at + 1 :])
            save_controls(tx, replace(record, faults=faults))
            return True
    return False


def _advance(tx: Writer, advance_ms: int) -> None:
    record = read_controls(tx)
    ahead_ms = record.ahead_ms + advance_ms
    if ahead_ms > CLOCK_AHEAD_MS_MAX:
        raise BadInput(f"The clock can be {CLOCK_AHEAD_MS_MAX} ms ahead at most.")
    stopped_ms = record.stopped_ms and record.stopped_ms + advance_ms
    save_controls(tx, replace(record, ahead_ms=ahead_ms, stopped_ms=stopped_ms))


def _stop(tx: Writer, own_ms: int) -> None:
    """`own_ms`: the time as it would be."""
    record = read_controls(tx)
    if not record.stopped_ms:
        save_controls(tx, replace(record, stopped_ms=own_ms + record.ahead_ms))


def _go(tx: Writer, own_ms: int) -> None:
    """Go on from where it stands, or from where it would be by now: never back."""
    record = read_controls(tx)
    if record.stopped_ms:
        ahead_ms = max(record.ahead_ms, record.stopped_ms - own_ms)
        save_controls(tx, replace(record, ahead_ms=ahead_ms, stopped_ms=0))


def _set_write_region(tx: Writer, name: str) -> None:
    save_controls(tx, replace(read_controls(tx), write_region=name))


def _reset(tx: Writer, data: None) -> None:
    save_controls(tx, replace(read_controls(tx), faults=(), ahead_ms=0, stopped_ms=0))


HANDLERS: dict[str, Handler] = {
    "controls.set_faults": Handler(_set_faults),
    "controls.take_fault": Handler(_take_fault),
    "controls.advance": Handler(_advance),
    "controls.stop": Handler(_stop),
    "controls.go": Handler(_go),
    "controls.set_write_region": Handler(_set_write_region),
    "controls.reset": Handler(_reset),
}


# --- cells ----------------------------------------------------------------------------------------


class SharedControls:
    """The controls as one process knows them. `folder`: where the workers share their cells.
    `polls`: other servers may change them, so look at the catalog now and then."""

    def __init__(self, engine: Engine, folder: Path | None = None, *, polls: bool = False) -> None:
        self._engine = engine
        self.folder = folder
        self.polls = polls
        self._lock = threading.Lock()
        self._file_lock: FileLock | None = None
        self._map: mmap.mmap | None = None
        if folder is None:
            raw = memoryview(bytearray(8 * CELLS))
        else:
            self._file_lock = FileLock(folder / LOCK_NAME)
            self._map = _mapped(folder / FILE_NAME)
            raw = memoryview(self._map)
        self.cells = raw.cast("q")
        self._known = ControlRecord()
        self._known_region = (0, "")
        self._looked_at = 0.0
        self._told_at = 0.0
        self.sync()
        self.own_clock = engine.clock
        """The clock as it would be: clients sign by that one."""
        engine.clock = put_ahead(engine.clock, self.cells[AHEAD_MS : AHEAD_MS + 1])

    @property
    def record(self) -> ControlRecord:
        with self._engine.read(CATALOG_SPACE) as reader:
            return read_controls(reader)

    def faults(self) -> tuple[FaultRecord, ...]:
        """As of the version in the cells."""
        known = self._known
        if known.version != self.cells[FAULTS]:
            known = self._known = self.record
        return known.faults

    def write_region(self) -> str:
        """As of the version in the cells; empty: it was not changed."""
        version = self.cells[WRITE_REGION]
        if not version:
            return ""
        known = self._known_region
        if known[0] != version:
            record = self.record
            known = self._known_region = (version, record.write_region)
        return known[1]

    def set_write_region(self, name: str) -> None:
        self._run("controls.set_write_region", name)
        self.sync()

    def take(self, fault: FaultRecord) -> bool:
        """Whether it strikes now."""
        if fault.times is None:
            return True
        struck = bool(self._run("controls.take_fault", msgspec.to_builtins(fault)))
        self.sync()
        return struck

    def set_faults(self, faults: list[FaultRecord]) -> None:
        self._run("controls.set_faults", msgspec.to_builtins(faults))
        self.sync()

    def advance(self, advance_ms: int) -> None:
        self._run("controls.advance", advance_ms)
        self.sync()

    def stop(self, stopped: bool) -> None:
        """The clock is stopped, for all, until it is advanced; or goes on."""
        self._run("controls.stop" if stopped else "controls.go", self.own_clock.now_ms())
        self.sync()

    def reset(self) -> None:
        self._run("controls.reset", None)
        self.sync()

    @property
    def is_due(self) -> bool:
        """Whether a request has to `poll`, in a thread: one of those that ask for a while."""
        now = time.monotonic()
        if now - self._looked_at < CONTROLS_POLL_MS / 1000 or now - self._told_at < TOLD_SECONDS:
            return False
        self._told_at = now
        return True

    def poll(self) -> None:
        """Where our cells have no other writer. Without the database the last known controls hold:
        a request that needs it hears of that by itself."""
        now = time.monotonic()
        if now - self._looked_at >= CONTROLS_POLL_MS / 1000:
            self._looked_at = now
            with suppress(DbError):
                self.sync()

    def sync(self) -> None:
        """The cells as the catalog says. Read under the lock: the last one has the newest."""
        with self._lock:
            if self._file_lock is not None:
                self._file_lock.take()
            try:
                record = self.record
                self.cells[AHEAD_MS] = -record.stopped_ms or record.ahead_ms
                self.cells[WRITE_REGION] = record.version if record.write_region else 0
                self.cells[FAULTS] = record.version if record.faults else 0
            finally:
                if self._file_lock is not None:
                    self._file_lock.free()

    def close(self) -> None:
        self._engine.clock = self.own_clock
        if self._file_lock is not None:
            self._file_lock.close()
            self._file_lock = None

    def _run(self, name: str, data: object) -> object:
        return self._engine.run(CATALOG_SPACE, Command(name, data))


def _mapped(path: Path) -> mmap.mmap:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if os.fstat(handle).st_size < 8 * CELLS:
            os.pwrite(handle, bytes(8 * CELLS), 0)  # not a hole: on a full disk that would kill us
        return mmap.mmap(handle, 8 * CELLS)
    finally:
        os.close(handle)
