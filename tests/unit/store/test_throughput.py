"""Without these, the reference numbers of provisioning and scaling would hold on paper only: here
they go through an account, its splits and its budgets (partitioning 1.3 to 1.6).
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.accounts import World, check, everything, open_world, refusal, store_of

from armillary.container import Container
from armillary.encoding.hashing import epk
from armillary.errors import (
    BadInput,
    ContainerFull,
    Locked,
    NotSplittable,
    SharedContainersFull,
    Stale,
    Throttled,
)
from armillary.partition.provisioning.partitions import instant_maximum
from armillary.partition.provisioning.scaling import even_target
from armillary.store.moves.runner import begin_split
from armillary.store.throughput import provisioned as throughput
from armillary.store.upkeep.housekeeper import keep_house


def ids(container: Container) -> list[int]:
    return sorted(int(one.id) for one in container.partitions())


def parents(container: Container) -> dict[int, tuple[str, ...]]:
    return {int(one.id): one.parents for one in container.partitions()}


def fill(container: Container, items: int = 60) -> None:
    container.bulk(("create", ({"id": str(n), "pk": f"k{n}"},)) for n in range(items))


@pytest.fixture
def enforcing() -> Iterator[World]:
    with open_world(":memory:", enforce="on") as world:
        yield world


# --- how many ranges ------------------------------------------------------------------------------


def test_three_cities_are_three_logical_partitions_of_one_physical(memory: World) -> None:
    flights = memory.container("flights", "/airport", throughput=400)
    for airport, number in [("LAX", 1), ("AMS", 2), ("MEL", 3), ("LAX", 4)]:
        flights.create_item({"id": str(number), "airport": airport})
    assert ids(flights) == [0]
    found = {str(one.key[0]): one.items for one in flights.logical_partitions()}
    assert found == {"LAX": 2, "AMS": 1, "MEL": 1}


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ({"throughput": 20_000}, 4),
        ({"autoscale_max": 20_000}, 2),
        ({"throughput": 150_000}, 25),
        ({"autoscale_max": 250_000}, 25),
        ({"throughput": 400}, 1),
    ],
)
def test_ranges_at_creation(memory: World, asked: dict[str, int], count: int) -> None:
    devices = memory.container("devices", "/deviceId", **asked)
    assert len(ids(devices)) == count


def test_thirty_to_forty_five_thousand_splits_two_of_three(world: World) -> None:
    container = world.container(physical_partitions=3, throughput=30_000)
    fill(container)
    before = everything(container)
    offer = container.replace_throughput(45_000)
    assert offer.ru == 30_000
    assert offer.pending is not None
    with pytest.raises(Locked) as caught:
        container.replace_throughput(50_000)
    assert refusal(lambda: container.replace_throughput(50_000)).status == 423
    assert "30000 to 45000" in str(caught.value)
    world.account.settle()
    assert len(ids(container)) == 5
    made = sorted(parent for parent in parents(container).values() if parent)
    assert made[0] == made[1]
    assert made[2] == made[3]
    assert {made[0], made[2]} < {("0",), ("1",), ("2",)}
    offer = container.read_throughput()
    assert (offer.ru, offer.pending) == (45_000, None)
    assert offer.history[-1].status == "Succeeded"
    assert offer.history[-1].splits_done == 2
    assert sorted(map(str, everything(container))) == sorted(map(str, before))
    check(container)


def test_five_ranges_serve_fifty_thousand_at_once(memory: World) -> None:
    container = memory.container(physical_partitions=5, throughput=30_000)
    assert instant_maximum(5) == 50_000
    assert container.replace_throughput(50_000).pending is None
    assert container.replace_throughput(50_100).pending is not None


def test_an_even_scale_up_goes_by_doubling(memory: World) -> None:
    container = memory.container(physical_partitions=5, throughput=30_000)
    first = even_target(150_000, 5)
    assert first == 200_000
    container.replace_throughput(first)
    memory.account.settle()
    assert len(ids(container)) == 20
    assert container.replace_throughput(150_000).pending is None
    assert [len(one) for one in parents(container).values()] == [2] * 20, "each was cut twice"


def test_one_to_three_takes_two_rounds(memory: World) -> None:
    container = memory.container(throughput=10_000, physical_partitions=1)
    fill(container)
    container.replace_throughput(30_000)
    memory.account.settle()
    assert sorted(map(len, parents(container).values())) == [1, 2, 2]


def test_the_smallest_after_a_peak(memory: World) -> None:
    container = memory.container(throughput=50_000)
    assert throughput.minimum(container.read_throughput(), 20 * 10**9) == 500
    assert throughput.minimum(container.read_throughput(), 2_000 * 10**9) == 2_000
    with pytest.raises(BadInput):
        container.replace_throughput(400)
    assert container.replace_throughput(500).ru == 500
    assert len(ids(container)) > 1, "less throughput merges nothing"


def test_a_scaling_that_its_runner_left_is_finished_by_another(memory: World) -> None:
    container = memory.container(physical_partitions=2, throughput=20_000)
    fill(container)
    container.replace_throughput(40_000)
    store = store_of(container)
    assert throughput._split(store, 0)  # it died after the first split, before it could say so
    memory.account.settle()
    assert len(ids(container)) == 4
    assert container.read_throughput().ru == 40_000


def test_a_scaling_goes_on_with_ranges_it_has_not_cut_however_full_the_children(
    memory: World,
) -> None:
    """Cutting a child again instead would leave one parent with twice the load of the others."""
    container = memory.container(physical_partitions=2, throughput=20_000)
    fill(container)
    container.replace_throughput(40_000)
    store = store_of(container)
    assert throughput._split(store, 0)
    state = store.refresh()
    for n in range(60):
        if state.table.find(epk((f"k{n}",), state.definition.partition_key)).ordinal == 2:
            container.upsert_item({"id": str(n), "pk": f"k{n}", "text": "x" * 10_000})
    memory.account.settle()
    assert ids(container) == [2, 3, 4, 5]


def test_a_scaling_waits_for_a_split_under_way(memory: World) -> None:
    """Two runners that do not know of each other must not spin, nor split a range too much."""
    container = memory.container(physical_partitions=2, throughput=20_000)
    fill(container)
    container.replace_throughput(40_000)
    move = begin_split(store_of(container), 1)
    assert keep_house(memory.account._store), "one look leaves it to the other runner"
    assert container.read_throughput().pending is not None
    move.run()
    memory.account.settle()
    assert len(ids(container)) == 4


def test_settling_takes_over_a_split_whose_runner_is_silent(memory: World) -> None:
    """It used to end early, with the throughput still pending."""
    container = memory.container(physical_partitions=2, throughput=20_000)
    fill(container)
    container.replace_throughput(40_000)
    move = begin_split(store_of(container), 1)
    memory.account.settle()
    assert container.read_throughput().ru == 40_000
    assert len(ids(container)) == 4
    with pytest.raises(Stale):
        move.step()
    check(container)


def test_settling_waits_for_a_split_of_a_full_partition(memory: World) -> None:
    with open_world(":memory:", partition_bytes=20_000) as world:
        container = world.container()
        fill(container, 200)
        begin_split(store_of(container), 0).step()
        world.account.settle()
        assert all(one.size_bytes < 20_000 for one in container.partitions())
        check(container)


# --- redistribution -------------------------------------------------------------------------------


def test_two_runners_together_split_no_more_than_is_needed(
    memory: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second comes when the first has planned: it splits another range, then all is done, and
    what the first has planned would be one too many."""
    container = memory.container(physical_partitions=2, throughput=20_000)
    fill(container)
    container.replace_throughput(30_000)
    store, plan = store_of(container), throughput._next_round

    def planned_before_another_split(*arguments: Any) -> Any:
        found = plan(*arguments)
        monkeypatch.setattr(throughput, "_next_round", plan)
        assert [split.parent for split in found] != [1]
        assert throughput._split(store, 1)
        return found

    monkeypatch.setattr(throughput, "_next_round", planned_before_another_split)
    with pytest.raises(Locked):
        throughput.run_scaling(store)
    assert len(ids(container)) == 3
    memory.account.settle()
    assert len(ids(container)) == 3
    assert container.read_throughput().ru == 30_000


def test_redistribution_splits_the_hot_one(memory: World) -> None:
    """{0: 3,000, 1: 3,000} with targets {0: 5,000, 1: 20,000}."""
    container = memory.container(physical_partitions=2, throughput=6_000)
    fill(container)
    store = store_of(container)
    now = throughput.redistribute_throughput(store, {0: 5_000, 1: 20_000})
    assert now.shares == {0: 5_000, 1: 10_000}
    memory.account.settle()
    offer = container.read_throughput()
    assert offer.shares == {0: 5_000, 2: 10_000, 3: 10_000}
    assert (offer.ru, offer.pending) == (25_000, None)
    with pytest.raises(BadInput):
        container.replace_throughput(30_000)
    assert throughput.evenly_distribute(store).shares == {}
    assert container.replace_throughput(30_000).ru == 30_000


def test_shares_are_set_and_made_equal_again_through_the_container(memory: World) -> None:
    container = memory.container(physical_partitions=2, throughput=6_000)
    fill(container)
    assert container.redistribute_throughput({"0": 5_000, 1: 20_000}).pending is not None
    with pytest.raises(Locked):
        container.replace_throughput(6_000)
    memory.account.settle()
    assert container.read_throughput().shares == {0: 5_000, 2: 10_000, 3: 10_000}
    with pytest.raises(BadInput):
        container.replace_throughput(30_000)
    assert container.distribute_evenly().ru == 25_000
    assert container.replace_throughput(30_000).ru == 30_000


def test_a_redistribution_is_not_lost_with_its_runner(memory: World) -> None:
    """It dies between the split and the word of it: the shares went with the switch."""
    container = memory.container(physical_partitions=2, throughput=6_000)
    fill(container)
    store = store_of(container)
    throughput.redistribute_throughput(store, {0: 5_000, 1: 20_000})
    assert throughput._split(store, 1)
    memory.account.settle()
    offer = container.read_throughput()
    assert offer.shares == {0: 5_000, 2: 10_000, 3: 10_000}
    assert offer.pending is None


def test_shares_follow_splits_and_merges_for_other_reasons(enforcing: World) -> None:
    container = enforcing.container(physical_partitions=2, throughput=6_000)
    fill(container)
    throughput.redistribute_throughput(store_of(container), {0: 1_000, 1: 4_000})
    other = enforcing.another(container)
    other.read_all_items(page_size=1).__next__()  # remembers what is provisioned
    container.split(1)
    enforcing.clock.advance(0.1)
    assert len(everything(other)) == 60, "a range the remembered offer has no share for"
    assert container.read_throughput().shares == {0: 1_000, 2: 2_000, 3: 2_000}
    container.merge([2, 3])
    assert container.read_throughput().shares == {0: 1_000, 4: 4_000}
    enforcing.clock.advance(2)
    assert len(everything(other)) == 60


# --- fixed, full, unsplittable --------------------------------------------------------------------


def test_a_fixed_container_stays_one_range() -> None:
    with open_world(":memory:", partition_bytes=20_000, logical_bytes=50_000) as world:
        fixed = world.container(key=None)
        n = 0
        with pytest.raises(ContainerFull) as caught:
            for n in range(1_000):
                fixed.create_item({"id": str(n), "text": "x" * 500})
        assert n > 40
        assert "50 KB" in str(caught.value)
        world.account.settle()
        assert ids(fixed) == [0]
        with pytest.raises(BadInput, match="10,000"):
            fixed.replace_throughput(10_100)
        assert fixed.replace_throughput(10_000).ru == 10_000
        with pytest.raises(BadInput, match="10,000"):
            throughput.redistribute_throughput(store_of(fixed), {0: 20_000})


def test_a_fixed_container_with_a_key_never_grows_unless_it_began_with_a_thousand() -> None:
    """The rule of 2018 (partitioning 1.2): one with 1,000 RU/s at creation is as any other."""
    with open_world(":memory:", partition_bytes=20_000, logical_bytes=50_000) as world:
        small = world.container("small", fixed=True, throughput=900)
        large = world.container("large", fixed=True, throughput=1_000)
        plain = world.container("plain", throughput=900)
        assert [one.kind for one in (small, large, plain)] == ["fixed", "unlimited", "unlimited"]
        with pytest.raises(BadInput, match="never grows"):
            world.container("two", fixed=True, throughput=900, physical_partitions=2)

        def overfill(container: Container) -> None:
            for n in range(200):
                container.create_item({"id": str(n), "pk": f"k{n}", "text": "x" * 500})

        reply = refusal(lambda: overfill(small))
        assert (reply.status, reply.sub_status) == (403, 0)
        assert "maximum size of 50 KB" in reply.message
        overfill(large)
        overfill(plain)
        world.account.settle()
        assert ids(small) == [0]
        assert len(ids(large)) > 1
        assert len(ids(plain)) > 1
        with pytest.raises(NotSplittable, match="never grows"):
            small.split(0)
        with pytest.raises(BadInput, match="10,000"):
            small.replace_throughput(10_100)
        assert small.replace_throughput(10_000).ru == 10_000
        small.delete_item("0", "k0")
        small.create_item({"id": "0", "pk": "k0"})
        grown = world.database.rekey("small", "grown", "/pk", throughput=1_000)
        assert grown.verified
        assert world.database.container("grown").kind == "unlimited"
        check(small, large, plain)


def test_a_fixed_container_is_unlimited_where_throughput_is_shared() -> None:
    with open_world(":memory:") as world:
        shared = world.account.create_database("shared", throughput=400)
        assert shared.create_container("c", "/pk", fixed=True).kind == "unlimited"


def test_under_the_classic_profile_what_was_asked_for_at_creation_decides() -> None:
    with open_world(":memory:", profile="classic") as world:
        asked = {"a": 400, "b": 900, "c": 1_000, "d": 20_000}
        made = [world.container(name, throughput=ru).kind for name, ru in asked.items()]
        assert made == ["fixed", "fixed", "unlimited", "unlimited"]
        assert world.container("none").kind == "unlimited", "nothing was asked for"


def test_a_full_key_is_refused_with_the_limit_in_the_text() -> None:
    with open_world(":memory:", partition_bytes=30_000, logical_bytes=2_000_000) as world:
        container = world.container()
        text = {"text": "x" * 100_000}

        def overfill() -> None:
            for n in range(100):
                container.create_item({"id": str(n), "pk": "one"} | text)

        reply = refusal(overfill)
        assert (reply.status, reply.sub_status) == (403, 1014)
        assert "Partition key reached maximum size of 2 MB" in reply.message
        container.create_item({"id": "1", "pk": "another"})


def test_a_partition_of_one_key_is_left_whole_and_the_others_split() -> None:
    with open_world(":memory:", partition_bytes=100_000) as world:
        container = world.container()
        for n in range(120):
            container.create_item({"id": str(n), "pk": "hot", "text": "x" * 1_000})
        for n in range(60):
            container.create_item({"id": str(n), "pk": f"k{n}", "text": "x" * 1_000})
        world.account.settle()
        (alone,) = [one for one in container.partitions() if one.size_bytes >= 100_000]
        (key,) = [one for one in container.logical_partitions() if one.partition == alone.id]
        assert key.key == ["hot"]
        with pytest.raises(NotSplittable):
            container.split(alone.id)
        world.account.settle()  # again: nothing happens
        check(container)


# --- shared throughput ----------------------------------------------------------------------------


def test_the_twenty_sixth_container_is_refused(memory: World) -> None:
    shared = memory.account.create_database("shared", throughput=1_000)
    for n in range(25):
        shared.create_container(f"c{n}", "/pk")
    with pytest.raises(SharedContainersFull):
        shared.create_container("c25", "/pk")
    shared.create_container("own", "/pk", throughput=400)
    shared.delete_container("c3")
    shared.create_container("c25", "/pk")
    with pytest.raises(BadInput, match="partition key"):
        shared.create_container("fixed")


def spend(container: Container, name: str) -> int:
    """Writes until the first refusal."""
    for n in range(10_000):
        try:
            container.create_item({"id": f"{name}{n}", "pk": f"k{n}"})
        except Throttled:
            return n
    return 10_000


def test_containers_draw_on_one_budget(enforcing: World) -> None:
    shared = enforcing.account.create_database("shared", throughput=400)
    first, second = (shared.create_container(name, "/pk") for name in ("a", "b"))
    own = shared.create_container("own", "/pk", throughput=400)
    alone = spend(first, "x")
    assert alone > 10
    assert spend(second, "x") == 0, "the other one has used it up"
    assert spend(own, "x") == alone, "its own throughput is its own"
    enforcing.clock.advance(2)
    assert spend(second, "y") == alone


def test_each_range_has_its_own_budget(enforcing: World) -> None:
    """And a split of it halves what a key can use: the hot partition of the documents."""
    container = enforcing.container(physical_partitions=1, throughput=1_000)
    one_key = [{"id": str(n), "pk": "hot"} for n in range(2_000)]

    def admitted(offset: int) -> int:
        for n in range(1_000):
            try:
                container.create_item(one_key[offset + n])
            except Throttled:
                return n
        return 1_000

    whole = admitted(0)
    fill_left = [{"id": "1", "pk": f"k{n}"} for n in range(40)]
    for item in fill_left:
        enforcing.clock.advance(1)
        container.create_item(item)
    container.split(0)
    enforcing.clock.advance(2)
    half = admitted(1_000)
    assert whole / 2 - 2 <= half <= whole / 2 + 2


# --- what is seen of it ---------------------------------------------------------------------------


def test_a_hot_partition_is_found_with_its_key(enforcing: World) -> None:
    """One range at its end for ten minutes while the other is quiet, and an hour of history."""
    container = enforcing.container(physical_partitions=2, throughput=2_000)
    container.create_item({"id": "1", "pk": "a"})
    store = store_of(container)
    hot = store.state.table.ranges[0]
    assert container.hot_partitions() == []
    for _ in range(10):
        store.charge(hot.start, 1_000, operation="read")
        store.charge(store.state.table.ranges[1].start, 100, operation="read")
        enforcing.clock.advance(60)
    (found,) = container.hot_partitions()
    assert (found.ordinal, found.percent) == (hot.ordinal, 100)
    minutes = container.heat()[str(hot.ordinal)].minutes
    assert len(minutes) == 61
    assert sum(one.normalised == 100 for one in minutes) == 10


def test_the_first_refusal_of_a_container_says_why_and_what_to_do(
    enforcing: World, caplog: pytest.LogCaptureFixture
) -> None:
    container = enforcing.container("busy", throughput=400)
    spend(container, "x")
    spend(container, "y")
    lines = [one.getMessage() for one in caplog.records if one.name == "armillary.throughput"]
    assert len(lines) == 1, lines
    for text in ("busy", "400 RU/s", "429", "containers scale", "--enforce off"):
        assert text in lines[0]
