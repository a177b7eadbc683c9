"""Where a process counts, and whose counts it sees when it asks, by the address of the store.

    :memory:        this process alone
    a data folder   every process on it: one mapped file each (`counter_file.py`)
    PostgreSQL      every server on it: rows of a table (`counter_postgres.py`)

What is counted is in `counters.py`, how it is added up in `consumption.py`.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol

from armillary.engine.address import Address
from armillary.partition.usage.consumption import PartitionHeat, combine, refusals
from armillary.partition.usage.counters import Recorder
from armillary.partition.usage.file import open_recorder, read_refusals, read_statistics


class Statistics(Protocol):
    @property
    def recorder(self) -> Recorder:
        """Of this process."""
        ...

    @property
    def is_shared(self) -> bool:
        """Others see what `recorder.flush` shows them."""
        ...

    def show(self, now_ms: int) -> None:
        """Let others see what this process has counted, now or a little later. Never fails, and
        never waits: requests call it."""
        ...

    def read(self, now_ms: int, ru: Mapping[int, float]) -> dict[int, PartitionHeat]:
        """Of the partitions in `ru`, each with its budget: the use of them by all processes, our
        own included. One without a budget (0) is not normalised."""
        ...

    def refusals(self, now_ms: int, partitions: Collection[int]) -> dict[int, int]:
        """Requests of these partitions that were answered 429. Cheaper than `read`."""
        ...


class LocalStatistics:
    is_shared = False

    def __init__(self) -> None:
        self.recorder = Recorder()

    def show(self, now_ms: int) -> None:
        """Only this process looks."""

    def read(self, now_ms: int, ru: Mapping[int, float]) -> dict[int, PartitionHeat]:
        found = combine(self.recorder.blocks(), [self.recorder.sketches(now_ms)], now_ms, ru)
        return {partition: heat for partition, heat in found.items() if partition in ru}

    def refusals(self, now_ms: int, partitions: Collection[int]) -> dict[int, int]:
        return refusals(self.recorder.blocks(), partitions)


class FolderStatistics:
    is_shared = True

    def __init__(self, folder: Path, now_ms: int) -> None:
        self.recorder = open_recorder(folder, now_ms)
        self._folder = folder

    def show(self, now_ms: int) -> None:
        self.recorder.flush(now_ms)

    def read(self, now_ms: int, ru: Mapping[int, float]) -> dict[int, PartitionHeat]:
        self.recorder.flush(now_ms)
        return read_statistics(self._folder, now_ms, ru)

    def refusals(self, now_ms: int, partitions: Collection[int]) -> dict[int, int]:
        return read_refusals(self._folder, partitions)


def open_statistics(address: Address, now_ms: int) -> Statistics:
    """`now_ms` is the engine's, as in everything that servers share."""
    if address.kind == "memory":
        return LocalStatistics()
    if address.kind == "postgres":
        from armillary.partition.usage.postgres import PostgresStatistics

        return PostgresStatistics(address.text, now_ms)
    return FolderStatistics(Path(address.text), now_ms)
