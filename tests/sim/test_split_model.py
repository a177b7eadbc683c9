"""Every interleaving of two writers, a split, a second server that takes the split over, and
crashes.

The actors run the real step functions of the store on an engine whose state can be put aside, so
the test walks the whole graph of reachable states. A crash of a runner is an actor that takes no
further step: the walk judges every state, so it judges those in which it never does.

In every state, a fresh reader must see each acknowledged write, or be asked to retry; and
when all have stopped, a last server must be able to finish what was begun. With the fence check
removed the same walk must find a lost write: otherwise it proves nothing.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest
from tests.support.stepped import State, SteppedEngine

from armillary.encoding.hashing import epk
from armillary.engine.base import SpaceGone
from armillary.errors import DbError, Fenced, NotFound, RangeGone, Stale
from armillary.store.catalog.accounts import AccountStore
from armillary.store.items import containers
from armillary.store.items.containers import ContainerStore
from armillary.store.items.preparation import Operation
from armillary.store.moves import runner as moves
from armillary.store.moves import takeovers
from armillary.store.moves.filling import Filling
from armillary.store.moves.runner import DONE, Move
from armillary.store.rows import fence as fencing
from armillary.store.upkeep import recount

ATTEMPTS_MAX = 2


class CameAgain(Exception):
    """A writer met a frozen range: in the model it simply looks again later."""


@dataclass
class Writer:
    """Looks at the catalog, then writes by what it saw. Two steps, so that anything fits
    between.
    """

    store: ContainerStore
    operation: Operation
    key: str
    outcome: object
    """The value to be read once this is acknowledged; None: the item is gone."""
    looked: bool = False
    done: bool = False
    attempts: int = 0

    def is_enabled(self) -> bool:
        return not self.done and self.attempts < ATTEMPTS_MAX

    def step(self) -> None:
        if not self.looked:
            self.store.refresh()
            self.looked = True
            return
        self.attempts += 1
        self.looked = False
        try:
            self.store.run(self.operation, (self.key,))
        except CameAgain:
            return
        self.done = True

    def place(self) -> tuple[object, ...]:
        state = self.store.known_state
        return self.looked, self.done, self.attempts, state and state.record.version


@dataclass
class Runner:
    """A server that works on the split until it is done or finds that it lost it."""

    begin: Callable[[], Move | None]
    move: Move | None = None
    over: bool = False
    steps: int = field(default=0)

    def is_enabled(self) -> bool:
        return not self.over

    def step(self) -> None:
        self.steps += 1
        try:
            if self.move is None:
                self.move = self.begin()
                self.over = self.move is None
            else:
                self.move.step()
                self.over = self.move.next == DONE
        except (Stale, SpaceGone, NotFound, Fenced):
            self.over = True

    def place(self) -> tuple[object, ...]:
        return self.over, self.steps, self.move and (self.move.next, self.move.epoch)


@dataclass
class World:
    engine: SteppedEngine
    account: AccountStore
    actors: list[Writer | Runner]

    def fresh(self) -> ContainerStore:
        store = self.account.container("d", "c")
        store._wait = _come_again
        return store


def _come_again(seconds: float) -> None:
    raise CameAgain


def _world() -> World:
    engine = SteppedEngine()
    account = AccountStore(engine, random=Random(0))
    account.create_database("d")
    body = {"id": "c", "partitionKey": {"paths": ["/k"], "kind": "Hash", "version": 2}}
    account.create_container("d", body)
    world = World(engine, account, [])
    setup = world.fresh()
    left, right = _two_keys(setup)
    for key in (left, right):
        setup.run(Operation("create", body={"id": "old", "k": key, "v": 0}), None)
    at = epk((right,), setup.state.definition.partition_key)
    splitter, taker = world.fresh(), world.fresh()
    world.actors = [
        Writer(
            world.fresh(),
            Operation("replace", id="old", body={"id": "old", "k": left, "v": 1}),
            left,
            1,
        ),
        Writer(world.fresh(), Operation("delete", id="old"), right, None),
        Runner(lambda: moves.begin_split(splitter, 0, at)),
        Runner(lambda: next(iter(takeovers.resume(taker, silent_ms=0)), None)),
    ]
    return world


def _two_keys(store: ContainerStore) -> tuple[str, str]:
    definition = store.state.definition.partition_key
    ordered = sorted(("a", "b"), key=lambda key: epk((key,), definition))
    return ordered[0], ordered[1]


def walk(world: World, limit: int = 200_000) -> int:
    """Visit every reachable state once. How many there were."""
    seen: set[tuple[object, ...]] = set()
    judged: set[tuple[object, ...]] = set()
    taken: dict[tuple[object, ...], tuple[State, Writer | Runner]] = {}
    """What a step leads to: it sees the rows and what its actor knows, and nothing else."""
    todo = [(world.engine.state(), world.actors)]
    while todo:
        state, actors = todo.pop()
        world.engine.take_up(state)
        rows = world.engine.rows()
        places = [actor.place() for actor in actors]
        place = (rows, *places)
        if place in seen:
            continue
        seen.add(place)
        assert len(seen) < limit, "more states than expected"
        # A fresh reader knows nothing of the actors: the rows and what was acknowledged are
        # all that is judged, and many states have them in common.
        done = tuple(isinstance(one, Writer) and one.done for one in actors)
        case = (rows, done, any(one.is_enabled() for one in actors))
        if case not in judged:
            judged.add(case)
            judge(world, actors)
        for number, actor in enumerate(actors):
            if actor.is_enabled():
                step = (rows, number, places[number])
                if step not in taken:
                    world.engine.take_up(state)
                    new = _copied(actor)
                    new.step()
                    taken[step] = world.engine.state(), new
                after, new = taken[step]
                # A step changes nobody else.
                todo.append((after, [*actors[:number], new, *actors[number + 1 :]]))
    return len(seen)


def _copied(actor: Writer | Runner) -> Writer | Runner:
    new = copy.copy(actor)
    if isinstance(new, Writer):
        new.store = copy.copy(new.store)
    elif new.move is not None:
        new.move = copy.copy(new.move)
        new.move.store = copy.copy(new.move.store)
        new.move._filling = _copied_filling(new.move._filling)
        new.move._logs = dict(new.move._logs)
        new.move._history = list(new.move._history)
        new.move._finals = list(new.move._finals)
    return new


def _copied_filling(filling: Filling) -> Filling:
    """What changes of it; rows and ranges do not. Rows it was reading are begun again."""
    new = copy.copy(filling)
    new.copying, new.loading, new.rows = list(new.copying), list(new.loading), None
    new.gathered = {}
    for space, rows in filling.gathered.items():
        made = new.gathered[space] = copy.copy(rows)
        made._shapes = dict(rows._shapes)
        made._parts = dict(rows._parts)
        made._rows = copy.copy(rows._rows)
        made._rows._chunk = list(rows._rows._chunk)
        made._rows._chunks = list(rows._rows._chunks)
        assert made._rows._levels == [[]], "more rows than this test has"
    return new


def judge(world: World, actors: list[Writer | Runner]) -> None:
    writers = [one for one in actors if isinstance(one, Writer)]
    _acknowledged_are_seen(world, writers)
    if all(not one.is_enabled() for one in actors):
        here = world.engine.state()
        finisher = world.fresh()
        for move in takeovers.resume(finisher, silent_ms=0):
            move.run()
        _acknowledged_are_seen(world, writers, final=True)
        store = world.fresh()
        for owner in store.state.table.ranges:
            with world.engine.read(owner.space) as reader:
                assert recount.problems(reader, store.state.policies) == []
        world.engine.take_up(here)


def _acknowledged_are_seen(world: World, writers: list[Writer], final: bool = False) -> None:
    for writer in writers:
        if not writer.done:
            continue
        try:
            found: object = world.fresh().read("old", (writer.key,)).text
            assert isinstance(found, bytes)
            value: object = b'"v":1' in found and 1
        except NotFound:
            value = None
        except CameAgain:
            assert not final, "the container blocks writers for ever"
            continue
        assert value == writer.outcome, f"an acknowledged write is lost: {writer.operation}"


def test_no_interleaving_loses_an_acknowledged_write() -> None:
    states = walk(_world())
    assert states > 1_000, "the walk did not go far enough to mean anything"


def test_without_the_fence_the_walk_finds_a_lost_write(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_check(row: bytes, fence: bytes) -> None:
        return None

    monkeypatch.setattr(fencing, "check_fence", no_check)
    monkeypatch.setattr(containers, "check_fence", no_check)
    with pytest.raises((AssertionError, DbError)) as caught:
        walk(_world())
    assert "acknowledged write is lost" in str(caught.value) or isinstance(caught.value, RangeGone)
