"""What the sender of a command may rely on, whatever engine runs it."""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait
from typing import Any

import pytest
from tests.support.commands import LAST, Refused, command

from armillary.engine.base import META_KEY, Command, Engine, SpaceGone
from armillary.limits import KEY_BYTES_MAX


def rows_of(engine: Engine, space: int) -> list[tuple[bytes, bytes]]:
    with engine.read(space) as reader:
        return list(reader.scan(b"\x01", LAST))


def test_a_command_sees_its_own_writes(engine: Engine) -> None:
    answers = engine.run(
        1,
        command(
            ("put", b"a", b"1"),
            ("get", b"a"),
            ("put_many", [(b"b", b"2"), (b"c", b"3")]),
            ("scan", b"a", b"z", False, None),
            ("delete", b"b"),
            ("delete", b"b"),
            ("scan", b"a", b"z", True, 1),
            ("get_many", [b"a", b"b"]),
            ("via", b"a", b""),
            ("delete_many", [b"c", b"never"]),
            ("scan", b"a", b"z", False, None),
        ),
    )
    assert answers == [
        None,
        b"1",
        None,
        [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")],
        True,
        False,
        [(b"c", b"3")],
        [b"1", None],
        (b"1", None),
        None,
        [(b"a", b"1")],
    ]
    assert rows_of(engine, 1) == [(b"a", b"1")]
    assert rows_of(engine, 2) == []


def test_joined_rows_are_rows(engine: Engine) -> None:
    """In any order, also when a command of the same transaction reads or changes some."""
    engine.run(1, command(("put", b"\x51a", b"xx"), ("put", b"\x51m", b"xx")))
    rows = [b"\x51c11", b"\x51b22", b"\x51bb33"]
    more = [b"\x51" + b"d%04d" % number + b"44" for number in range(500)]
    answers = engine.run(
        1,
        command(
            ("put_joined", rows, 2),
            ("put_joined", more, 2),
            ("put_joined", [b"\x31k", b"\x31l"], 0),
            ("nested", [("put_joined", [b"\x51z99"], 2)], True),
        ),
    )
    assert answers == [None, None, None, "undone"]
    engine.run(
        1,
        command(
            ("put_joined", [b"\x51e55", b"\x51f66"], 2),
            ("get", b"\x51f"),
            ("delete", b"\x51e"),
            ("delete", b"\x51bb"),
            ("put_joined", [b"\x51ee7"], 1),
        ),
    )
    expected = {row[:-2]: row[-2:] for row in [*rows[:2], *more]}
    expected |= {b"\x51a": b"xx", b"\x51m": b"xx", b"\x31k": b"", b"\x31l": b""}
    expected |= {b"\x51f": b"66", b"\x51ee": b"7"}
    assert dict(rows_of(engine, 1)) == expected
    assert rows_of(engine, 1) == sorted(expected.items())


def test_the_fence_is_in_every_transaction_and_shows_its_own_change(engine: Engine) -> None:
    answers = engine.run(1, command(("meta",), ("count_meta",), ("meta",), ("get", META_KEY)))
    assert answers == [b"one:0", 1, b"one:1", b"one:1"]
    assert engine.run(1, command(("meta",))) == [b"one:1"]
    assert engine.run(2, command(("meta",))) == [b"two:0"]
    assert engine.read_via(1, b"x", b"y")[0] == b"one:1"


def test_the_fence_of_an_undone_scope_is_the_old_one(engine: Engine) -> None:
    answers = engine.run(1, command(("nested", [("count_meta",)], True), ("meta",)))
    assert answers == ["undone", b"one:0"]


def test_the_fence_cannot_be_deleted(engine: Engine) -> None:
    with pytest.raises(ValueError, match="fence"):
        engine.run(1, command(("delete", META_KEY)))
    assert engine.run(1, command(("meta",))) == [b"one:0"]


def test_a_key_of_the_wrong_size_is_refused_before_anything_happens(engine: Engine) -> None:
    for size in (0, KEY_BYTES_MAX + 1, 512, 5_000):
        with pytest.raises(ValueError, match="key of"):
            engine.run(1, command(("put", b"before", b"x"), ("put", b"k" * size, b"v")))
        with pytest.raises(ValueError, match="key of"):
            engine.run(1, command(("put_many", [(b"fine", b"x"), (b"k" * size, b"v")])))
        assert rows_of(engine, 1) == [], size


def test_the_longest_key_and_an_empty_and_a_large_value_are_kept(engine: Engine) -> None:
    rows = [(b"e", b""), (b"k" * KEY_BYTES_MAX, b"v"), (b"l", bytes(3 * 1024 * 1024))]
    engine.run(1, command(("put_many", rows)))
    assert rows_of(engine, 1) == rows


def test_a_scope_is_undone_alone(engine: Engine) -> None:
    answers = engine.run(
        1,
        command(
            ("put", b"a", b"1"),
            ("nested", [("put", b"a", b"2"), ("put", b"b", b"2"), ("delete", b"a")], True),
            ("get", b"a"),
            ("nested", [("put", b"c", b"3"), ("get", b"c")], False),
            ("nested", [("put", b"d", b"4"), ("nested", [("put", b"e", b"5")], True)], False),
            ("nested", [("nested", [("put", b"f", b"6")], False), ("put", b"g", b"7")], True),
            ("scan", b"a", b"z", False, None),
        ),
    )
    expected = [(b"a", b"1"), (b"c", b"3"), (b"d", b"4")]
    undone = "undone"
    assert answers == [None, undone, b"1", [None, b"3"], [None, undone], undone, expected]
    assert rows_of(engine, 1) == expected


def test_a_refused_command_changes_nothing(engine: Engine) -> None:
    with pytest.raises(Refused, match="no") as caught:
        engine.run(1, command(("put", b"a", b"1"), ("fail", "no")))
    assert caught.value.facts == {"where": "here"}
    with pytest.raises(Refused):
        engine.run(1, command(("fail", "no"), ("put", b"a", b"1")))
    with pytest.raises(ZeroDivisionError):
        engine.run(1, command(("put", b"a", b"1"), ("bug",)))
    assert rows_of(engine, 1) == []


def test_an_unknown_command_fails_alone(engine: Engine) -> None:
    with pytest.raises(KeyError):
        engine.run(1, Command("no such command", None))
    engine.run(1, command(("put", b"a", b"1")))
    assert rows_of(engine, 1) == [(b"a", b"1")]


GUILTY: list[list[Any]] = [
    [("fail", "before its first write")],
    [("put", b"bad", b"x"), ("fail", "after a write")],
    [("put", b"bad", b"x"), ("bug",)],
    [("nested", [("put", b"bad", b"x")], False), ("fail", "after a scope")],
    [("put", b"n" * 600, b"x")],
]


def test_neighbours_in_a_group_are_not_disturbed(engine: Engine) -> None:
    for turn, guilty in enumerate(GUILTY):
        # The sleeper keeps the writer busy, so that the rest gathers into one group.
        futures = [engine.submit(1, command(("sleep", 0.05)))]
        counter = b"counter%d" % turn
        for number in range(10):
            space = 1 + number % 2
            futures.append(engine.submit(space, command(("put", b"%d.%d" % (turn, number), b"v"))))
            futures.append(engine.submit(1, command(*guilty)))
            futures.append(engine.submit(space, command(("count", counter))))
        wait(futures)
        assert all(isinstance(future.exception(), Exception) for future in futures[2::3])
        counts = [future.result() for future in futures[3::3]]
        assert counts == [[1 + number // 2] for number in range(10)]
        assert all(future.exception() is None for future in futures[1::3])
    for space in (1, 2):
        keys = {b"%d.%d" % (turn, n) for turn in range(5) for n in range(10) if 1 + n % 2 == space}
        counters = {b"counter%d" % turn for turn in range(5)}
        assert {key for key, _ in rows_of(engine, space)} == keys | counters


def test_commands_of_a_space_run_in_the_order_of_submit(engine: Engine) -> None:
    futures = [
        engine.submit(1 + number % 2, command(("count", b"counter"))) for number in range(400)
    ]
    assert [future.result() for future in futures] == [[1 + number // 2] for number in range(400)]


def test_submits_of_many_threads_lose_no_update(engine: Engine) -> None:
    done: list[int] = []

    def send() -> None:
        futures = [engine.submit(1, command(("count", b"counter"))) for _ in range(50)]
        done.extend(future.result()[0] for future in futures)

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(1, 401))
    assert rows_of(engine, 1) == [(b"counter", b"400")]


def test_plain_data_comes_back_as_it_went(engine: Engine) -> None:
    data = [None, True, 2**62, -1.5, "text é", b"bytes\x00", [1, [2]], {"a": {"b": [b"c"]}}, (1, 2)]
    assert engine.run(1, command(("answer", data))) == [data]


def test_an_acknowledged_write_is_seen_by_every_later_read(engine: Engine) -> None:
    for number in range(50):
        engine.run(1, command(("put", b"k", b"%d" % number)))
        assert engine.read_via(1, b"k", b"p")[1] == b"%d" % number


def test_a_write_to_a_space_that_is_not_there_fails_alone(engine: Engine) -> None:
    futures: list[Future[Any]] = [engine.submit(1, command(("sleep", 0.02)))]
    futures += [engine.submit(space, command(("count", b"c"))) for space in (1, 99, 2)]
    wait(futures)
    assert isinstance(futures[2].exception(), SpaceGone)
    assert futures[1].result() == [1]
    assert futures[3].result() == [1]
