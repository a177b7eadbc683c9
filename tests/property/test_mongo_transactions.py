"""Transactions of two clients and single writes of others, in any order, against a naive model of
snapshot isolation: every read is of the state at the first statement with the client's own writes
over it, and of two that write one document the later one gets a write conflict."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymongo import MongoClient
from pymongo.client_session import ClientSession
from pymongo.errors import DuplicateKeyError, OperationFailure
from tests.support.mongo import connected

Client = MongoClient[dict[str, Any]]
IDS: Final = range(4)
GONE: Final = None

numbers = itertools.count()


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with connected() as opened:
        yield opened


class Model:
    """What is committed: by id the value (None: none) and the number of its last change."""

    def __init__(self) -> None:
        self.now = 0
        self.values: dict[int, tuple[int | None, int]] = dict.fromkeys(IDS, (GONE, 0))

    def put(self, own: int, value: int | None) -> None:
        self.now += 1
        self.values[own] = value, self.now

    def alive(self) -> dict[int, int]:
        return {own: value for own, (value, _) in self.values.items() if value is not GONE}


class Naive:
    """One transaction of the model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.began = model.now
        self.seen = model.alive()
        self.own: dict[int, int | None] = {}
        self.creates: set[int] = set()

    def alive(self) -> dict[int, int]:
        both = {**self.seen, **self.own}
        return {own: value for own, value in both.items() if value is not GONE}

    def is_changed(self, own: int) -> bool:
        return self.model.values[own][1] > self.began

    def insert(self, own: int, value: int) -> str:
        if own in self.alive():
            return "duplicate"
        if own not in self.own and own not in self.seen:
            if self.model.values[own][0] is not GONE:
                return "conflict"
            self.creates.add(own)
        self.own[own] = value
        return "done"

    def change(self, own: int, value: int | None) -> str:
        """A replace, or a delete."""
        if own not in self.alive():
            return "nothing"
        if own not in self.own and self.is_changed(own):
            return "conflict"
        self.own[own] = value
        if value is GONE and own in self.creates:
            del self.own[own]
            self.creates.discard(own)
        return "done"

    def commit(self) -> str:
        for own in self.own:
            exists = self.model.values[own][0] is not GONE
            if exists if own in self.creates else self.is_changed(own):
                return "conflict"
        if self.own:
            self.model.now += 1
        for own, value in self.own.items():
            self.model.values[own] = value, self.model.now
        return "done"


who = st.sampled_from([0, 1, None])
reads = st.sampled_from(["all", "one", "indexed", "sorted", "count", "distinct", "many"])
steps = st.one_of(
    st.tuples(st.just("read"), who, st.sampled_from(IDS), reads),
    st.tuples(
        st.sampled_from(["insert", "update", "delete"]),
        who,
        st.sampled_from(IDS),
        st.integers(0, 3),
    ),
    st.tuples(st.sampled_from(["commit", "abort"]), st.sampled_from([0, 1])),
)


class Run:
    def __init__(self, client: Client, name: str, sessions: list[ClientSession]) -> None:
        self.items = client.shop[name]
        self.sessions = sessions
        self.model = Model()
        self.naive: list[Naive | None] = [None, None]

    def take(self, step: tuple[Any, ...]) -> None:
        kind, at = step[0], step[1]
        if kind in ("commit", "abort"):
            self.end(kind, at)
            return
        session = None if at is None else self.sessions[at]
        naive: Naive | None = None
        if at is not None:
            naive = self.naive[at]
            if naive is None:
                self.sessions[at].start_transaction()
                naive = self.naive[at] = Naive(self.model)
        if kind == "read":
            alive = self.model.alive() if naive is None else naive.alive()
            assert self.read(session, step[2], step[3]) == expected(alive, step[2], step[3])
            return
        outcome = self.write(kind, session, step[2], step[3])
        assert outcome == self.wanted(kind, naive, step[2], step[3])
        if at is not None and outcome in ("conflict", "duplicate"):
            self.sessions[at].abort_transaction()
            self.naive[at] = None

    def end(self, kind: str, at: int) -> None:
        naive, session = self.naive[at], self.sessions[at]
        if naive is None:
            return
        self.naive[at] = None
        if kind == "abort":
            session.abort_transaction()
            return
        assert self.outcome(session.commit_transaction) == naive.commit()

    def wanted(self, kind: str, naive: Naive | None, own: int, value: int) -> str:
        if naive is not None:
            if kind == "insert":
                return naive.insert(own, value)
            return naive.change(own, value if kind == "update" else GONE)
        exists = own in self.model.alive()
        if kind == "insert":
            if exists:
                return "duplicate"
        elif not exists:
            return "nothing"
        self.model.put(own, GONE if kind == "delete" else value)
        return "done"

    def write(self, kind: str, session: ClientSession | None, own: int, value: int) -> str:
        items = self.items
        if kind == "insert":
            return self.outcome(items.insert_one, {"_id": own, "k": value}, session=session)
        if kind == "delete":
            return self.outcome(items.delete_one, {"_id": own}, session=session)
        new = {"k": value, "version": next(numbers)}  # never what is there already
        return self.outcome(items.replace_one, {"_id": own}, new, session=session)

    @staticmethod
    def outcome(call: Any, *arguments: Any, **options: Any) -> str:
        try:
            done = call(*arguments, **options)
        except DuplicateKeyError:
            return "duplicate"
        except OperationFailure as error:
            if error.code == 112 and error.has_error_label("TransientTransactionError"):
                return "conflict"
            raise
        matched = getattr(done, "matched_count", getattr(done, "deleted_count", 1))
        return "done" if matched else "nothing"

    def read(self, session: ClientSession | None, own: int, how: str) -> Any:
        items = self.items
        only = {"_id": 1, "k": 1}
        if how == "one":
            found = items.find_one({"_id": own}, only, session=session)
            return [] if found is None else [found]
        if how == "count":
            return items.count_documents({"k": {"$gte": 1}}, session=session)
        if how == "distinct":
            return sorted(items.distinct("k", session=session))
        rows: Iterable[dict[str, Any]]
        if how == "many":
            rows = items.aggregate([{"$match": {"k": {"$lte": 2}}}, {"$project": only}], session)
        elif how == "sorted":
            return list(items.find({}, only, session=session).sort([("k", -1), ("_id", 1)]))
        else:
            rows = items.find({"k": 1} if how == "indexed" else {}, only, session=session)
        return sorted(rows, key=lambda one: one["_id"])


def expected(alive: dict[int, int], own: int, how: str) -> Any:
    rows = [{"_id": name, "k": value} for name, value in sorted(alive.items())]
    if how == "one":
        return [one for one in rows if one["_id"] == own]
    if how == "count":
        return sum(one["k"] >= 1 for one in rows)
    if how == "distinct":
        return sorted(set(alive.values()))
    if how == "many":
        return [one for one in rows if one["k"] <= 2]
    if how == "sorted":
        return sorted(rows, key=lambda one: (-one["k"], one["_id"]))
    return [one for one in rows if how != "indexed" or one["k"] == 1]


@settings(max_examples=150)
@given(first=st.lists(st.tuples(st.sampled_from(IDS), st.integers(0, 3)), max_size=3),
       script=st.lists(steps, min_size=4, max_size=25))  # fmt: skip
def test_transactions_are_snapshots(
    client: Client, first: list[tuple[int, int]], script: list[tuple[Any, ...]]
) -> None:
    name = f"c{next(numbers)}"
    client.shop[name].create_index("k")
    with client.start_session() as one, client.start_session() as two:
        run = Run(client, name, [one, two])
        for own, value in first:
            run.take(("insert", None, own, value))
        for step in [*script, ("commit", 0), ("commit", 1), ("read", None, 0, "all")]:
            run.take(step)
    client.shop[name].drop()
