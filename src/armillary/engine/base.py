"""The engine interface: ordered bytes with transactions. Nothing here knows items, partitions or
request units.

    caller ──Command(name, data)──▶ submit(space) ──▶ writer ──▶ one commit for a group ──▶ Future
    caller ──read(space)──▶ Reader: meta first, then get / get_many / get_via / scan in one snapshot

A *space* is a key space with its own transactions; no transaction spans two. Every space has one
`meta` row under `META_KEY`. It is the fence: every transaction, read or write, has it in its own
snapshot before anything else, so whoever holds a stale picture of the world finds out before
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
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from armillary.clock import Clock

Durability: TypeAlias = Literal["full", "relaxed"]
Row: TypeAlias = tuple[bytes, bytes]

META_KEY = b"\x00"
CATALOG_SPACE = 0


class SpaceGone(Exception):
    """The space does not exist (never created, or dropped by a split). Control flow, not for
    users.
    """


class Reader(Protocol):
    """One snapshot of one space. Valid inside its `with` block, in the thread that opened it."""

    meta: bytes
    """The fence row, read when the transaction began."""

    def get(self, key: bytes) -> bytes | None: ...

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

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


class Writer(Reader, Protocol):
    """A write transaction in one space. Sees its own writes."""

    def put(self, key: bytes, value: bytes) -> None: ...

    def put_many(self, rows: Iterable[Row]) -> None: ...

    def delete(self, key: bytes) -> bool:
        """True if the key was there."""
        ...

    def delete_many(self, keys: Iterable[bytes]) -> None:
        """Delete without asking what was there: on PostgreSQL asking costs a round trip each."""
        ...

    def nested(self) -> AbstractContextManager[None]:
        """A scope that is undone alone when its block raises."""
        ...


@dataclass(frozen=True, slots=True)
class Command:
    """A write, as data: None, bool, int, float, str, bytes, and lists, tuples and dicts of them."""

    name: str
    data: Any


def _no_keys(data: Any) -> Sequence[bytes]:
    return ()


def _no_vias(data: Any) -> Sequence[Row]:
    return ()


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
    frees: bool = False
    """It gives room back, so it runs on what is kept in reserve when a store is full."""


Handlers: TypeAlias = Mapping[str, Handler]


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
        trip.
        """
        ...

    def read_few(
        self, space: int, start: bytes, end: bytes, limit: int, tail: int, prefix: bytes
    ) -> tuple[bytes, list[bytes]] | None:
        """(meta, values), in one snapshot: the last `tail` bytes of each key from `start` to `end`,
        put after `prefix`, are keys; their values in ascending order, empty where there is none.
        None: there are `limit` keys or more, or the engine does not know a short way; then read.
        """
        ...

    def submit(self, space: int, command: Command) -> Future[Any]:
        """Queue a command. The future ends after the commit is durable, or with the error that
        refused it.
        """
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

    def backup(self, target: Path) -> None:
        """A consistent copy into the empty or absent folder `target`, while reads and writes go
        on.
        """
        ...

    def close(self) -> None:
        """Finish what is queued, then let go. Idempotent."""
        ...
