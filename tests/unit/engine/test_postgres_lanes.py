"""Reads and writes on an event loop end as those in threads do: the same answers, refusals and
doubts, whatever happens to the connection."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from tests.support.counting import COUNTING, LOG, LOG_END, log_key
from tests.support.pg_cluster import servers
from tests.support.postgres import fresh_url, open_postgres, server_url
from tests.support.waiting import until

from armillary import steps
from armillary.engine.base import META_KEY, Command, Handler, SpaceGone, Writer
from armillary.engine.postgres.engine import PostgresEngine
from armillary.engine.postgres.loop.lane import Lane, array
from armillary.engine.postgres.loop.lanes import BEGIN, ROLLBACK
from armillary.errors import Unavailable, WriteUncertain
from armillary.server.loops import new_loop

pytestmark = pytest.mark.postgres


def _scan_then_add(writer: Writer, data: bytes) -> int:
    assert list(writer.scan(LOG, LOG_END, limit=1)) is not None
    return int(COUNTING["add"].run(writer, data))


def _copy_all(writer: Writer, data: list[bytes]) -> list[bytes | None]:
    """Reads in three rounds what it did not announce."""
    first = writer.get(data[0])
    rest = writer.get_many(data[1:])
    writer.put(b"\x66copied", b"".join(one or b"-" for one in (first, *rest)))
    return [first, *rest]


#: Backends that have answered and wait for the rest of a transaction.
IN_TRANSACTION = "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'"

HANDLERS = {
    **COUNTING,
    "scan_then_add": Handler(_scan_then_add),
    "copy_all": Handler(_copy_all),
}


@pytest.fixture
def engine() -> Iterator[PostgresEngine]:
    made = open_postgres(HANDLERS)
    made.create_space(7, [(META_KEY, b"0"), (b"\x50a", b"rid"), (b"\x60rid", b"value")])
    yield made
    made.close()


def on_loop(engine: PostgresEngine, work: Callable[[], Awaitable[Any]]) -> Any:
    """`work` on a loop that the engine serves, when its connections are there."""
    loop = new_loop()

    async def run() -> Any:
        engine.serve_loop(loop)
        while not engine.never_waits or engine.read_via_soon(7, b"\x50a", b"\x60") is None:
            await asyncio.sleep(0.001)
        try:
            return await work()
        finally:
            engine.serve_loop(None)

    try:
        return loop.run_until_complete(run())
    finally:
        loop.close()


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    steps.listen(listener)
    try:
        yield
    finally:
        steps.listen(None)


async def write(engine: PostgresEngine, *names: str, space: int = 7) -> list[Any]:
    """In one turn, so in one group."""
    futures = [
        asyncio.wrap_future(engine.submit_soon(space, Command(name, b"x"))) for name in names
    ]
    return await asyncio.gather(*futures, return_exceptions=True)


def backend(engine: PostgresEngine, question: str) -> list[Any]:
    """What an administrator sees and does."""
    with psycopg.connect(engine._address.url, autocommit=True) as connection:
        return connection.execute(question.encode()).fetchall()


def test_reads_under_way_together_are_answered_in_their_order(engine: PostgresEngine) -> None:
    async def work() -> list[Any]:
        asked = [
            engine.read_via_soon(7, key, b"\x60") for key in (b"\x50a", b"\x50none", b"\x50a") * 20
        ]
        return [await asyncio.wrap_future(one) for one in asked if one is not None]

    found = on_loop(engine, work)
    assert found == [(b"0", b"rid", b"value"), (b"0", None, None), (b"0", b"rid", b"value")] * 20


def test_a_space_that_is_gone_is_told_to_readers_and_writers(engine: PostgresEngine) -> None:
    async def work() -> tuple[Any, Any]:
        read = engine.read_via_soon(8, b"\x50a", b"\x60")
        assert read is not None
        (written,) = await write(engine, "add", space=8)
        (after,) = await write(engine, "add")  # the connection is as good as before
        assert after == 1
        return await asyncio.gather(asyncio.wrap_future(read), return_exceptions=True), written

    (read,), written = on_loop(engine, work)
    assert isinstance(read, SpaceGone)
    assert isinstance(written, SpaceGone)


def test_a_group_is_one_commit_and_a_refusal_undoes_one_command(engine: PostgresEngine) -> None:
    async def work() -> list[Any]:
        return await write(engine, "add", "refuse_after_write", "add")

    first, refused, second = on_loop(engine, work)
    assert (first, second) == (1, 2)
    assert isinstance(refused, ValueError)
    with engine.read(7) as reader:
        assert [key for key, _ in reader.scan(LOG, LOG_END)] == [log_key(1), log_key(2)]
        assert reader.get(b"\x66spoiled") is None
        assert reader.meta == b"2"


def test_what_was_not_announced_is_fetched_and_the_group_run_again(engine: PostgresEngine) -> None:
    async def work() -> Any:
        asked = Command("copy_all", [b"\x50a", b"\x60rid", b"\x60none"])
        return await asyncio.wrap_future(engine.submit_soon(7, asked))

    assert on_loop(engine, work) == [b"rid", b"value", None]
    with engine.read(7) as reader:
        assert reader.get(b"\x66copied") == b"ridvalue-"


def test_who_scans_is_handed_over_to_a_thread(engine: PostgresEngine) -> None:
    async def work() -> list[Any]:
        return await write(engine, "add", "scan_then_add", "read_then_add")

    assert on_loop(engine, work) == [1, 2, 3]


def test_loops_and_threads_of_two_servers_lose_no_write(engine: PostgresEngine) -> None:
    other = PostgresEngine(f"{engine._address.url}", HANDLERS, schema=engine._address.schema)

    async def work() -> list[Any]:
        numbers: list[Any] = []
        for _ in range(10):
            threads = [asyncio.wrap_future(other.submit(7, Command("add", b"t"))) for _ in range(3)]
            numbers += await write(engine, *["add"] * 4)
            numbers += await asyncio.gather(*threads)
        return numbers

    assert sorted(on_loop(engine, work)) == list(range(1, 71))
    other.close()


def test_a_connection_that_ends_before_the_commit_loses_nothing(engine: PostgresEngine) -> None:
    ended: list[str] = []

    def end(step: str) -> None:
        if step == "group.begin" and not ended:
            ended.append(step)
            backend(engine, _END_WRITERS)

    async def work() -> list[Any]:
        with listening(end):
            return await write(engine, "add", "add")

    # The commit is the first to notice, so its outcome is unknown...
    first, second = on_loop(engine, work)
    assert ended
    assert isinstance(first, WriteUncertain), first
    assert isinstance(second, WriteUncertain)
    # ...and here nothing did.
    with engine.read(7) as reader:
        assert reader.meta == b"0"


def test_a_connection_that_is_reset_is_left_at_once() -> None:
    """A killed database resets connections whose bytes it had not read. uvloop calls back once for
    such a socket; if that finds an answer which came before, the group would wait, and its space
    with it, for as long as a statement may take."""
    with servers() as make:
        server = make("a")
        engine = PostgresEngine(fresh_url(server.url), HANDLERS, timeout_ms=600_000)
        engine.create_space(7, [(META_KEY, b"0")])

        flush = Lane._flush
        reset: list[Lane] = []

        def flush_and_lose(lane: Lane) -> None:
            """The loop stands still: the answer comes, then bytes that are not read, a reset."""
            flush(lane)
            if lane.waiting and not reset:
                reset.append(lane)
                until(lambda: server.execute(IN_TRANSACTION))
                server.freeze()
                lane._pgconn.pipeline_sync()
                lane._pgconn.flush()
                server.kill()
                server.start()

        async def work() -> Any:
            with patch.object(Lane, "_flush", flush_and_lose):
                writing = asyncio.ensure_future(write(engine, "add"))
                while not reset:
                    await asyncio.sleep(0)
            first = await asyncio.wait_for(writing, 120)
            async with asyncio.timeout(120):
                while (second := await write(engine, "add")) and not isinstance(second[0], int):
                    await asyncio.sleep(0.01)
            return first, second

        try:
            (first,), (second,) = on_loop(engine, work)
            assert isinstance(first, Unavailable) or first == 1
            assert second == 1 + isinstance(first, int)
        finally:
            engine.close()


def test_idle_connections_that_end_are_opened_again(engine: PostgresEngine) -> None:
    async def work() -> list[Any]:
        backend(engine, _END_WRITERS.replace("idle in transaction", "idle"))
        while engine.never_waits and engine.read_via_soon(7, b"\x50a", b"\x60") is not None:
            await asyncio.sleep(0.001)
        while not engine.never_waits or engine.read_via_soon(7, b"\x50a", b"\x60") is None:
            await asyncio.sleep(0.001)
        return await write(engine, "add")

    assert on_loop(engine, work) == [1]


def test_a_fence_that_was_taken_by_another_is_noticed_in_the_write(engine: PostgresEngine) -> None:
    """The guard alone, without the lock: as when a shard moves between fence and write."""
    table = f"{engine._address.schema}.armillary_rows"
    moved: list[str] = []

    def move(step: str) -> None:
        if step == "group.applied" and not moved:
            moved.append(step)
            lanes = engine._lanes
            assert lanes is not None
            (lane,) = (one for one in lanes._lanes.open["write"] if one not in lanes._free)
            lane.ask([ROLLBACK, BEGIN], lambda results, error: None)
            lane._flush()
            until(lambda: lane._readable() or not lane.waiting)  # type: ignore[func-returns-value]
            with psycopg.connect(engine._address.url, autocommit=True) as other:
                change = f"UPDATE {table} SET value = '5', version = 1 WHERE space = 7"
                other.execute(f"{change} AND key = '\\x00'".encode())

    async def work() -> list[Any]:
        with listening(move):
            return await write(engine, "add")

    assert on_loop(engine, work) == [6]
    assert moved


def test_a_question_leaves_nothing_to_the_garbage_collector(engine: PostgresEngine) -> None:
    async def work() -> list[Any]:
        gone = []
        for _ in range(5):
            answered = asyncio.Event()
            future = engine.read_via_soon(7, b"\x50a", b"\x60")
            assert future is not None
            # As a connection does: what is called has the future.
            future.add_done_callback(partial(_note, answered, future))
            gone.append(weakref.ref(future))
            del future
            await answered.wait()
            await asyncio.sleep(0)
        return [one() for one in gone]

    gc.collect()
    gc.disable()
    try:
        assert on_loop(engine, work) == [None] * 5
    finally:
        gc.enable()


def _note(answered: asyncio.Event, waited: Any, future: Any) -> None:
    answered.set()


def test_arrays_are_what_the_server_reads() -> None:
    with psycopg.connect(server_url()) as connection:
        for values in ([], [b""], [b"\x00\xff", b"", b"x" * 70_000]):
            result = connection.pgconn.exec_params(
                b"SELECT array_length($1::bytea[], 1), octet_length(array_to_string($1, ''))",
                [array(values)],
                param_formats=[1],
            )
            got = result.get_value(0, 0)
            assert (0 if got is None else int(got)) == len(values)


_END_WRITERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE state = 'idle in transaction' AND pid <> pg_backend_pid()"
)


def test_a_read_whose_connection_is_lost_ends_with_an_error_of_ours(engine: PostgresEngine) -> None:
    """The general path then asks again; an error of the driver would be a bug to the server."""

    async def work() -> BaseException | None:
        read = engine.read_via_soon(7, b"\x50a", b"\x60")
        assert read is not None
        assert engine._lanes is not None
        for lane in list(engine._lanes._lanes.open["read"]):
            lane.close()
        return read.exception()

    assert isinstance(on_loop(engine, work), Unavailable)
