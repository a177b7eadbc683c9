"""The overlay against a plain dict: what a group writes must be exactly what its commands did."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armillary.engine.base import META_KEY, Command, Handler, Writer
from armillary.engine.blocks import EMPTY
from armillary.engine.groups import Job
from armillary.engine.memory import MemoryReader
from armillary.engine.overlay import OverlayWriter, run_jobs, split_joined, tell
from armillary.errors import Conflict
from armillary.limits import KEY_BYTES_MAX

KEYS = st.sampled_from([bytes([1, n]) for n in range(12)])
VALUES = st.binary(max_size=3)
ROWS = st.dictionaries(KEYS, VALUES)

Operation = tuple[str, Any]
WRITES = st.one_of(
    st.tuples(st.just("put"), st.tuples(KEYS, VALUES)),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.just("delete_many"), st.lists(KEYS, max_size=3)),
    st.tuples(st.just("put_many"), st.lists(st.tuples(KEYS, VALUES), max_size=3)),
    st.tuples(st.just("put_joined"), st.lists(st.binary(min_size=2, max_size=2), max_size=3)),
)
OPERATIONS = st.recursive(
    WRITES,
    lambda inner: st.tuples(
        st.sampled_from(["nested", "nested_fails"]), st.lists(inner, max_size=4)
    ),
    max_leaves=12,
)


#: Joined rows are new ones.
NUMBERS = count()


class _Stop(Exception):
    pass


def _over(rows: dict[bytes, bytes]) -> OverlayWriter:
    return OverlayWriter(MemoryReader(EMPTY.apply({META_KEY: b"m", **rows})))


def _perform(writer: OverlayWriter, model: dict[bytes, bytes], operation: Operation) -> None:
    match operation:
        case ("put", (key, value)):
            writer.put(key, value)
            model[key] = value
        case ("put_many", rows):
            writer.put_many(rows)
            model.update(rows)
        case ("put_joined", values):
            keys = [b"\x01\x05" + next(NUMBERS).to_bytes(4) for _ in values]
            writer.put_joined([*map(bytes.__add__, keys, values)], 2)
            model.update(zip(keys, values, strict=True))
        case ("delete", key):
            assert writer.delete(key) is (model.pop(key, None) is not None)
        case ("delete_many", keys):
            writer.delete_many(keys)
            for key in keys:
                model.pop(key, None)
        case ("nested", inner):
            with writer.nested():
                for step in inner:
                    _perform(writer, model, step)
        case ("nested_fails", inner):
            with pytest.raises(_Stop), writer.nested():
                scratch = dict(model)
                for step in inner:
                    _perform(writer, scratch, step)
                raise _Stop
        case _:
            raise AssertionError(operation)


def _assert_same(writer: OverlayWriter, model: dict[bytes, bytes]) -> None:
    keys = [bytes([1, n]) for n in range(12)]
    assert [writer.get(key) for key in keys] == [model.get(key) for key in keys]
    assert writer.get_many(keys) == [model.get(key) for key in keys]


@given(ROWS, st.lists(OPERATIONS, max_size=10), KEYS, KEYS, st.none() | st.integers(0, 5))
@settings(max_examples=200)
def test_reads_see_the_writes_as_a_dict_would(
    rows: dict[bytes, bytes],
    operations: list[Operation],
    start: bytes,
    end: bytes,
    limit: int | None,
) -> None:
    writer, model = _over(rows), dict(rows)
    for operation in operations:
        _perform(writer, model, operation)
        _assert_same(writer, model)
        expected = sorted((k, v) for k, v in model.items() if start <= k < end)
        assert list(writer.scan(start, end, limit=limit)) == expected[:limit]
        backward = list(writer.scan(start, end, reverse=True, limit=limit))
        assert backward == expected[::-1][:limit]

    after = dict(rows)
    puts, deletes = writer.puts_and_deletes()
    after.update(puts)
    for key in deletes:
        after.pop(key, None)
    assert after == model
    assert puts == sorted(puts)
    assert deletes == sorted(deletes)
    assert writer.changes() == {**dict(puts), **dict.fromkeys(deletes)}


@given(ROWS, st.lists(OPERATIONS, max_size=10))
@settings(max_examples=200)
def test_changes_apart_are_the_same_when_nothing_looked(
    rows: dict[bytes, bytes], operations: list[Operation]
) -> None:
    """Joined rows stay lists until a row of their kind is read or changed."""
    writer, model = _over(rows), dict(rows)
    for operation in operations:
        _perform(writer, model, operation)
    changes, joined = writer.changes_apart()
    after: dict[bytes, bytes | None] = {**rows, **changes}
    for more, width in joined:
        after |= split_joined(more, width)
    assert {key: value for key, value in after.items() if value is not None} == model
    assert {**rows, **writer.changes()} == {**rows, **after}


def test_joined_rows_stay_apart_from_those_of_other_kinds() -> None:
    writer = _over({b"\x21a": b"1"})
    writer.put_joined([b"\x51av", b"\x51bv"], 1)
    writer.put_many({b"\x11a": b"d", b"\x21b": b"2"})
    assert writer.get(b"\x21b") == b"2"
    assert writer.get_many([b"\x21a", b"\x11a"]) == [b"1", b"d"]
    assert writer.get_via(b"\x21a", b"\x11") == (b"1", None)
    assert writer.changes_apart()[1] == [([b"\x51av", b"\x51bv"], 1)]
    assert writer.get(b"\x51b") == b"v"
    assert writer.changes_apart()[1] == []


@pytest.mark.parametrize(
    ("rows", "width"),
    [
        ([b"\x51a", b"\x61a"], 0),
        ([b"\x00a"], 0),
        ([b"\xf1a"], 0),
        ([b"\x51"], 1),
        ([b"\x51" * (KEY_BYTES_MAX + 2)], 1),
    ],
)
def test_joined_rows_that_no_engine_could_hold_are_refused(rows: list[bytes], width: int) -> None:
    writer = OverlayWriter(MemoryReader(EMPTY.apply({META_KEY: b"m"})), own_from=0xF0)
    with pytest.raises(ValueError, match="kind"):
        writer.put_joined(rows, width)
    assert writer.changes() == {}


def test_via_looks_for_each_of_its_keys_in_the_overlay_first() -> None:
    writer = _over({b"\x21a": b"1", b"\x111": b"old", b"\x112": b"two"})
    assert writer.get_via(b"\x21a", b"\x11") == (b"1", b"old")
    writer.put(b"\x111", b"new")
    assert writer.get_via(b"\x21a", b"\x11") == (b"1", b"new")
    writer.delete(b"\x111")
    assert writer.get_via(b"\x21a", b"\x11") == (b"1", None)
    writer.put(b"\x21a", b"2")
    assert writer.get_via(b"\x21a", b"\x11") == (b"2", b"two")
    writer.delete(b"\x21a")
    assert writer.get_via(b"\x21a", b"\x11") is None
    assert writer.get_via(b"\x21b", b"\x11") is None


@pytest.mark.parametrize("size", [0, KEY_BYTES_MAX + 1])
def test_a_key_that_another_engine_could_not_hold_is_refused(size: int) -> None:
    writer = _over({})
    with pytest.raises(ValueError, match="allowed 1 to"):
        writer.put(b"k" * size, b"")
    writer.put(b"k" * KEY_BYTES_MAX, b"")


def test_the_next_command_sees_the_fence_its_neighbour_wrote_unless_undone() -> None:
    writer = _over({})
    writer.put(META_KEY, b"m2")
    assert writer.meta == b"m2"
    with pytest.raises(_Stop), writer.nested():
        writer.put(META_KEY, b"m3")
        assert writer.meta == b"m3"
        raise _Stop
    assert writer.meta == writer.get(META_KEY) == b"m2"


def test_the_fence_cannot_be_deleted_from_inside() -> None:
    writer = _over({})
    for delete in (writer.delete, lambda key: writer.delete_many([key])):
        with pytest.raises(ValueError, match="fence"):
            delete(META_KEY)
    assert writer.changes() == {}


def _job(run: Callable[[Writer, Any], Any]) -> tuple[Job, dict[str, Handler]]:
    name = f"command-{id(run)}"
    return Job(1, Command(name, None), Future()), {name: Handler(run)}


def _put_then_refuse(writer: Writer, data: Any) -> None:
    writer.put(b"\x01b", b"lost")
    raise Conflict


def _put(writer: Writer, data: Any) -> bytes | None:
    writer.put(b"\x01a", b"kept")
    return writer.get(b"\x01b")


def test_a_refused_command_is_undone_alone_and_no_caller_is_answered_before_the_commit() -> None:
    (refused, first), (kept, second) = _job(_put_then_refuse), _job(_put)
    unknown = Job(1, Command("nobody knows", None), Future())
    writer = _over({})
    outcomes = run_jobs(writer, [refused, unknown, kept], {**first, **second})
    assert writer.changes() == {b"\x01a": b"kept"}
    assert not any(job.future.done() for job in (refused, kept, unknown))
    tell(outcomes)
    futures = [cast(Future[Any], job.future) for job in (refused, unknown, kept)]
    assert isinstance(futures[0].exception(), Conflict)
    assert isinstance(futures[1].exception(), KeyError)
    assert futures[2].result() is None


def test_a_failure_of_the_engine_ends_the_whole_group() -> None:
    def lose_connection(writer: Writer, data: Any) -> None:
        raise ConnectionError

    job, handlers = _job(lose_connection)
    with pytest.raises(ConnectionError):
        run_jobs(_over({}), [job], handlers, fatal=(ConnectionError,))
    assert not job.future.done()
