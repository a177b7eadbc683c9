"""A container with more physical partitions than it needs gets fewer. Without these a merge would
be asked for and not happen, or happen against a request for more throughput.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.accounts import World, check, everything, open_world, store_of

from armillary.container import Container
from armillary.errors import BadInput, Locked
from armillary.store.moves import merges
from armillary.store.moves.merges import MESSAGE, run_merges
from armillary.store.moves.runner import Move, begin_split
from armillary.store.rows.meta import unpack_meta
from armillary.store.throughput import provisioned as throughput
from armillary.store.throughput.offers import ScalingRecord


def ids(container: Container) -> list[int]:
    return sorted(int(one.id) for one in container.partitions())


def fill(container: Container, items: int = 60) -> None:
    container.bulk(("create", ({"id": str(n), "pk": f"k{n}"},)) for n in range(items))


def before_each_step(monkeypatch: pytest.MonkeyPatch, name: str, act: Any) -> None:
    """`act` once, before the first step of that name."""
    step = Move.step
    done: list[str] = []

    def stepping(move: Move) -> None:
        if move.next == name and not done:
            done.append(name)
            act()
        step(move)

    monkeypatch.setattr(Move, "step", stepping)


def test_a_what_if_says_what_would_be_and_changes_nothing(memory: World) -> None:
    container = memory.container(physical_partitions=5, throughput=400)
    fill(container)
    plan = container.plan_merge()
    assert [merge.sources for merge in plan.merges] == [(0, 1, 2, 3, 4)]
    assert plan.kilobytes.keys() == {5}
    assert ids(container) == [0, 1, 2, 3, 4]


def test_a_merge_makes_one_of_five(world: World) -> None:
    container = world.container(physical_partitions=5, throughput=400)
    fill(container)
    before = sorted(map(str, everything(container)))
    plan = container.merge_partitions()
    assert ids(container) == [5] == [ordinal for ordinal, _ in plan.layout]
    assert sorted(map(str, everything(container))) == before
    done = container.read_throughput().history[-1]
    assert (done.status, done.message, done.splits, done.splits_done) == (
        "Succeeded",
        MESSAGE,
        1,
        1,
    )
    assert container.partitions()[0].parents == ("0", "1", "2", "3", "4")
    check(container)


def test_the_throughput_of_the_moment_decides_how_many_stay(memory: World) -> None:
    container = memory.container(physical_partitions=10, throughput=25_000)
    fill(container)
    container.merge_partitions()
    assert len(ids(container)) == 3


def test_partitions_with_much_throughput_or_much_data_stay(memory: World) -> None:
    rich = memory.container("rich", physical_partitions=2, throughput=6_000)
    assert rich.merge_partitions().merges == ()
    assert rich.read_throughput().history == ()
    with open_world(":memory:", partition_bytes=20_000) as world:
        full = world.container(physical_partitions=2, throughput=400)
        fill(full, 100)
        assert full.plan_merge().merges == ()


def test_shares_set_by_hand_come_first(memory: World) -> None:
    container = memory.container(physical_partitions=2, throughput=1_000)
    throughput.redistribute_throughput(store_of(container), {0: 800})
    with pytest.raises(BadInput, match="evenly"):
        container.merge_partitions()


def test_a_container_that_shares_merges_by_its_databases_throughput(memory: World) -> None:
    shared = memory.account.create_database("shared", throughput=1_000)
    container = shared.create_container("items", "/pk", physical_partitions=3)
    fill(container)
    container.merge_partitions()
    assert ids(container) == [3]
    check(container)


def test_a_second_operation_waits_for_the_first(memory: World) -> None:
    container = memory.container(physical_partitions=3, throughput=10_000)
    container.replace_throughput(40_000)
    with pytest.raises(Locked):
        container.merge_partitions()


def test_less_throughput_applies_while_a_merge_runs(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = memory.container(physical_partitions=3, throughput=800)
    fill(container)
    before_each_step(monkeypatch, "copy", lambda: container.replace_throughput(400))
    container.merge_partitions()
    offer = container.read_throughput()
    assert (offer.ru, offer.pending, offer.history[-1].status) == (400, None, "Succeeded")
    assert ids(container) == [3]


def test_more_throughput_cancels_a_merge(memory: World, monkeypatch: pytest.MonkeyPatch) -> None:
    container = memory.container(physical_partitions=3, throughput=400, default_ttl=None)
    fill(container)
    before_each_step(monkeypatch, "replay", lambda: container.replace_throughput(20_000))
    container.merge_partitions()
    offer = container.read_throughput()
    assert (offer.ru, offer.pending, offer.history[-1].status) == (20_000, None, "Cancelled")
    assert ids(container) == [0, 1, 2]
    as_before(container)
    assert len(everything(container)) == 60
    container.create_item({"id": "new", "pk": "new"})
    check(container)


def as_before(container: Container) -> None:
    """No move is left, and no range keeps changes for one."""
    store = store_of(container)
    state = store.refresh()
    assert state.record.moves == ()
    for owner in state.table.ranges:
        with store.engine.read(owner.space) as reader:
            assert not unpack_meta(reader.meta).keep_log
    assert set(store.engine.spaces()) == {0, *(owner.space for owner in state.table.ranges)}


def test_other_settings_cancel_a_merge(memory: World, monkeypatch: pytest.MonkeyPatch) -> None:
    container = memory.container(physical_partitions=3, throughput=400)
    fill(container)
    before_each_step(
        monkeypatch, "copy", lambda: memory.database.replace_container("items", defaultTtl=3600)
    )
    container.merge_partitions()
    assert container.read_throughput().history[-1].status == "Cancelled"
    assert ids(container) == [0, 1, 2]
    as_before(container)


def asked_for(container: Container, *groups: tuple[int, ...]) -> None:
    """As a process leaves it that dies right after the merge was recorded."""
    store = store_of(container)
    offer = container.read_throughput()
    pending = ScalingRecord(
        offer.version, offer.ru, offer.ru, 0, merges=groups, splits=len(groups), settings=1
    )
    from dataclasses import replace

    throughput.save_offer(store.engine, replace(offer, pending=pending))


def test_a_merge_that_its_runner_left_is_finished_by_another(memory: World) -> None:
    container = memory.container(physical_partitions=4, throughput=400)
    fill(container)
    asked_for(container, (0, 1), (2, 3))
    container.merge([0, 1])  # done, but its runner did not live to say so
    memory.account.settle()
    assert len(ids(container)) == 2
    done = container.read_throughput().history[-1]
    assert (done.status, done.splits_done) == ("Succeeded", 2)


def test_a_merge_gives_way_to_a_split_under_way(memory: World) -> None:
    container = memory.container(physical_partitions=2, throughput=400)
    fill(container)
    asked_for(container, (0, 1))
    move = begin_split(store_of(container), 0)
    with pytest.raises(Locked):
        run_merges(store_of(container))
    move.run()
    assert merges.run_merges(store_of(container)) is not None
    assert container.read_throughput().pending is None


def test_a_merge_leaves_the_writer_to_others_as_a_split_does(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = memory.container(physical_partitions=5, throughput=400)
    fill(container)
    rests: list[float] = []
    run_all = Move._run_all

    def slow(move: Move, commands: list[tuple[int, str, Any]]) -> None:
        memory.clock.advance(0.007)
        run_all(move, commands)

    monkeypatch.setattr(Move, "_run_all", slow)
    monkeypatch.setattr("armillary.store.moves.filling.Filling.note", lambda *_: True)
    monkeypatch.setattr("armillary.store.moves.runner.time.sleep", rests.append)
    container.merge_partitions()
    assert set(rests) == {0.007}


def test_splits_merges_and_more_throughput_have_one_runner(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one of them does for writers the others do too."""
    ran: list[int] = []
    run = Move.run

    def noted(self: Move, *arguments: Any) -> bool:
        ran.append(len(self.parents))
        return run(self, *arguments)

    monkeypatch.setattr(Move, "run", noted)
    container = memory.container(throughput=400)
    fill(container)
    container.split(0)
    assert ran == [1]
    container.merge(ids(container))
    assert ran == [1, 2]
    container.replace_throughput(20_000)
    memory.account.settle()
    assert ran == [1, 2, 1]
    container.replace_throughput(400)
    container.merge_partitions()
    assert ran == [1, 2, 1, 2]
    assert len(ids(container)) == 1
    as_before(container)
