"""What readers see of the redo log. Without these a reader could miss what was acknowledged, see
an older value above a newer one, or half of a group.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.commands import LAST, command, first_rows

from armillary.engine import groups
from armillary.engine.base import META_KEY, after
from armillary.engine.blocks import EMPTY
from armillary.engine.lmdb import commit
from armillary.engine.lmdb import tail as tail_module
from armillary.engine.lmdb.engine import LmdbEngine
from armillary.engine.lmdb.redo_log import Part, RedoLog
from armillary.engine.lmdb.tail import Layer, Tail, TailReader, View
from armillary.engine.memory import MemoryReader
from armillary.errors import DataDamaged

OpenLmdb = Callable[..., LmdbEngine]
Changes = dict[bytes, bytes | None]

MARK, OTHER = b"markmark", b"another!"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RedoLog]:
    log = RedoLog(tmp_path)
    log.begin(5, MARK)
    yield log
    log.close()


def part(space: int, changes: Changes) -> Part:
    return space, list(changes), list(changes.values())


def content(view: View | None) -> dict[int, Changes]:
    assert view is not None
    return {space: dict(layer.changes) for space, layer in view.layers.items()}


# --- views ----------------------------------------------------------------------------------------


def test_there_is_no_view_without_records(log: RedoLog) -> None:
    tail = Tail(log)
    assert tail.view() is None
    log.append([part(1, {b"a": b"1"})])
    assert tail.view() is not None
    log.end()
    assert tail.view() is None


def test_a_view_has_the_last_of_every_key_and_is_made_once(log: RedoLog) -> None:
    tail = Tail(log)
    log.append([part(1, {b"a": b"1", b"b": b"1"}), part(2, {b"a": b"other space"})])
    log.append([part(1, {b"b": None, b"c": b"2"})])
    view = tail.view()
    assert content(view) == {
        1: {b"a": b"1", b"b": None, b"c": b"2"},
        2: {b"a": b"other space"},
    }
    assert view is not None
    assert (view.base, view.end, view.mark) == log.head()
    assert tail.view() is view


def test_a_view_never_changes_and_the_next_one_reads_new_records_only(
    log: RedoLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    tail, asked = Tail(log), list[tuple[int, int]]()
    records = log.records

    def watched(start: int, end: int, mark: bytes) -> Any:
        asked.append((start, end))
        return records(start, end, mark)

    monkeypatch.setattr(log, "records", watched)
    kept: list[tuple[View, dict[int, Changes], list[bytes]]] = []
    expected: Changes = {}
    for number in range(8):
        new: Changes = {b"%d" % ((number * 3) % 7): b"%d" % number, b"k%d" % number: None}
        expected |= new
        log.append([part(1, new), part(number, {b"own": b"x"})])
        view = tail.view()
        assert view is not None
        assert dict(view.layers[1].changes) == expected | ({b"own": b"x"} if number == 1 else {})
        expected = dict(view.layers[1].changes)
        # Some are asked for their order, some not before others were made on top of them.
        order = view.layers[1].order() if number % 3 == 0 else sorted(expected)
        kept.append((view, content(view), list(order)))
    for view, was, order in kept:
        assert content(view) == was
        assert view.layers[1].order() == order == sorted(was[1])
    assert [start for start, _ in asked] == [0, *(end for _, end in asked[:-1])]


def test_a_layer_that_a_group_did_not_touch_is_the_same_one(log: RedoLog) -> None:
    tail = Tail(log)
    log.append([part(1, {b"a": b"1"}), part(2, {b"a": b"1"})])
    before = tail.view()
    log.append([part(2, {b"a": b"2"})])
    later = tail.view()
    assert before is not None
    assert later is not None
    assert later.layers[1] is before.layers[1]
    assert later.layers[2] is not before.layers[2]


@pytest.mark.parametrize(("base", "mark"), [(6, OTHER), (6, MARK), (5, OTHER)])
def test_a_log_that_began_again_is_read_from_its_beginning(
    log: RedoLog, base: int, mark: bytes
) -> None:
    """Also where the new records end exactly where the older ones did."""
    tail = Tail(log)
    log.append([part(1, {b"a": b"old", b"b": b"old"})])
    assert tail.view() is not None
    log.end()
    log.begin(base, mark)
    log.append([part(1, {b"a": b"new", b"c": b"new"})])
    assert content(tail.view()) == {1: {b"a": b"new", b"c": b"new"}}


def test_two_processes_see_the_same(log: RedoLog, tmp_path: Path) -> None:
    other = RedoLog(tmp_path)
    one, two = Tail(log), Tail(other)
    for number in range(6):
        log.append([part(1, {b"%d" % (number % 4): b"%d" % number})])
        if number % 2:
            assert content(two.view()) == content(one.view())
    log.end()
    assert two.view() is None
    other.close()


def test_many_threads_that_catch_up_at_once_see_whole_groups(log: RedoLog) -> None:
    """Each group writes one number in two spaces. And nobody sees an older one after a newer."""
    tail, wrong = Tail(log), list[object]()
    over = threading.Event()

    def read() -> None:
        last = -1
        while not over.is_set():
            view = tail.view()
            if view is None:
                continue
            one, two = (view.layers[space].changes[b"n"] for space in (1, 2))
            order = view.layers[1].order()
            assert one is not None
            if one != two or int(one) < last or order != sorted(set(order)):
                wrong.append((one, two, last, order))
            last = int(one)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(120):
        new: Changes = {b"n": b"%d" % number, b"k%d" % (number % 50): b""}
        assert log.append([part(1, new), part(2, {b"n": b"%d" % number})])
    over.set()
    for thread in threads:
        thread.join()
    assert wrong == []


# --- a head that moves meanwhile ------------------------------------------------------------------


class Scripted:
    """A log whose head is another one each time it is looked at."""

    def __init__(self, heads: list[tuple[int, int, bytes]], known: dict[Any, Any]) -> None:
        self._heads = heads
        self._known = known
        self.asked: list[Any] = []

    def head(self) -> tuple[int, int, bytes]:
        return self._heads.pop(0) if len(self._heads) > 1 else self._heads[0]

    def records(self, *which: Any) -> Any:
        self.asked.append(which)
        return self._known.get(which)


def scripted(heads: list[tuple[int, int, bytes]], known: dict[Any, Any]) -> Tail:
    return Tail(Scripted(heads, known))  # type: ignore[arg-type]


def test_records_that_are_replaced_while_they_are_read_are_read_again() -> None:
    new = [[part(1, {b"a": b"new"})]]
    heads = [(5, 30, MARK), (5, 30, MARK), (6, 0, OTHER), (6, 20, OTHER)]
    assert scripted(heads[:2] + heads[3:], {(0, 20, OTHER): new}).view() is not None
    assert scripted(heads, {(0, 20, OTHER): new}).view() is None


def test_a_head_of_two_states_is_never_taken_for_one() -> None:
    """Base, end and mark are three loads: the first may be of the state before."""
    new = [[part(1, {b"a": b"new"})]]
    tail = scripted([(5, 20, OTHER), (5, 20, OTHER), (6, 20, OTHER)], {(0, 20, OTHER): new})
    view = tail.view()
    assert view is not None
    assert not tail.is_still(view), "a reader begins again"
    again = tail.view()
    assert again is not None
    assert again.base == 6
    assert content(again) == {1: {b"a": b"new"}}
    assert tail.is_still(again)


def test_records_that_never_agree_with_the_head_are_damage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Better than to read on without them."""
    monkeypatch.setattr(tail_module, "LOOKS_MAX", 5)
    with pytest.raises(DataDamaged, match="redo log"):
        scripted([(5, 30, MARK)], {}).view()


def test_a_view_is_right_until_its_records_are_in_lmdb(log: RedoLog) -> None:
    """Not only until the log begins again. Between the two there may be commits without the log;
    two of them later, LMDB may have given a reader the number of one snapshot and the rows of
    another, over which the view would put older rows."""
    tail = Tail(log)
    log.append([part(1, {b"a": b"1"})])
    view = tail.view()
    assert view is not None
    assert tail.is_still(view)
    log.append([part(1, {b"a": b"2"})])
    assert tail.is_still(view), "a reader may go on with what it began with"
    log.end()
    assert not tail.is_still(view)
    log.begin(7, OTHER)
    assert not tail.is_still(view)
    log.append([part(1, {b"a": b"3"})])
    log.append([part(1, {b"a": b"4"})])
    assert not tail.is_still(view)


# --- one layer over a snapshot --------------------------------------------------------------------

PREFIX = b"\x02p"
KEYS = st.sampled_from([bytes([kind, n]) for kind in (1, 2, 3) for n in range(5)])
TARGETS = st.sampled_from([PREFIX + b"\x00", PREFIX + b"\x01"])
VALUES = st.one_of(st.binary(max_size=3), st.sampled_from([b"\x00", b"\x01"]))
CHANGES = st.dictionaries(st.one_of(KEYS, TARGETS), st.one_of(VALUES, st.none()), max_size=6)
ENDS = st.one_of(KEYS, st.sampled_from([b"\x01", b"\x03", LAST]))


def layer_of(history: list[Changes]) -> Layer:
    layer = Layer(history[0])
    for new in history[1:]:
        layer = layer.after(new)
    return layer


@settings(max_examples=300)
@given(
    st.dictionaries(st.one_of(KEYS, TARGETS), VALUES),
    st.lists(CHANGES, min_size=1, max_size=5),
    st.lists(st.tuples(ENDS, ENDS, st.none() | st.integers(0, 6)), min_size=1, max_size=4),
    st.lists(st.one_of(KEYS, TARGETS), max_size=5),
    st.booleans(),
    st.none() | st.binary(min_size=1, max_size=2),
)
def test_every_way_of_reading_is_that_of_a_dict(
    rows: dict[bytes, bytes],
    history: list[Changes],
    scans: list[tuple[bytes, bytes, int | None]],
    keys: list[bytes],
    ordered: bool,
    meta: bytes | None,
) -> None:
    if meta is not None:
        history = [*history, {META_KEY: meta}]
    layer = layer_of(history[:1])
    for new in history[1:]:
        if ordered:
            layer.order()  # the next layer goes on from it
        layer = layer.after(new)
    truth = dict(rows)
    for key, value in chain.from_iterable(new.items() for new in history):
        if value is None:
            truth.pop(key, None)
        elif key != META_KEY:
            truth[key] = value
    base = MemoryReader(EMPTY.apply({META_KEY: b"m", **rows}))
    reader = TailReader(base, layer)
    assert reader.meta == (b"m" if meta is None else meta)
    assert [reader.get(key) for key in keys] == [truth.get(key) for key in keys]
    assert reader.get_many(keys) == [truth.get(key) for key in keys]
    tails = [key[1:] for key in keys]
    assert reader.get_behind(b"\x02", tails) == [truth.get(b"\x02" + one) for one in tails]
    for key in keys:
        first = truth.get(key)
        expected = None if first is None else (first, truth.get(PREFIX + first))
        assert reader.get_via(key, PREFIX) == expected
    for start, end, limit in scans:
        wanted = sorted((key, value) for key, value in truth.items() if start <= key < end)
        assert list(reader.scan(start, end, limit=limit)) == wanted[:limit]
        assert list(reader.scan(start, end, reverse=True, limit=limit)) == wanted[::-1][:limit]
        lists = list(reader.scan_lists(start, end, 2))
        assert [*chain.from_iterable(lists)] == wanted
        assert all(0 < len(one) <= 2 for one in lists)
    prefixes = [b"\x01", PREFIX]
    found = {
        key[len(prefix) : len(prefix) + 1]
        for prefix in prefixes
        for key in truth
        if key.startswith(prefix)
    }
    assert reader.tails(prefixes, 1, 100) == found
    assert after(PREFIX) > PREFIX


@given(st.lists(CHANGES, min_size=1, max_size=6), st.lists(st.booleans(), min_size=6, max_size=6))
def test_a_layer_never_changes_whatever_is_made_on_top_of_it(
    history: list[Changes], asked: list[bool]
) -> None:
    layers, truths = [Layer(history[0])], [dict(history[0])]
    for new in history[1:]:
        layers.append(layers[-1].after(new))
        truths.append(truths[-1] | new)
    twice = layers[0].after({b"\x01\x00": b"sideways"})  # two on top of one
    for layer, truth, ask in zip(layers, truths, asked, strict=False):
        if ask:
            assert layer.order() == sorted(truth)
    for layer, truth in zip(layers[::-1], truths[::-1], strict=True):
        assert layer.changes == truth
        assert layer.order() == sorted(truth)
    assert twice.order() == sorted({*truths[0], b"\x01\x00"})


# --- of an engine ---------------------------------------------------------------------------------


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause: the log goes to LMDB when the test says so."""
    monkeypatch.setattr(groups, "PAUSE_SECONDS", 1_000.0)
    monkeypatch.setattr(commit, "REDO_SECONDS_MAX", 1_000.0)


def put(engine: LmdbEngine, *rows: tuple[bytes, bytes]) -> None:
    engine.run(1, command(("put_many", list(rows))))


READS: dict[str, Callable[[LmdbEngine], object]] = {
    "read": lambda engine: _get(engine, b"dk"),
    "pin": lambda engine: _pinned(engine, b"dk"),
    "read_via": lambda engine: engine.read_via(1, b"i", b"d")[1:],
    "read_few": lambda engine: engine.read_few(1, b"x", b"y", 5, 1, b"d")[1],
    "fences": lambda engine: engine.fences([1])[1],
}


def _get(engine: LmdbEngine, key: bytes) -> bytes | None:
    with engine.read(1) as reader:
        assert list(reader.scan(key, key + b"\x00")) == [(key, reader.get(key))]
        return reader.get(key)


def _pinned(engine: LmdbEngine, key: bytes) -> bytes | None:
    pin = engine.pin()
    try:
        with pin.read(1) as reader:
            return reader.get(key)
    finally:
        pin.close()


def expected(way: str, number: bytes, meta: bytes) -> object:
    if way == "read_via":
        return b"k", number
    return {"read_few": [number], "fences": meta}.get(way, number)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("way", READS)
@pytest.mark.parametrize("with_meta", [False, True])
@pytest.mark.parametrize("over", ["first", "log", "flushed"])
def test_what_was_acknowledged_is_read(
    open_lmdb: OpenLmdb, way: str, with_meta: bool, over: str
) -> None:
    """Whatever the group has changed besides: the quick ways look at the meta row first."""
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    put(engine, (b"i", b"k"), (b"xk", b""), (b"dk", b"1"))
    if over != "first":
        engine._commit.flush()
    meta = b"meta:0"
    if over != "first":
        put(engine, (b"dk", b"2"))
        if with_meta:
            engine.run(1, command(("count_meta",)))
            meta = b"meta:1"
    if over == "flushed":
        engine._commit.flush()
    assert (engine._environment.redo.head()[1] == 0) is (over == "flushed")
    assert READS[way](engine) == expected(way, b"1" if over == "first" else b"2", meta)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("way", READS)
@pytest.mark.parametrize("when", ["before the snapshot", "after it"])
@pytest.mark.parametrize("what", ["flush", "flush, group", "flush, commit", "flush, commits"])
def test_a_reader_that_is_overtaken_sees_all_of_one_state(
    open_lmdb: OpenLmdb, monkeypatch: pytest.MonkeyPatch, way: str, when: str, what: str
) -> None:
    """Between its look at the log and its snapshot, or right after: no value of the log may lie
    over what was committed later, and none may be missing."""
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    put(engine, (b"i", b"k"), (b"xk", b""), (b"dk", b"1"))
    engine._commit.flush()
    put(engine, (b"dk", b"2"))
    engine.run(1, command(("count_meta",)))
    READS[way](engine)
    environment, done = engine._environment, list[bool]()
    begin = environment.begin

    def overtake() -> None:
        done.append(True)
        engine._commit.flush()
        if what == "flush":
            return
        engine.run(1, command(("put", b"dk", b"3"), ("count_meta",)))
        if "commit" in what:
            engine._commit.flush()
        if "commits" in what:
            engine.run(1, command(("put", b"dk", b"4"), ("count_meta",)))
            engine._commit.flush()

    def begins(*given: Any, **named: Any) -> Any:
        if done or named.get("write"):
            return begin(*given, **named)
        if when == "before the snapshot":
            overtake()
            return begin(*given, **named)
        transaction = begin(*given, **named)
        overtake()
        return transaction

    monkeypatch.setattr(environment, "begin", begins)
    answers = [(b"%d" % number, b"meta:%d" % (number - 1)) for number in (2, 3, 4)]
    assert READS[way](engine) in [expected(way, *one) for one in answers]
    assert done


@pytest.mark.usefixtures("quiet")
def test_a_snapshot_stays_what_it_was(open_lmdb: OpenLmdb) -> None:
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    put(engine, (b"k", b"1"))
    with engine.read(1) as reader:
        pin = engine.pin()
        put(engine, (b"k", b"2"), (b"l", b"2"))
        engine._commit.flush()
        engine.run(1, command(("delete", b"k")))
        with pin.read(1) as pinned:
            for one in (reader, pinned):
                assert list(one.scan(b"\x01", LAST)) == [(b"k", b"1")]
        pin.close()
    with engine.read(1) as reader:
        assert list(reader.scan(b"\x01", LAST)) == [(b"l", b"2")]


@pytest.mark.usefixtures("quiet")
def test_a_quick_read_does_not_take_another_space_for_its_own(open_lmdb: OpenLmdb) -> None:
    """Another process may have dropped the space and made it again, elsewhere: what this process
    believes of its place is checked in every snapshot."""
    engine = open_lmdb()
    engine.create_space(1, first_rows())
    put(engine, (b"i", b"x"), (b"dx", b"old"))
    engine._commit.flush()
    assert engine.read_via(1, b"i", b"d")[2] == b"old"
    stale = engine._places[1]
    engine.drop_space(1)
    engine.create_space(2, first_rows())
    engine.run(2, command(("put_many", [(b"i", b"x"), (b"dx", b"of space 2")])))
    engine.create_space(1, first_rows())
    put(engine, (b"i", b"x"), (b"dx", b"new"))
    engine._commit.flush()
    engine.run(1, command(("count_meta",)))
    engine._places[1] = stale
    assert engine.read_via(1, b"i", b"d")[2] == b"new"
