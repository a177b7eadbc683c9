"""Counters in a folder: one file per process, and a reader adds them up.

    counters/4711-9f2c.bin    a page: "ARMCOUNT" version:u32 pid:u32, then blocks of 20,480 bytes
    counters/4711-9f2c.keys   the heaviest keys, as of a few seconds ago; replaced whole

A file is locked by its living owner. One that can be locked was left by a process that ended or was
killed; what it counted stays part of the picture for an hour and is then removed by the next
process that starts. So totals are those since the oldest process that is still counted.
"""

from __future__ import annotations

import mmap
import os
import secrets
import struct
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from armillary.errors import StorageFull
from armillary.limits import COUNTER_FILES_MAX, COUNTER_KEYS_SECONDS
from armillary.partition.usage.consumption import PartitionHeat, combine, refusals
from armillary.partition.usage.counters import BLOCK_BYTES, Recorder, Sketches
from armillary.partition.usage.space_saving import Heavy

if sys.platform != "win32":
    import fcntl

COUNTERS_NAME: Final = "counters"
MAGIC: Final = b"ARMCOUNT"
VERSION: Final = 1
HEADER: Final = struct.Struct("<8sII")
HEADER_BYTES: Final = 4096
KEPT_SECONDS: Final = 3600
FIRST_BLOCKS: Final = 4

Published: TypeAlias = tuple[int, dict[int, list[tuple[int, float, list[Heavy[bytes]]]]]]
_KEYS: Final[msgspec.msgpack.Decoder[Published]] = msgspec.msgpack.Decoder(Published)


class FileBoard:
    """The file of this process. `folder` is the data folder."""

    def __init__(self, folder: Path, now_ms: int) -> None:
        folder = folder / COUNTERS_NAME
        folder.mkdir(exist_ok=True)
        remove_stale(folder, now_ms)
        self.path = folder / f"{os.getpid()}-{secrets.token_hex(4)}.bin"
        self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        if sys.platform != "win32":
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        self._blocks = self._room = 0
        self._maps: list[mmap.mmap] = []
        os.pwrite(self._handle, HEADER.pack(MAGIC, VERSION, os.getpid()), 0)

    def block(self) -> memoryview:
        if self._blocks == self._room:
            self._grow(max(FIRST_BLOCKS, 2 * self._room))
        start = HEADER_BYTES + BLOCK_BYTES * self._blocks
        self._blocks += 1
        return memoryview(self._maps[-1])[start : start + BLOCK_BYTES]

    def _grow(self, blocks: int) -> None:
        """Another map of the whole file; the blocks given out before stay in the older one."""
        size = HEADER_BYTES + BLOCK_BYTES * blocks
        try:
            if hasattr(os, "posix_fallocate"):  # a hole, on a full disk, would kill the process
                os.posix_fallocate(self._handle, 0, size)
            else:
                os.ftruncate(self._handle, size)
        except OSError as error:
            raise StorageFull(f"There is no room for counters of {size} bytes.") from error
        self._maps.append(mmap.mmap(self._handle, size))
        self._room = blocks

    def publish(self, sketches: Sketches, now_ms: int) -> None:
        target = self.path.with_suffix(".keys")
        written = target.with_suffix(".new")
        try:
            written.write_bytes(msgspec.msgpack.encode((now_ms, sketches)))
            written.replace(target)
        except OSError as error:
            written.unlink(missing_ok=True)
            raise StorageFull("There is no room for the statistics of keys.") from error

    def close(self) -> None:
        """What was counted stays."""
        if self._handle >= 0:
            for mapped in self._maps:
                mapped.close()
            os.close(self._handle)
            self._handle = -1


def open_recorder(folder: Path, now_ms: int) -> Recorder:
    """Counts into the data folder. `Recorder()` counts in memory."""
    return Recorder(FileBoard(folder, now_ms))


def read_statistics(
    folder: Path, now_ms: int, ru: Mapping[int, float] | None = None
) -> dict[int, PartitionHeat]:
    """Of all processes on the data folder. With `ru` (the budget of each partition), only of the
    partitions it names; without, of all there are, and nothing is normalised.
    """
    paths = sorted((folder / COUNTERS_NAME).glob("*.bin"))
    blocks = (
        block
        for path in paths
        for block in _blocks(path)
        if ru is None or block[:8].cast("Q")[0] - 1 in ru
    )
    return combine(blocks, [_keys(path, now_ms) for path in paths], now_ms, ru or {})


def read_refusals(folder: Path, partitions: Collection[int]) -> dict[int, int]:
    """429s of these partitions, by all processes on the data folder."""
    paths = sorted((folder / COUNTERS_NAME).glob("*.bin"))
    return refusals((block for path in paths for block in _blocks(path)), partitions)


def _blocks(path: Path) -> Iterator[memoryview]:
    try:
        data = memoryview(path.read_bytes())
    except FileNotFoundError:
        return  # removed since it was listed
    if bytes(data[: HEADER.size - 4]) != HEADER.pack(MAGIC, VERSION, 0)[:-4]:
        return  # being made, or of another version
    for start in range(HEADER_BYTES, len(data) - BLOCK_BYTES + 1, BLOCK_BYTES):
        yield data[start : start + BLOCK_BYTES]


def _keys(path: Path, now_ms: int) -> Sketches:
    try:
        data = path.with_suffix(".keys").read_bytes()
        published: Published = _KEYS.decode(data)
    except (FileNotFoundError, msgspec.DecodeError):
        return {}
    written_ms, sketches = published
    if now_ms - written_ms > 2000 * COUNTER_KEYS_SECONDS:
        return {}  # its owner has ended: old keys are not heat
    return sketches


# --- those who ended ------------------------------------------------------------------------------


def remove_stale(folder: Path, now_ms: int) -> None:
    """Files of dead processes that counted nothing for an hour, and the oldest beyond the limit."""
    dead: list[tuple[float, Path]] = []
    for path in folder.glob("*.bin"):
        try:
            if not _is_alive(path):
                dead.append((_last_second(path), path))
        except FileNotFoundError:
            continue  # another process removes them too
    for number, (second, path) in enumerate(sorted(dead, reverse=True)):
        if number >= COUNTER_FILES_MAX or now_ms / 1000 - second > KEPT_SECONDS:
            path.unlink(missing_ok=True)
            path.with_suffix(".keys").unlink(missing_ok=True)


def _last_second(path: Path) -> float:
    """A file without blocks may be one that is being made, and not locked yet."""
    newest = [block[8:16].cast("Q")[0] for block in _blocks(path)]
    return float(max(newest, default=0)) or path.stat().st_mtime


def _is_alive(path: Path) -> bool:
    if sys.platform == "win32":
        return False  # an open file can't be removed there
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
