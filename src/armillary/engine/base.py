"""The engine interface: ordered bytes with transactions. Nothing here knows items, partitions or
request units.

    caller ──Command(name, data)──▶ submit(space) ──▶ writer ──▶ one commit for a group ──▶ Future
    caller ──read(space)──▶ Reader: meta first, then get / get_many / get_via / scan in one snapshot

A *space* is a key space with its own transactions; no transaction spans two. Every space has one
`meta` row under `META_KEY`. It is the fence: every transaction, read or write, has it in its own
snapshot before anything else, so a caller with a stale route or definition finds out before
touching data. The engine fetches that row but does not understand it.

Writes are *commands*, not closures: a name and plain data, looked up in a table of handlers. So the
same command can run in a writer thread or in another process, in a group with others, and twice (a
handler is pure: it touches only its transaction and may be run again after an abort).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec

from armillary.clock import Clock
from armillary.engine.health import Health, PoolCounts
from armillary.errors import BadInput, NotSupported

if TYPE_CHECKING:
    from armillary.engine.replicas import Replica

Durability: TypeAlias = Literal["full", "relaxed"]
Row: TypeAlias = tuple[bytes, bytes]
Rows: TypeAlias = Iterable[Row] | dict[bytes, bytes]

META_KEY = b"\x00"
CATALOG_SPACE = 0
ENGINE_BITS = 0xC0  # of the first two bytes of a value, where it says so
LIST_ROWS_FIRST = 16  # of `Reader.scan_lists`: few may be all that is wanted


class SpaceGone(Exception):
    """The space does not exist (never created, or dropped by a split). Control flow, not for
    users.
    """


Leap: TypeAlias = Callable[[Callable[[int, "Command"], Any]], Any]


class Reader(Protocol):
    """One snapshot of one space. Valid inside its `with` block, in the thread that opened it."""

    meta: bytes
    """The fence row, read when the transaction began."""

    def get(self, key: bytes) -> bytes | None: ...

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    def get_behind(self, prefix: bytes, tails: Sequence[bytes]) -> list[bytes | None]:
        """`get_many` of `prefix` with each of `tails` behind it. The two high bits of the first
        two bytes of each value may be the engine's: `unmarked` takes them off.
        """
        ...

    def get_via(self, key: bytes, prefix: bytes) -> tuple[bytes, bytes | None] | None:
        """The value under `key`, and the value under `prefix + that value`. None if the first is
        absent.
        """
        ...

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[Row]:
        """Rows with start <= key < end, ascending, or descending when `reverse`. Take a list before
        writing.
        """
        ...

    def scan_lists(self, start: bytes, end: bytes, rows_max: int) -> Iterator[list[Row]]:
        """`scan` for a caller that wants many rows: in lists of at most `rows_max`, the first of
        them short. The two high bits of the first two bytes of each value may be the engine's.
        """
        ...

    def tails(self, prefixes: Sequence[bytes], size: int, limit: int) -> set[bytes] | None:
        """The `size` bytes behind the prefix of every key that begins with one of `prefixes`. There
        may be others among them, which follow no such key: the caller looks at what they name.
        None: more than `limit`.
        """
        ...


class Writer(Reader, Protocol):
    """A write transaction in one space. Sees its own writes."""

    def put(self, key: bytes, value: bytes) -> None: ...

    def put_many(self, rows: Rows) -> None: ...

    def delete(self, key: bytes) -> bool:
        """True if the key was there."""
        ...

    def delete_many(self, keys: Iterable[bytes]) -> None:
        """Delete without asking what was there: on PostgreSQL asking costs a round trip each."""
        ...

    def change_many(self, changes: Mapping[bytes, bytes | None]) -> None:
        """`put_many` and, where there is None, `delete_many`."""
        ...

    def put_joined(self, rows: list[bytes], width: int) -> None:
        """Many rows of one kind that are not there yet, best in the order of their keys: key and
        value in one, of which the last `width` bytes are the value. The list is the engine's from
        now on."""
        ...

    def nested(self) -> AbstractContextManager[None]:
        """A scope that is undone alone when its block raises."""
        ...


class Command(msgspec.Struct, frozen=True):
    """A write, as data: None, bool, int, float, str, bytes, and lists, tuples and dicts of them. A
    Struct, because a frozen dataclass takes ten times as long to make."""

    name: str
    data: Any


def _no_keys(data: Any) -> Sequence[bytes]:
    return ()


def _no_vias(data: Any) -> Sequence[Row]:
    return ()


def _never(data: Any) -> bool:
    return False


def always(data: Any) -> bool:
    """For `Handler.frees`."""
    return True


@dataclass(frozen=True, slots=True)
class Handler:
    """What runs a command, and which keys it is going to read.

    `keys` and `vias` are hints: an engine with round trips fetches them for the whole group at
    once. A handler may read anything else too, one round trip each. A handler raises a DbError to
    refuse; if it does so before its first write, its neighbours in the group are not disturbed.
    """

    run: Callable[[Writer, Any], Any]
    keys: Callable[[Any], Sequence[bytes]] = field(default=_no_keys)
    vias: Callable[[Any], Sequence[Row]] = field(default=_no_vias)
    frees: Callable[[Any], bool] = field(default=_never)
    """Whether a command with this data gives room back: it then runs on what is kept in reserve
    when a store is full."""
    run_many: Callable[[Writer, Sequence[Any]], Sequence[Any]] | None = None
    """Several commands of one group that follow each other in one space, in order: for each its
    result, or the DbError that refused it and of which nothing remains. What they share is read and
    written once. If it raises, nothing has happened and `run` is called for each."""


Handlers: TypeAlias = Mapping[str, Handler]


class Pin(Protocol):
    """A snapshot of every space, until it is closed."""

    def read(self, space: int) -> AbstractContextManager[Reader]:
        """Raises SpaceGone. Not from two threads at once."""
        ...

    def close(self) -> None: ...


class Engine(Protocol):
    """All methods may be called from any thread."""

    unclean_open: bool
    """The last writes that somebody saw may be missing: it is a backup that was taken up again, or
    was not closed properly under relaxed durability."""

    @property
    def never_waits(self) -> bool:
        """Whether `submit` would return at once now: an event loop may call it."""
        ...

    clock: Clock
    """What `now_ms` reads. May be replaced by one that is ahead of it."""

    def read(self, space: int) -> AbstractContextManager[Reader]:
        """A fresh snapshot. Raises SpaceGone."""
        ...

    def read_via(
        self, space: int, key: bytes, prefix: bytes
    ) -> tuple[bytes, bytes | None, bytes | None]:
        """(meta, value under key, value under prefix + that value) in one snapshot and one round
        trip. The two high bits of the first two bytes of the last may be the engine's.
        """
        ...

    def read_few(
        self, space: int, start: bytes, end: bytes, limit: int, tail: int, prefix: bytes
    ) -> tuple[bytes, list[bytes]]:
        """(meta, values) in one snapshot: the last `tail` bytes of each key from `start` to `end`,
        put after `prefix`, are keys; their values in ascending order, empty where there is none.
        The two high bits of the first two bytes of each are the engine's. Of `limit` keys or more
        nothing but their number: values are empty. Raises SpaceGone.
        """
        ...

    def read_via_soon(self, space: int, key: bytes, prefix: bytes) -> Future[Any] | None:
        """`read_via` for an event loop (`serve_loop`), which does not wait. None: not here, or not
        now; then `read_via` in a thread."""
        ...

    def read_few_soon(
        self, space: int, start: bytes, end: bytes, limit: int, tail: int, prefix: bytes
    ) -> Future[Any] | None:
        """`read_few` in the same way. The result is None where that is too much for an event loop;
        the engine may have a lower limit."""
        ...

    fences_together: bool
    """Whether `fences` is one round trip where each read would be one: the data is in a database
    that several servers may share."""

    def fences(self, spaces: Sequence[int] | None = None) -> dict[int, bytes]:
        """The meta rows of these spaces, or of all; without those that are gone."""
        ...

    def pin(self) -> Pin:
        """The state of all spaces as of now. Raises NotSupported."""
        ...

    def submit(self, space: int, command: Command) -> Future[Any]:
        """Queue a command. The future ends after the commit is durable, or with the error that
        refused it.
        """
        ...

    def submit_now(self, space: int, command: Command) -> Future[Any]:
        """`submit` for a thread that waits for it next, of a small command: an engine may commit
        one that is alone in this thread, and return when that is done."""
        ...

    def submit_soon(self, space: int, command: Command) -> Future[Any]:
        """`submit` for an event loop, which does not wait: an engine may send all commands of a
        turn of the loop together."""
        ...

    def serve_loop(self, loop: Any | None) -> None:
        """The calling thread runs this event loop: what begins there may go to the writer together,
        or to a database without a thread that waits. None: it ends."""
        ...

    def run(self, space: int, command: Command) -> Any:
        """submit and wait."""
        ...

    def create_space(self, space: int, rows: Iterable[Row]) -> None:
        """Make a space with these rows, META_KEY among them, durable on return. Raises Conflict if
        it exists.
        """
        ...

    def drop_space(self, space: int) -> None:
        """Remove a space and everything in it. Nothing happens if it is gone already."""
        ...

    def spaces(self) -> list[int]:
        """Every space there is, ascending."""
        ...

    def now_ms(self) -> int:
        """The engine's idea of wall time: the database's clock when several servers share one
        database.
        """
        ...

    def check(self, space: int) -> list[str]:
        """What is damaged in the engine's own structures of a space, one sentence each."""
        ...

    def health(self) -> Health | None:
        """None: there is no server that could be away."""
        ...

    @property
    def retries(self) -> int:
        """Transactions that were run again."""
        ...

    def pools(self) -> Sequence[PoolCounts]:
        """Connections of this process."""
        ...

    def nodes(self, spaces: Sequence[int]) -> dict[int, str]:
        """Which server holds each of these spaces, as host:port; without those in this process."""
        ...

    def space_choices(self, count: int) -> int:
        """How many fresh numbers `choose_spaces` wants to choose `count` from; 0: numbers say
        nothing about where a space lies, and any will do."""
        ...

    def choose_spaces(self, fresh: Sequence[int], count: int, present: Sequence[int]) -> list[int]:
        """Those of the fresh numbers that spread a container over nodes, with the spaces `present`
        that it has already."""
        ...

    def open_replica(self, region: str, url: str, *, readers_max: int) -> Replica:
        """A standby of this database to read from; close it before the engine. Raises BadInput,
        NotSupported."""
        ...

    def stop_writes(self) -> int | None:
        """Before a planned failover: the primary takes no more writes, from any server, until an
        administrator allows them. How far its log goes; None: it has none, or is out of reach."""
        ...

    @property
    def lineage(self) -> object:
        """Another one: numbers that were read before may have leapt. Hashable."""
        ...

    def follow_failovers(self, leap: Leap) -> None:
        """`leap(run)` is called when another database has taken over, before it is used: it goes on
        above all numbers that were given out, by commands that it gives to `run`."""
        ...

    def leapt(self) -> None:
        """All spaces go on above what the database before this one gave out."""
        ...

    def backup(self, target: Path) -> None:
        """A consistent copy into the empty or absent folder `target`, while reads and writes go
        on.
        """
        ...

    def close(self) -> None:
        """Finish what is queued, then let go. Idempotent."""
        ...


class EngineDefaults:
    """Parts of `Engine` that follow from others, for engines that can do no better, and those of
    engines with a server outside of this process, for engines without."""

    fences_together = False

    def read_few(
        self: Engine, space: int, start: bytes, end: bytes, limit: int, tail: int, prefix: bytes
    ) -> tuple[bytes, list[bytes]]:
        return read_few(self, space, start, end, limit, tail, prefix)

    def submit_now(self: Engine, space: int, command: Command) -> Future[Any]:
        return self.submit(space, command)

    def submit_soon(self: Engine, space: int, command: Command) -> Future[Any]:
        return self.submit(space, command)

    def serve_loop(self, loop: Any | None) -> None:
        """Nothing is sent together."""

    def read_via_soon(self, space: int, key: bytes, prefix: bytes) -> Future[Any] | None:
        return None

    def read_few_soon(
        self, space: int, start: bytes, end: bytes, limit: int, tail: int, prefix: bytes
    ) -> Future[Any] | None:
        return None

    def fences(self: Engine, spaces: Sequence[int] | None = None) -> dict[int, bytes]:
        return read_fences(self, self.spaces() if spaces is None else spaces)

    def pin(self) -> Pin:
        raise NotSupported(
            "A lag can be simulated on a folder or in memory; a PostgreSQL has real standbys "
            "([replicas])."
        )

    def check(self, space: int) -> list[str]:
        return []

    def health(self) -> Health | None:
        return None

    @property
    def retries(self) -> int:
        return 0

    def pools(self) -> Sequence[PoolCounts]:
        return ()

    def nodes(self, spaces: Sequence[int]) -> dict[int, str]:
        return {}

    def space_choices(self, count: int) -> int:
        return 0

    def choose_spaces(self, fresh: Sequence[int], count: int, present: Sequence[int]) -> list[int]:
        return list(fresh[:count])

    def open_replica(self, region: str, url: str, *, readers_max: int) -> Replica:
        raise BadInput("[replicas] are standbys of PostgreSQL, and the engine is not.")

    def stop_writes(self) -> int | None:
        return None

    @property
    def lineage(self) -> object:
        return None

    def follow_failovers(self, leap: Leap) -> None:
        """Nothing takes over from an engine in this process."""

    def leapt(self) -> None:
        """Nothing remembers who gave out the numbers."""


class Reading(Protocol):
    def read(self, space: int) -> AbstractContextManager[Reader]: ...


def read_fences(engine: Reading, spaces: Sequence[int]) -> dict[int, bytes]:
    """`Engine.fences` by a reader each."""
    found: dict[int, bytes] = {}
    for space in spaces:
        try:
            with engine.read(space) as reader:
                found[space] = reader.meta
        except SpaceGone:
            continue
    return found


def unmarked(value: bytes) -> bytes:
    """A value as it was written, without the bits of the engine in its first two bytes."""
    return bytes((value[0] & ~ENGINE_BITS, value[1] & ~ENGINE_BITS)) + value[2:]


def scanned_lists(reader: Reader, start: bytes, end: bytes, rows_max: int) -> Iterator[list[Row]]:
    """`Reader.scan_lists` by a scan."""
    rows, size = reader.scan(start, end), min(LIST_ROWS_FIRST, rows_max)
    while some := list(islice(rows, size)):
        yield some
        size = min(2 * size, rows_max)


def scanned_tails(
    reader: Reader, prefixes: Sequence[bytes], size: int, limit: int
) -> set[bytes] | None:
    """`Reader.tails` by scans; exact."""
    found: set[bytes] = set()
    for prefix in prefixes:
        at = len(prefix)
        rows = reader.scan(prefix, after(prefix), limit=limit - len(found) + 1)
        found.update(key[at : at + size] for key, _ in rows)
        if len(found) > limit:
            return None
    return found


def after(prefix: bytes) -> bytes:
    """The least key greater than every key that begins with `prefix`, which is not all FF."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes((stripped[-1] + 1,))


def read_few(
    engine: Reading, space: int, start: bytes, end: bytes, limit: int, tail: int, prefix: bytes
) -> tuple[bytes, list[bytes]]:
    """`Engine.read_few` by a reader."""
    with engine.read(space) as reader:
        found = [prefix + key[-tail:] for key, _ in reader.scan(start, end, limit=limit)]
        if len(found) == limit:
            return reader.meta, [b""] * limit
        return reader.meta, [value or b"" for value in reader.get_many(sorted(found))]
