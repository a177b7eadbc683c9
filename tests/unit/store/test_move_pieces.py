"""Without these, a split or merge would hold up those who write alongside it, or they it."""

import pickle
from collections.abc import Callable
from itertools import cycle, islice, pairwise
from random import Random
from typing import Any

import pytest
from tests.support.accounts import World, check, everything, store_of
from tests.support.moving import KEYS, fill, ordinals, step_to

from armillary.limits import (
    GROUP_COMMANDS_MAX,
    MOVE_FREEZE_LSNS,
    MOVE_PIECE_BYTES,
    MOVE_PIECE_BYTES_MIN,
    MOVE_PIECE_ITEMS,
    MOVE_REPLAY_ITEMS_MAX,
)
from armillary.store.items.containers import ContainerStore
from armillary.store.moves import pieces as move_pieces
from armillary.store.moves import runner as moves
from armillary.store.moves import sorted_rows, split_points
from armillary.store.moves.pieces import next_size
from armillary.store.moves.runner import DONE


def test_big_items_travel_in_small_pieces(memory: World) -> None:
    """Or one command would hold the writer for as long as a hundred megabytes take."""
    container = memory.container()
    big = {"text": "x" * (MOVE_PIECE_BYTES // 4)}
    for n in range(24):
        container.create_item({"id": str(n), "pk": f"k{n % KEYS}"} | big)
    move = moves.begin_split(store_of(container), 0)
    sizes: list[int] = []
    run_all = move._run_all

    def measured(commands: list[tuple[int, str, Any]]) -> None:
        sizes.append(len(pickle.dumps(commands)))
        run_all(commands)

    move._run_all = measured  # type: ignore[method-assign]
    step_to(move, "replay")
    for n in range(24):
        container.upsert_item({"id": str(n), "pk": f"k{n % KEYS}", "again": True} | big)
    move.run()
    assert max(sizes) < 2 * MOVE_PIECE_BYTES
    check(container)


def test_writers_that_are_quicker_than_the_copy_do_not_hold_it_up(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each step more changes come than one step replays; the split still ends, and its
    moments of standing still get no longer than they must."""
    monkeypatch.setattr(moves, "MOVE_REPLAYS_MAX", 4)
    monkeypatch.setattr(move_pieces, "MOVE_REPLAY_ITEMS_MAX", MOVE_PIECE_ITEMS)
    container = memory.container()
    fill(container, 100)
    writer = memory.another(container)
    move = moves.begin_split(store_of(container), 0)
    step_to(move, "replay")
    written = frozen = 0
    random = Random(1)
    for _ in range(2_000):
        if move.next == DONE:
            break
        if move.next in ("drain", "finish", "switch"):
            frozen += 1
            memory.clock.advance(0.01)
        else:
            for _ in range(3 * MOVE_PIECE_ITEMS):
                n = random.randrange(100)
                writer.upsert_item({"id": str(n), "pk": f"k{n % KEYS}", "n": written})
                written += 1
        move.step()
    assert move.next == DONE
    assert move._thaws > 0, "they were not quick enough to show anything"
    assert frozen < 40
    assert written > 10 * MOVE_FREEZE_LSNS
    check(container)


def test_replaying_catches_up_with_constant_writing(memory: World) -> None:
    """Two full groups of changes arrive between any two pieces, over and over: what is left still
    shrinks, round by round, and writers are blocked for the last of it only."""
    arriving = 2 * GROUP_COMMANDS_MAX
    assert arriving < MOVE_REPLAY_ITEMS_MAX, "the largest piece is more than what arrives meanwhile"
    container = memory.container()
    fill(container, 3_000)
    writer = memory.another(container)
    move = moves.begin_split(store_of(container), 0)
    step_to(move, "replay")
    numbers = cycle(range(3_000))

    def write(count: int) -> None:
        changes = [{"id": str(n), "pk": f"k{n % KEYS}", "n": -n} for n in islice(numbers, count)]
        writer.bulk(("upsert", (one,)) for one in changes)

    write(1_500)  # the backlog of a long copy
    left: list[int] = []
    while move.next == "replay":
        write(arriving)
        move.step()
        left.append(move._left)
    caught_up = [a > b for a, b in pairwise(left[4:])]  # the first ones find the size it takes
    assert all(caught_up), left
    assert len(left) < 20, left
    assert (move.next, move._thaws) == ("freeze", 0)
    move.run()
    assert move._thaws == 0
    check(container)


def test_a_piece_is_as_large_as_time_allows() -> None:
    """Or a slow disk would make many small commits of few large ones, and slow items one long."""
    least, most = MOVE_PIECE_BYTES_MIN, MOVE_PIECE_BYTES
    assert next_size(most, took_ms=30) == most // 2
    assert next_size(least, took_ms=500) == least
    assert next_size(least, took_ms=105, commit_ms=100) > least, "every commit is slow here"
    assert next_size(most, took_ms=3) == most
    size, pieces = least, 0
    while size < most:
        size, pieces = next_size(size, took_ms=1), pieces + 1
    assert pieces < 20, "the beginning is careful, not slow"


def test_a_freeze_is_few_commits(memory: World) -> None:
    """Freeze, the last changes of both children together, finish of both together, switch."""
    container = memory.container()
    fill(container, 200)
    move = moves.begin_split(store_of(container), 0)
    step_to(move, "freeze")
    for n in range(MOVE_FREEZE_LSNS):
        container.upsert_item({"id": str(n), "pk": f"k{n % KEYS}", "n": -n})
    taken = []
    while move.next != "drop":
        taken.append(move.next)
        move.step()
    assert taken == ["freeze", "drain", "finish", "switch"] or taken == [
        *("freeze", "drain", "drain", "finish", "switch"),
    ]
    move.run()
    check(container)


def test_the_split_point_of_very_many_keys(memory: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_points, "SPLIT_POINT_ROWS", 7)
    monkeypatch.setattr(split_points, "SPLIT_POINT_PARTS", 40)
    container = memory.container()
    container.bulk(("create", ({"id": "1", "pk": f"key {n}"},)) for n in range(300))
    container.split(0)
    assert all(120 <= one.items <= 180 for one in container.partitions())


def test_a_split_that_sorts_in_files_is_whole(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_rows, "CHUNK_ROWS", 16)
    monkeypatch.setattr(sorted_rows, "MEMORY_CHUNKS", 2)
    container = memory.container(unique_keys=[["/n"]])
    fill(container, 300)
    for n in range(0, 300, 7):
        container.delete_item(str(n), f"k{n % KEYS}")
        container.create_item({"id": str(n), "pk": f"k{n % KEYS}", "n": n, "more": [n, {"a": n}]})
    before = everything(container)
    container.split(0)
    container.merge(ordinals(container))
    assert sorted(map(str, everything(container))) == sorted(map(str, before))
    check(container)


def test_items_that_change_hands_while_they_are_copied(memory: World) -> None:
    """An id and a unique key pass from one item to another between two pieces: both are copied, and
    the last that took them has them."""
    container = memory.container(unique_keys=[["/n"]])
    fill(container, 600)
    move = moves.begin_split(store_of(container), 0)
    step_to(move, "copy")
    move.step()
    for n in range(8):
        container.delete_item(str(n), f"k{n % KEYS}")
        container.create_item({"id": str(n), "pk": f"k{n % KEYS}", "n": n, "again": True})
    step_to(move, "replay")
    move.run()
    assert len(everything(container)) == 600
    assert container.read_item("3", "k3")["again"] is True
    check(container)


def test_a_policy_that_changes_while_items_are_copied_begins_the_copy_again(memory: World) -> None:
    container = memory.container()
    fill(container, 600)
    move = moves.begin_split(store_of(container), 0)
    step_to(move, "copy")
    move.step()
    policy = {"includedPaths": [{"path": "/n/?"}], "excludedPaths": [{"path": "/*"}]}
    memory.database.replace_container("items", indexingPolicy=policy)
    fill(container, 20, start=600)
    epoch = move.epoch
    move.run()
    assert move.epoch > epoch
    assert len(everything(container)) == 620
    check(container)


@pytest.mark.parametrize("parents", [1, 2, 3])
def test_a_runner_rests_while_others_write_and_not_when_it_is_alone(
    clocked: World, parents: int
) -> None:
    """Of a merge whichever of its parents they write to."""
    container = clocked.container(physical_partitions=parents, throughput=400)
    fill(container, 900)
    store = store_of(container)
    owners = [one.ordinal for one in store.state.table.ranges]
    keys = [key_of_range(store, one) for one in owners]
    move = moves.begin_split(store, 0) if parents == 1 else moves.begin_merge(store, owners)
    step_to(move, "copy")
    run_all = move._run_all

    def slow(commands: list[tuple[int, str, Any]]) -> None:
        run_all(commands)
        clocked.clock.advance(0.004)

    def slowly(read: Callable[..., Any]) -> Callable[..., Any]:
        def read_slowly(*given: Any) -> Any:
            clocked.clock.advance(0.003)
            return read(*given)

        return read_slowly

    move._run_all = slow  # type: ignore[method-assign]
    filling = move._filling
    filling.next_items = slowly(filling.next_items)  # type: ignore[method-assign]
    filling.next_rows = slowly(filling.next_rows)  # type: ignore[method-assign]
    move.step()
    for key in keys:
        move.step()
        assert move.rest_ms == 0
        container.upsert_item({"id": "1", "pk": key})
        move.step()
        assert move.rest_ms == 3 + 4, key
    move._run_all = run_all  # type: ignore[method-assign]
    move.run()
    check(container)


def key_of_range(store: ContainerStore, ordinal: int) -> str:
    table = store.state.table
    names = (f"k{n}" for n in range(1_000))
    return next(one for one in names if table.find(store.state.key((one,))[0]).ordinal == ordinal)
