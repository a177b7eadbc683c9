"""No transaction touches two spaces: the rule that lets a space live on any shard.

The interface gives a command no way to name another space. These tests watch that the engines keep
it so below the interface: whatever runs in one commit, each command's rows go to its own space.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import HANDLERS, LAST, command, first_rows

from armillary.engine.base import META_KEY, Engine, Reader, Writer
from armillary.engine.lmdb import commit as lmdb_commit
from armillary.engine.lmdb.engine import LmdbEngine
from armillary.engine.lmdb.write import write_changes


def test_no_method_of_a_transaction_takes_a_space() -> None:
    for protocol in (Reader, Writer):
        for name, method in inspect.getmembers(protocol, inspect.isfunction):
            assert "space" not in inspect.signature(method).parameters, f"{protocol}.{name}"


def test_rows_of_one_group_land_in_their_own_spaces(engine: Engine) -> None:
    futures = [engine.submit(1, command(("sleep", 0.05)))]
    futures += [
        engine.submit(
            space,
            command(
                ("put", b"%d:%d" % (space, number), b"x"),
                ("count_meta",),
                ("nested", [("put", b"%d:in:%d" % (space, number), b"x")], False),
                ("scan", b"", LAST, False, None),
                *([("fail", "after a write")] if number % 7 == 0 else []),
            ),
        )
        for number in range(40)
        for space in (1, 2)
    ]
    wait(futures)
    for space in (1, 2):
        with engine.read(space) as reader:
            keys = [key for key, _ in reader.scan(b"\x01", LAST)]
        assert len(keys) == 68
        assert all(key.startswith(b"%d:" % space) for key in keys)
    for index, future in enumerate(futures[1:]):
        if future.exception() is None:
            seen = [key for key, _ in future.result()[3] if key != META_KEY]
            assert all(key.startswith(b"%d:" % (1 + index % 2)) for key in seen)


class Watched:
    """A transaction of LMDB that notes which sub-databases and prefixes are used."""

    def __init__(self, inner: Any, touched: set[tuple[int, bytes]], prefix_bytes: int) -> None:
        self._inner, self._touched, self._prefix_bytes = inner, touched, prefix_bytes

    def _note(self, key: bytes, db: Any) -> None:
        self._touched.add((id(db), key[: self._prefix_bytes]))

    def get(self, key: bytes, default: Any, db: Any) -> Any:
        self._note(key, db)
        return self._inner.get(key, default, db)

    def put(self, key: bytes, value: bytes, *rest: Any) -> Any:
        self._note(key, rest[-1])
        return self._inner.put(key, value, *rest)

    def delete(self, key: bytes, value: bytes, db: Any) -> Any:
        self._note(key, db)
        return self._inner.delete(key, value, db)

    def cursor(self, db: Any) -> Any:
        return WatchedCursor(self._inner.cursor(db), db, self._note)


class WatchedCursor:
    def __init__(self, inner: Any, db: Any, note: Any) -> None:
        self._inner = inner
        self._db = db
        self._note = note

    def putmulti(self, rows: list[tuple[bytes, bytes]]) -> Any:
        for key, _ in rows:
            self._note(key, self._db)
        return self._inner.putmulti(rows)


@pytest.fixture(params=["own", "shared"])
def watched(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[LmdbEngine, list[set[tuple[int, bytes]]]]]:
    shared = request.param == "shared"
    touched: list[set[tuple[int, bytes]]] = []
    write = write_changes

    def watch(transaction: Any, *arguments: Any, **options: Any) -> bool:
        touched.append(set())
        watched = Watched(transaction, touched[-1], 4 if shared else 0)
        return write(watched, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(lmdb_commit, "write_changes", watch)
    engine = LmdbEngine(tmp_path / "data", HANDLERS, own_max=0 if shared else 10)
    for space in (1, 2, 3):
        engine.create_space(space, first_rows())
    yield engine, touched
    engine.close()


def test_each_lmdb_writer_uses_one_database_and_one_prefix(
    watched: tuple[LmdbEngine, list[set[tuple[int, bytes]]]],
) -> None:
    engine, touched = watched
    futures = [
        engine.submit(
            space,
            command(("count", b"c"), ("count_meta",), ("put", b"k", b"v"), ("delete_many", [b"l"])),
        )
        for _ in range(5)
        for space in (1, 2, 3)
    ]
    wait(futures)
    assert all(future.exception() is None for future in futures)
    engine.flush()
    assert len(touched) >= 3
    assert all(len(places) == 1 for places in touched), touched
    assert len(set.union(*touched)) == 3, "the three spaces are three places"
