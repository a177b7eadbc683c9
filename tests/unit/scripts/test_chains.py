"""Runs on one key that follow each other before they are durable: what each sees, and what becomes
of those that followed a run that did not happen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from tests.support.scripts import CALM, World, world

from armillary.engine.base import Command
from armillary.errors import NotFound, ScriptFailed
from armillary.store.items.script_writes import COMMIT

ADD = """function (id) {
  __.readDocument(__.getAltLink() + '/docs/' + id, (e, doc) => {
    if (e) throw e;
    doc.n += 1;
    getContext().getResponse().setBody(doc.n);
    __.replaceDocument(doc._self, doc, (e) => { if (e) throw e; });
  });
}"""
READ = """function (id) {
  __.readDocument(__.getAltLink() + '/docs/' + id, (e, doc) => {
    getContext().getResponse().setBody(e ? 0 : doc.n);
  });
}"""
THROW_IF = """function (id, n) {
  __.readDocument(__.getAltLink() + '/docs/' + id, (e, doc) => {
    doc.n = 1000;
    __.replaceDocument(doc._self, doc, () => { if (doc.n) throw new Error(n, 'on purpose'); });
  });
}"""
COUNT_AND_CREATE = """function (id) {
  __.queryDocuments(__.getSelfLink(), 'SELECT VALUE COUNT(1) FROM c', (e, rows) => {
    if (e) throw e;
    getContext().getResponse().setBody(rows[0]);
    __.createDocument(__.getSelfLink(), {id, pk: 'a', n: rows[0]}, (e) => { if (e) throw e; });
  });
}"""
DELETE = """function (id) {
  __.deleteDocument(__.getAltLink() + '/docs/' + id, (e) => { if (e) throw e; });
}"""

#: However slow the machine is, runs that wait follow each other.
LONG = replace(CALM, chain_seconds=3600.0)


class Held:
    """An engine that keeps commits of scripts back until they are let go, in their order."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._submit: Callable[[int, Command], Future[Any]] = engine.submit
        self._changed = threading.Condition()
        self._waiting: list[tuple[Future[Any], int, Command]] = []
        self._is_open = True
        self.space = 0
        """Of the last commit that was kept back."""

    def submit(self, space: int, command: Command) -> Future[Any]:
        with self._changed:
            if command.name != COMMIT or self._is_open:
                return self._submit(space, command)
            self.space = space
            future: Future[Any] = Future()
            self._waiting.append((future, space, command))
            self._changed.notify_all()
            return future

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def hold(self) -> None:
        with self._changed:
            self._is_open = False

    def wait_for(self, count: int) -> list[Command]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._waiting) >= count, 60)
            return [command for _, _, command in self._waiting]

    def let_go(self, count: int | None = None) -> None:
        """The first `count`; all, and no more are kept back."""
        with self._changed:
            if count is None:
                self._is_open = True
                count = len(self._waiting)
            going, self._waiting = self._waiting[:count], self._waiting[count:]
        for future, space, command in going:
            _pass_on(self._submit(space, command), future)


def _pass_on(source: Future[Any], target: Future[Any]) -> None:
    def settle(done: Future[Any]) -> None:
        error = done.exception()
        if error is None:
            target.set_result(done.result())
        else:
            target.set_exception(error)

    source.add_done_callback(settle)


@contextmanager
def held(address: str | Path = ":memory:") -> Iterator[tuple[World, Held]]:
    with world(address, LONG) as made:
        keeper = Held(made.container._store.engine)
        made.container._store.engine = keeper
        made.container.upsert_item({"id": "n", "pk": "a", "n": 0})
        made.run(ADD, "n")  # rids and etags are reserved
        try:
            yield made, keeper
        finally:
            keeper.let_go()


def begin_together(made: World, keeper: Held, runs: list[tuple[Any, ...]]) -> list[Future[Any]]:
    """Runs that wait in one line while a first one commits; it and the rest are kept back."""
    keeper.hold()
    first = made.begin(ADD, "n")
    keeper.wait_for(1)
    rest = [made.begin(text, *arguments) for text, *arguments in runs]
    keeper.let_go(1)
    return [first, *rest]


def values(runs: list[Future[Any]]) -> list[Any]:
    return [orjson.loads(one.result(60).response) for one in runs]


@pytest.fixture(params=["memory", "lmdb"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    return ":memory:" if request.param == "memory" else tmp_path


def test_runs_go_on_before_the_one_before_is_durable(address: str | Path) -> None:
    with held(address) as (made, keeper):
        runs = begin_together(made, keeper, [(ADD, "n")] * 5)
        commits = keeper.wait_for(5)
        assert [one.data.after is not None for one in commits] == [False] + [True] * 4
        assert not any(one.done() for one in runs[1:])
        keeper.let_go()
        assert values(runs) == [2, 3, 4, 5, 6, 7]
        assert {run.result().runs for run in runs} == {1}
        assert len({run.result().lsn for run in runs}) == 6  # each its own
        assert made.container.read_item("n", "a")["n"] == 7


def test_another_writer_between_them_makes_all_of_them_run_again(address: str | Path) -> None:
    with held(address) as (made, keeper):
        runs = begin_together(made, keeper, [(ADD, "n")] * 4)
        keeper.wait_for(4)
        made.container.upsert_item({"id": "n", "pk": "a", "n": 100})
        keeper.let_go()
        assert sorted(values(runs)) == [2, 101, 102, 103, 104]
        assert made.container.read_item("n", "a")["n"] == 104


def test_a_scan_sees_what_came_between_although_the_run_before_did_not_care() -> None:
    """The first run reads one item by id and would pass; what follows it counts them all."""
    with held() as (made, keeper):
        runs = begin_together(made, keeper, [(ADD, "n"), (COUNT_AND_CREATE, "x")])
        keeper.wait_for(2)
        made.container.upsert_item({"id": "other", "pk": "a"})
        keeper.let_go()
        assert values(runs)[2] == 2
        assert made.container.read_item("x", "a")["n"] == 2


def test_a_run_that_only_reads_is_answered_with_what_happened() -> None:
    with held() as (made, keeper):
        runs = begin_together(made, keeper, [(ADD, "n"), (READ, "n"), (READ, "n")])
        keeper.wait_for(3)
        made.container.upsert_item({"id": "n", "pk": "a", "n": 50})
        keeper.let_go()
        first, added, *read = values(runs)
        assert (first, added) == (2, 51)
        assert set(read) <= {50, 51}


def test_a_run_that_only_reads_sees_a_write_that_was_acknowledged_before_it_began() -> None:
    with held() as (made, keeper):
        runs = begin_together(made, keeper, [(READ, "other"), (ADD, "n"), (READ, "n")])
        keeper.wait_for(2)
        made.container.upsert_item({"id": "other", "pk": "a", "n": 7})
        late = made.begin(READ, "other")
        keeper.let_go()
        assert values([late]) == [7]
        assert values(runs)[0] == 2


def test_a_run_that_fails_leaves_nothing_to_those_that_follow() -> None:
    with held() as (made, keeper):
        runs = begin_together(
            made, keeper, [(ADD, "n"), (THROW_IF, "n", 4000), (ADD, "n"), (READ, "n")]
        )
        keeper.wait_for(4)
        assert not runs[2].done()  # it saw what is not committed yet
        keeper.let_go()
        with pytest.raises(ScriptFailed) as caught:
            runs[2].result(60)
        assert caught.value.facts["sub_status"] == 4000
        assert values([runs[0], runs[1], runs[3], runs[4]]) == [2, 3, 4, 4]


def test_after_a_delete_the_next_run_waits_for_it() -> None:
    with held() as (made, keeper):
        made.container.upsert_item({"id": "gone", "pk": "a", "n": 1})
        runs = begin_together(made, keeper, [(DELETE, "gone"), (READ, "gone"), (ADD, "n")])
        assert len(keeper.wait_for(1)) == 1
        keeper.let_go()
        assert values(runs)[2:] == [0, 3]
        with pytest.raises(NotFound):
            made.container.read_item("gone", "a")


def test_closing_waits_for_what_is_under_way() -> None:
    with held() as (made, keeper):
        runs = begin_together(made, keeper, [(ADD, "n")] * 3)
        keeper.wait_for(3)
        closing = threading.Thread(target=made.runtime.turns.close)
        closing.start()
        keeper.let_go()
        closing.join(60)
        assert values(runs) == [2, 3, 4, 5]


def test_a_thread_of_the_engine_is_never_kept_waiting() -> None:
    """A run asks for numbers and waits for the engine, holding a lock that a conflict needs: were
    the conflict handled in the engine's thread, both would wait for ever."""
    with held() as (made, keeper):
        runs = begin_together(made, keeper, [(ADD, "n")] * 2)
        keeper.wait_for(2)
        made.container.upsert_item({"id": "n", "pk": "a", "n": 100})
        settled = threading.Event()
        with made.runtime.reservations._lock:
            keeper.let_go()
            # One writer per space: this comes after the commits and their callbacks.
            probe = made.container._store.engine.submit(keeper.space, Command("none", None))
            probe.add_done_callback(lambda _: settled.set())
            assert settled.wait(60)
        assert sorted(values(runs)) == [2, 101, 102]


def test_many_clients_and_plain_writers_on_one_key(address: str | Path) -> None:
    """Whatever the interleaving: every run is counted once, and no read is older than a write that
    was acknowledged before it began."""
    with world(address, CALM) as made:
        container = made.container
        container.upsert_item({"id": "n", "pk": "a", "n": 0})
        acknowledged = 0

        def client(number: int) -> list[int]:
            random, seen = Random(number), []
            for turn in range(12):
                match random.randrange(4):
                    case 0:
                        before = acknowledged
                        assert made.run(READ, "plain") >= before
                    case 1:
                        made.run(COUNT_AND_CREATE, f"{number}-{turn}")
                    case _:
                        seen.append(made.run(ADD, "n"))
            return seen

        def plain() -> None:
            nonlocal acknowledged
            for n in range(1, 30):
                container.upsert_item({"id": "plain", "pk": "a", "n": n})
                acknowledged = n

        def read_and_compare() -> None:
            for _ in range(20):
                before = acknowledged
                assert made.run(READ, "plain") >= before

        with ThreadPoolExecutor(12) as threads:
            clients = [threads.submit(client, number) for number in range(10)]
            others = [threads.submit(plain), threads.submit(read_and_compare)]
            added = sorted(n for one in clients for n in one.result())
            for other in others:
                other.result()
        assert added == list(range(1, len(added) + 1))
        assert container.read_item("n", "a")["n"] == len(added)
        counted = [
            one["n"] for one in container.query("SELECT c.n FROM c WHERE CONTAINS(c.id, '-')")
        ]
        assert len(set(counted)) == len(counted)
