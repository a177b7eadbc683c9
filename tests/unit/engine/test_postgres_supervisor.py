"""Outages and failovers under an engine: real servers that are killed, frozen, promoted or full."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.support.counting import COUNTING, logged_after
from tests.support.pg_cluster import PgServer, address, servers
from tests.support.postgres import fresh_url, open_postgres, refusal_of
from tests.support.waiting import until

from armillary.engine.base import META_KEY, Command
from armillary.engine.postgres.connection import Identity, each_host
from armillary.engine.postgres.engine import PostgresEngine
from armillary.engine.postgres.supervisor import State
from armillary.errors import Unavailable, WriteUncertain

pytestmark = pytest.mark.postgres

Make = Callable[..., PgServer]


@pytest.fixture
def make() -> Iterator[Make]:
    with servers() as make:
        yield make


def _added(engine: PostgresEngine, space: int = 1) -> int:
    """The next number, as soon as there is a database again."""

    def attempt() -> int:
        try:
            return int(engine.run(space, Command("add", b"")))
        except Unavailable:
            return 0

    return until(attempt)


def _pair(make: Make, **settings: str) -> tuple[PgServer, PgServer]:
    primary = make("a", **settings)
    standby = make("b", start=False, **settings)
    primary.copy_into(standby, synchronous=True)
    return primary, standby


def test_a_promoted_standby_is_found_and_the_store_leaps(make: Make) -> None:
    primary, standby = _pair(make)
    engine = open_postgres(COUNTING, address([primary, standby]))
    leaps: list[bytes] = []

    def leap(run: Callable[[int, Command], object]) -> None:
        # Before anybody else: other requests are refused until it is done.
        with pytest.raises(Unavailable):
            engine.submit(1, Command("add", b"too early")).result()
        leaps.append(b"%d" % int(str(run(1, Command("add", b"leap")))))

    try:
        engine.create_space(1, [(META_KEY, b"0")])
        engine.follow_failovers(leap)
        assert [_added(engine) for _ in range(3)] == [1, 2, 3]
        before = engine.health().identity
        primary.kill()
        standby.promote()
        standby.configure(synchronous_standby_names="")
        assert _added(engine) == 5
        assert leaps == [b"4"]
        after = engine.health().identity
        assert before is not None
        assert after is not None
        assert (after.system_id, after.timeline) == (before.system_id, before.timeline + 1)
        assert logged_after(engine, 1, 0) == [1, 2, 3, 4, 5]
    finally:
        engine.close()


def test_a_primary_that_hangs_is_left_and_not_returned_to(make: Make) -> None:
    """Nothing is closed and nothing answers: only our own deadline notices."""
    primary, standby = _pair(make)
    engine = open_postgres(COUNTING, address([primary, standby]))
    try:
        engine.create_space(1, [(META_KEY, b"0")])
        assert _added(engine) == 1
        primary.freeze()
        waiting = engine.submit(1, Command("add", b""))
        with pytest.raises(Unavailable):
            waiting.result(timeout=120)
        standby.promote()
        standby.configure(synchronous_standby_names="")
        number = _added(engine)
        primary.thaw()
        assert _added(engine) == number + 1
        # Whatever is left of the old one: this engine has nothing to do with it any more.
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'armillary'"
        # An attempt to connect that was given up lives until its frames are collected.
        until(lambda: gc.collect() >= 0 and primary.execute(query) == [(0,)])
        assert standby.execute(query) != [(0,)]
    finally:
        engine.close()


def test_while_it_is_away_requests_are_refused_at_once_with_a_time_to_come_back(make: Make) -> None:
    server = make("a")
    engine = open_postgres(COUNTING, fresh_url(server.url))
    try:
        engine.create_space(1, [(META_KEY, b"0")])
        server.kill()
        until(lambda: engine.health().state is State.AWAY)
        for ask in (
            lambda: engine.run(1, Command("add", b"")),
            lambda: engine.read_via(1, META_KEY, b""),
            lambda: engine.drop_space(1),
        ):
            with pytest.raises(Unavailable) as caught:
                ask()
            assert not isinstance(caught.value, WriteUncertain)
            assert caught.value.facts["retry_after_ms"] > 0
        assert engine.now_ms() > 0, "the clock goes on"
        server.start()
        assert _added(engine) == 1
        assert engine.health().outages == 1
    finally:
        engine.close()


def test_a_database_that_is_lost_while_it_is_followed_is_looked_for_again(make: Make) -> None:
    """Connections break at the worst moment: between the promotion and its first request."""
    server = make("a")
    engine = open_postgres(COUNTING, fresh_url(server.url))
    errors: list[Exception] = [
        psycopg.OperationalError("the connection is lost"),
        Unavailable("it went away again"),
        RuntimeError("a bug"),
    ]
    asked: list[Identity] = []

    def follow(identity: Identity) -> None:
        asked.append(identity)
        if errors:
            raise errors.pop(0)

    try:
        engine.create_space(1, [(META_KEY, b"0")])
        engine._supervisor.follow(follow)
        server.kill()
        # One that is back at once would be found by requests before the supervisor has looked.
        until(lambda: engine.health().outages == 1)
        server.start()
        assert _added(engine) == 1
        assert len(asked) == 4
    finally:
        engine._supervisor.unfollow(follow)
        engine.close()


def test_an_engine_waits_for_a_database_that_is_not_there_yet(make: Make) -> None:
    server = make("a")
    url = fresh_url(server.url)
    server.stop()
    with pytest.raises(Unavailable, match="out of reach"):
        PostgresEngine(url, COUNTING, start_s=0.1)
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(PostgresEngine, url, COUNTING, start_s=None)
        server.start()
        engine = opening.result(timeout=120)
    engine.create_space(1, [(META_KEY, b"0")])
    assert _added(engine) == 1
    engine.close()


def test_a_standby_alone_is_not_written_to(make: Make) -> None:
    _, standby = _pair(make)
    assert "read-only" in refusal_of(fresh_url(standby.url), COUNTING)


def test_two_servers_share_a_database_with_few_connections(make: Make) -> None:
    """Each makes do with those it has; none waits for ever."""
    server = make("a", max_connections="20", superuser_reserved_connections="0")
    url = fresh_url(server.url)
    engines = [open_postgres(COUNTING, url) for _ in range(2)]
    try:
        for space in range(1, 9):
            engines[0].create_space(space, [(META_KEY, b"0")])

        def work(number: int) -> int:
            engine, space = engines[number % 2], 1 + number % 8
            done = 0
            for _ in range(10):
                with engine.read(space) as reader:
                    assert reader.meta
                done += _added(engine, space) > 0
            return done

        with ThreadPoolExecutor(32) as pool:
            assert sum(pool.map(work, range(32))) == 320
        for space in range(1, 9):
            assert logged_after(engines[0], space, 0) == list(range(1, 41))
    finally:
        for engine in engines:
            engine.close()


def test_every_host_of_an_address_is_one_conninfo() -> None:
    def hosts(conninfo: str) -> list[tuple[object, object]]:
        found = [conninfo_to_dict(one) for one in each_host(conninfo)]
        assert all(one["dbname"] == "d" for one in found)
        return [(one.get("host"), one.get("port")) for one in found]

    assert hosts("host=a,b port=1,2 dbname=d") == [("a", "1"), ("b", "2")]
    assert hosts("host=a,b port=5 dbname=d") == [("a", "5"), ("b", "5")]
    assert hosts("dbname=d") == [(None, None)]
