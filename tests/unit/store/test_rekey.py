"""Without these, a container with another key could miss items, or keep what was deleted."""

from itertools import count
from random import Random
from typing import Any

import pytest
from tests.support.accounts import World, check, everything, plain

from armillary import steps
from armillary.container import Container, Item
from armillary.errors import BadInput, Conflict, ContainerClosed, NotFound
from armillary.keys import SyntheticKey
from armillary.limits import REKEY_LEFT_MAX, REKEY_PAGE_ITEMS
from armillary.store.migration import records as rekey_records
from armillary.values import UNDEFINED

ITEMS = 230


class Stopped(Exception):
    """As a kill, but within the process."""


def fill(container: Container, items: int = ITEMS) -> None:
    container.bulk(("create", (item(n),)) for n in range(items))


def item(n: int, /, **changes: Any) -> Item:
    return {"id": str(n), "pk": f"k{n % 7}", "city": f"c{n % 11}", "n": n} | changes


def by_id(container: Container) -> list[Item]:
    return sorted(everything(container), key=lambda one: int(str(one["id"])))


def moved(world: World, **options: Any) -> tuple[Container, Container, Any]:
    source = world.database.container("items")
    before = [dict(one) for one in source.read_all_items()] if "progress" not in options else None
    report = world.database.rekey("items", "target", **({"partition_key": "/city"} | options))
    if before is not None:
        assert [dict(one) for one in source.read_all_items()] == before, "the source was touched"
    target = world.database.container("target")
    check(target)
    return source, target, report


def test_every_item_arrives_under_the_new_key(world: World) -> None:
    source = world.container(default_ttl=-1, unique_keys=[["/n"]])
    fill(source)
    seen: list[str] = []
    _, target, report = moved(world, progress=lambda one: seen.append(one.phase))
    assert by_id(target) == by_id(source)
    assert report.verified
    assert (report.copied, report.left) == (ITEMS, ())
    assert target.read_item("5", "c5")["n"] == 5
    properties = target.properties()
    assert properties["defaultTtl"] == -1
    assert properties["uniqueKeyPolicy"] == source.properties()["uniqueKeyPolicy"]
    assert seen.count("copy") == -(-ITEMS // REKEY_PAGE_ITEMS)
    assert rekey_records.load(world.account._engine, "shop", "target") is None


def test_from_fixed_to_one_that_grows(memory: World) -> None:
    fixed = memory.container(key=None)
    for n in range(30):
        fixed.create_item({"id": str(n), "city": f"c{n % 5}"})
    _, target, report = moved(memory)
    assert report.verified
    assert by_id(target) == by_id(fixed)
    target.split(0)
    assert len(target.partitions()) == 2


def test_a_hierarchical_key(memory: World) -> None:
    fill(memory.container())
    _, target, report = moved(memory, partition_key=["/city", "/pk"])
    assert report.verified
    assert target.read_item("3", ["c3", "k3"])["n"] == 3


def test_a_synthetic_key_with_a_random_suffix(memory: World) -> None:
    """The suffix is drawn once for each item, however often it is brought over."""
    source = memory.container()
    fill(source)
    spec: dict[str, Any] = {
        "version": 1,
        "path": "/key",
        "parts": ["/city"],
        "suffix": {"kind": "random", "k": 20},
    }

    def change(progress: Any) -> None:
        source.upsert_item(item(5, n=-1))

    _, target, report = moved(
        memory, partition_key=None, synthetic_key=SyntheticKey.from_json(spec), progress=change
    )
    assert report.verified, "nothing was added or removed, however much was changed"
    assert len(by_id(target)) == ITEMS
    suffixes = {str(one["key"]).rpartition("-")[2] for one in everything(target)}
    assert len(suffixes) > 15
    assert target.read_item("5", known={"city": "c5"})["n"] == -1
    with pytest.raises(BadInput, match="overwrite"):
        memory.database.rekey("items", "again", synthetic_key=spec | {"path": "/pk"})


def test_duplicates_are_reported_and_the_first_stays(memory: World) -> None:
    source = memory.container()
    for pk in ("a", "b", "c"):
        source.create_item({"id": "1", "pk": pk, "city": "x"})
        source.create_item({"id": "2", "pk": pk, "city": f"of {pk}"})
    _, target, report = moved(memory)
    assert report.verified
    assert sorted(one.key[0] for one in report.left) == ["b", "c"]
    assert {one.id for one in report.left} == {"1"}
    assert "['a']" in report.left[0].why
    assert len(everything(target)) == 4


def test_a_key_that_fits_no_item_is_given_up_early(memory: World) -> None:
    source = memory.container()
    count = REKEY_LEFT_MAX + 50
    source.bulk(("create", ({"id": "1", "pk": f"k{n}"},)) for n in range(count))
    with pytest.raises(BadInput, match="Choose another key"):
        memory.database.rekey("items", "target", "/city")


def test_items_the_target_refuses_are_reported(memory: World) -> None:
    source = memory.container()
    source.create_item({"id": "1", "pk": "a", "city": ["not", "a", "key"]})
    source.create_item({"id": "2", "pk": "a", "city": "good"})
    _, target, report = moved(memory)
    assert [one.id for one in report.left] == ["1"]
    assert len(everything(target)) == 1
    assert report.verified


@pytest.mark.parametrize("retention", [None, 10])
@pytest.mark.parametrize("seed", range(6))
def test_the_source_is_used_meanwhile(memory: World, seed: int, retention: int | None) -> None:
    """Created, changed, moved to another new key and deleted between any two steps."""
    source = memory.container(change_feed_retention_minutes=retention)
    fill(source)
    random = Random(seed)
    left = 25

    def use(progress: Any) -> None:
        nonlocal left
        if left == 0:
            return
        left -= 1
        for _ in range(6):
            n = random.randrange(ITEMS + 50)
            if random.random() < 0.3:
                try:
                    source.delete_item(str(n), f"k{n % 7}")
                except NotFound:
                    continue
            else:
                source.upsert_item(item(n, city=f"c{random.randrange(4)}", n=random.random()))

    report = memory.database.rekey("items", "target", "/city", progress=use)
    target = memory.database.container("target")
    assert by_id(target) == by_id(source)
    assert report.verified
    check(target)


@pytest.mark.parametrize("retention", [None, 10])
def test_stopped_after_any_step_it_goes_on(memory: World, retention: int | None) -> None:
    source = memory.container(change_feed_retention_minutes=retention)
    fill(source)
    count = 0

    def stop(name: str) -> None:
        nonlocal count
        if name.startswith("rekey.") and count < 20:
            count += 1
            raise Stopped

    runs = 0
    steps.listen(stop)
    try:
        while True:
            runs += 1
            assert runs < 50
            try:
                memory.database.rekey("items", "target", "/city")
                break
            except Stopped:
                if count == 2:
                    source.delete_item("1", "k1")
                    source.upsert_item(item(2, city="elsewhere"))
                if rekey_records.load(memory.account._engine, "shop", "target") is None:
                    break  # after the last step
    finally:
        steps.listen(None)
    assert runs > 5
    assert by_id(memory.database.container("target")) == by_id(source)


def test_the_target_has_to_be_new(memory: World) -> None:
    fill(memory.container(), 3)
    memory.container("target", "/city")
    with pytest.raises(Conflict):
        memory.database.rekey("items", "target", "/city")
    with pytest.raises(BadInput):
        memory.database.rekey("items", "items", "/city")
    with pytest.raises(NotFound):
        memory.database.rekey("nobody", "new", "/city")


def test_a_target_deleted_half_way_begins_again(memory: World) -> None:
    source = memory.container()
    fill(source)

    def stop(progress: Any) -> None:
        raise Stopped

    for _ in range(2):
        with pytest.raises(Stopped):
            memory.database.rekey("items", "target", "/city", progress=stop)
    memory.database.delete_container("target")
    assert memory.database.rekey("items", "target", "/city").verified
    assert by_id(memory.database.container("target")) == by_id(source)


def test_a_run_with_another_key_does_not_go_on(memory: World) -> None:
    fill(memory.container())

    def stop(progress: Any) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        memory.database.rekey("items", "target", "/city", progress=stop)
    with pytest.raises(Conflict):
        memory.database.rekey("items", "target", "/n")


def test_an_item_is_what_it_was(memory: World) -> None:
    source = memory.container()
    source.create_item({"id": "1", "pk": "a", "city": "b", "deep": {"x": [1, 2.5, None]}})
    _, target, _ = moved(memory)
    assert plain(target.read_item("1", "b")) == plain(source.read_item("1", "a"))


def test_a_cut_over_closes_the_source_and_loses_no_write(world: World) -> None:
    """Writers go on until the source refuses them: what was acknowledged is in the target."""
    source = world.container(key=None)
    fill(source)
    acknowledged: dict[str, Item] = {str(n): item(n) for n in range(ITEMS)}
    refused: list[str] = []
    numbers = count()

    def write(progress: Any) -> None:
        """Between any two steps: creates, changes of the new key, deletes."""
        n = ITEMS + next(numbers)
        try:
            source.create_item(item(n))
            acknowledged[str(n)] = item(n)
            source.upsert_item(item(n % ITEMS, city=f"moved{n}"))
            acknowledged[str(n % ITEMS)] = item(n % ITEMS, city=f"moved{n}")
            gone = str((n * 7) % ITEMS)
            if gone in acknowledged and gone != str(n % ITEMS):
                source.delete_item(gone, UNDEFINED)
                del acknowledged[gone]
        except ContainerClosed as error:
            refused.append(error.message)

    _, target, report = moved(world, progress=write, cut_over=True)
    assert refused, "the source was never closed"
    assert all("target" in text for text in refused)
    assert (report.verified, report.closed, report.different, report.left) == (True, True, 0, ())
    assert report.logical_partitions == len({str(one["city"]) for one in everything(target)})
    assert {str(one["id"]): plain(one) for one in everything(target)} == acknowledged
    with pytest.raises(ContainerClosed):
        source.upsert_item(item(1))
    assert source.read_item(next(iter(acknowledged)), UNDEFINED) is not None  # reads go on
    again = world.database.rekey("items", "target", "/city", cut_over=True)
    assert (again.closed, again.target_items) == (True, len(acknowledged))
    world.database.reopen_container("items")
    source.upsert_item(item(1))


@pytest.mark.parametrize("phase", ["copy", "follow", "compare", "verify", "close", "finish"])
def test_a_cut_over_goes_on_after_a_stop_at_any_phase(world: World, phase: str) -> None:
    source = world.container()
    fill(source)

    def stop(progress: Any) -> None:
        if progress.phase == phase:
            raise Stopped

    with pytest.raises(Stopped):
        world.database.rekey("items", "target", "/city", cut_over=True, progress=stop)
    report = world.database.rekey("items", "target", "/city", cut_over=True)
    assert (report.verified, report.closed) == (True, True)
    assert by_id(world.database.container("target")) == by_id(source)


def test_a_damaged_copy_is_found_by_its_checksum_and_the_source_opened_again(world: World) -> None:
    """The counts agree: one item of the target was changed behind the back of the migration."""
    source = world.container()
    fill(source)

    def spoil(progress: Any) -> None:
        if progress.phase == "close":
            world.database.container("target").upsert_item(item(5, n=-1))

    report = world.database.rekey("items", "target", "/city", cut_over=True, progress=spoil)
    assert (report.verified, report.different) == (False, 1)
    source.upsert_item(item(1))


def test_items_without_the_new_key_are_counted(world: World) -> None:
    fill(world.container())
    seen: list[tuple[int, int]] = []
    report = world.database.rekey(
        "items", "target", "/nowhere", progress=lambda now: seen.append((now.copied, now.keyless))
    )
    assert report.keyless == ITEMS
    assert seen[1] == (REKEY_PAGE_ITEMS, REKEY_PAGE_ITEMS), "known after the first page"
