"""Several servers on one PostgreSQL: no update is lost, no read is out of order."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from tests.support.counting import COUNTING, LOG, LOG_END, log_key, logged_after
from tests.support.postgres import fresh_url, open_postgres, server_url

from armillary.engine.base import META_KEY, Command, Handler, Handlers, Writer
from armillary.engine.postgres.engine import PostgresEngine
from armillary.errors import Unavailable

pytestmark = pytest.mark.postgres

ROOT = Path(__file__).parents[3]


@pytest.fixture
def url() -> str:
    return fresh_url()


@pytest.fixture
def opened(url: str) -> Iterator[Callable[..., PostgresEngine]]:
    engines: list[PostgresEngine] = []

    def open_one(handlers: Handlers = COUNTING, address: str = url) -> PostgresEngine:
        engines.append(open_postgres(handlers, address))
        return engines[-1]

    yield open_one
    for engine in engines:
        engine.close()


class Follower(threading.Thread):
    """Reads "what came after the last I saw" until told to stop, like a change feed reader."""

    def __init__(self, engine: PostgresEngine) -> None:
        super().__init__(daemon=True)
        self._engine = engine
        self._stop_after: int | None = None
        self.seen: list[int] = []

    def run(self) -> None:
        while self._stop_after is None or not self.seen or self.seen[-1] < self._stop_after:
            self.seen += logged_after(self._engine, 1, self.seen[-1] if self.seen else 0)

    def finish(self, last: int) -> list[int]:
        self._stop_after = last
        self.join(timeout=120)
        return self.seen


def test_two_servers_lose_no_update_and_a_follower_misses_nothing(
    opened: Callable[..., PostgresEngine],
) -> None:
    servers = [opened(), opened()]
    servers[0].create_space(1, [(META_KEY, b"0")])
    follower = Follower(opened())
    follower.start()

    def work(number: int) -> list[int]:
        return [servers[number % 2].run(1, Command("add", b"%d" % number)) for _ in range(40)]

    with ThreadPoolExecutor(6) as pool:
        told = sorted(number for numbers in pool.map(work, range(6)) for number in numbers)
    assert told == list(range(1, 241))
    assert follower.finish(240) == told


def test_two_processes_write_while_a_third_reads(
    url: str, opened: Callable[..., PostgresEngine]
) -> None:
    engine = opened()
    engine.create_space(1, [(META_KEY, b"0")])
    follower = Follower(engine)
    follower.start()
    command = [sys.executable, "-m", "tests.support.counting", url, "1", "100"]
    processes = [subprocess.Popen([*command, label], cwd=ROOT) for label in ("a", "b")]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    assert follower.finish(200) == list(range(1, 201))
    with engine.read(1) as reader:
        labels = [value for _, value in reader.scan(LOG, LOG_END)]
        assert (reader.meta, labels.count(b"a"), labels.count(b"b")) == (b"200", 100, 100)


def _held(url: str, opened: Callable[..., PostgresEngine]) -> tuple[Future[Any], Callable[[], Any]]:
    """A server that stops in the middle of a group, holding the fence, until it is let go."""
    inside, go = threading.Event(), threading.Event()

    def hold(writer: Writer, data: bytes) -> Any:
        inside.set()
        assert go.wait(120)
        return COUNTING["add"].run(writer, data)

    patient = f"{url}&options={quote('-c idle_in_transaction_session_timeout=0')}"
    future = opened({"hold": Handler(hold)}, patient).submit(1, Command("hold", b"slow"))
    assert inside.wait(60)
    return future, go.set


def test_a_later_number_is_never_visible_before_an_earlier_one(
    url: str, opened: Callable[..., PostgresEngine]
) -> None:
    """The slow server has taken number 1. The fast one must wait for it: if it committed 2 first, a
    follower would go on from 2 and never see 1.
    """
    fast = opened()
    fast.create_space(1, [(META_KEY, b"0")])
    slow, let_go = _held(url, opened)
    second = fast.submit(1, Command("add", b"fast"))
    with pytest.raises(NotYet):
        second.result(timeout=0.3)
    assert logged_after(fast, 1, 0) == []
    let_go()
    assert (slow.result(), second.result()) == (1, 2)
    assert logged_after(fast, 1, 0) == [1, 2]


def test_with_a_sequence_the_follower_would_miss_a_change() -> None:
    """Why the counter is in the fence: the same story with a sequence, told by plain SQL."""
    with (
        psycopg.connect(server_url()) as slow,
        psycopg.connect(server_url(), autocommit=True) as fast,
    ):
        fast.execute("DROP TABLE IF EXISTS public.armillary_counter_example")
        fast.execute("CREATE TABLE public.armillary_counter_example (lsn serial)")
        add = "INSERT INTO public.armillary_counter_example DEFAULT VALUES"
        after = "SELECT lsn FROM public.armillary_counter_example WHERE lsn > %s ORDER BY lsn"
        slow.execute(add)
        fast.execute(add)
        seen = [lsn for (lsn,) in fast.execute(after, (0,))]
        slow.commit()
        seen += [lsn for (lsn,) in fast.execute(after, (seen[-1],))]
        assert seen == [2]
        fast.execute("DROP TABLE public.armillary_counter_example")


def test_other_spaces_and_readers_do_not_wait_for_a_held_fence(
    url: str, opened: Callable[..., PostgresEngine]
) -> None:
    fast = opened()
    for space in (1, 2):
        fast.create_space(space, [(META_KEY, b"0")])
    slow, let_go = _held(url, opened)
    assert fast.run(2, Command("add", b"")) == 1
    assert fast.read_via(1, META_KEY, b"") == (b"0", b"0", None)
    let_go()
    assert slow.result() == 1


def test_waiting_for_a_fence_ends_at_the_statement_timeout(
    url: str, opened: Callable[..., PostgresEngine]
) -> None:
    """Without it, one stopped server would stop all others for ever."""
    opened().create_space(1, [(META_KEY, b"0")])
    # Short enough to wait for, long enough for what is no wait on a slow machine.
    impatient = opened(COUNTING, f"{url}&options={quote('-c statement_timeout=5000')}")
    slow, let_go = _held(url, opened)
    with pytest.raises(Unavailable) as caught:
        impatient.run(1, Command("add", b"never"))
    assert caught.value.facts["sqlstate"] == "57014"
    let_go()
    assert slow.result() == 1
    assert impatient.run(1, Command("add", b"")) == 2
    with impatient.read(1) as reader:
        assert [value for _, value in reader.scan(LOG, LOG_END)] == [b"slow", b""]


def test_a_group_reads_what_the_holder_of_the_fence_wrote(
    url: str, opened: Callable[..., PostgresEngine]
) -> None:
    """The announced keys are read after the lock is had; a snapshot from before would be stale."""
    engine = opened()
    engine.create_space(1, [(META_KEY, b"0")])
    slow, let_go = _held(url, opened)
    moved = engine.submit(1, Command("move", (log_key(1), b"\x11moved")))
    with pytest.raises(NotYet):
        moved.result(timeout=0.2)
    let_go()
    moved.result()
    assert slow.result() == 1
    with engine.read(1) as reader:
        assert reader.get_many([log_key(1), b"\x11moved"]) == [None, b"slow"]


def test_servers_that_open_an_empty_database_together_all_succeed(url: str) -> None:
    gate = threading.Barrier(4)

    def open_at_once(_: int) -> PostgresEngine:
        gate.wait()
        return open_postgres(COUNTING, url)

    with ThreadPoolExecutor(4) as pool:
        engines = list(pool.map(open_at_once, range(4)))
    engines[0].create_space(1, [(META_KEY, b"0")])
    assert [engine.run(1, Command("add", b"")) for engine in engines] == [1, 2, 3, 4]
    for engine in engines:
        engine.close()
