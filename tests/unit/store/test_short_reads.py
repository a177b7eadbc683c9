"""The short way finds what the long way finds, or says nothing."""

import pytest

import armillary
from armillary.container import Container
from armillary.errors import BadInput, NotFound
from armillary.store.items.fast_reads import read_json

V2 = {"paths": ["/k"], "kind": "Hash", "version": 2}
V1 = {"paths": ["/k"], "kind": "Hash", "version": 1}


def _container(key: dict[str, object] = V2, **options: object) -> Container:
    account = armillary.open(":memory:", housekeeping=False, seed=1)
    container = account.create_database("d").create_container(
        "c",
        key,
        physical_partitions=4,
        **options,  # type: ignore[arg-type]
    )
    for key_value in ("a", "b", "ключ"):
        for item_id in ("1", "длинный", "x" * 200):
            container.create_item({"id": item_id, "k": key_value})
    return container


def test_both_ways_find_the_same_bytes() -> None:
    container = _container()
    container.read_item("1", "a")
    short = 0
    for key in ("a", "b", "ключ"):
        for item_id in ("1", "длинный", "x" * 200):
            expected = container._read(item_id, key).text
            found = read_json(container._store, item_id, key)
            assert found in (None, expected)
            assert container.read_item_bytes(item_id, key) == expected
            short += found is not None
    assert short == 2, "the ordinary items are read the short way"


@pytest.mark.parametrize(
    ("key", "options"), [(V1, {}), (V2, {"default_ttl": 100})], ids=["hash V1", "time to live"]
)
def test_what_it_does_not_know_it_leaves_alone(
    key: dict[str, object], options: dict[str, object]
) -> None:
    container = _container(key, **options)
    container.read_item("1", "a")
    assert read_json(container._store, "1", "a") is None
    assert container.read_item("1", "a")["id"] == "1"


def test_a_miss_is_refused_by_the_long_way() -> None:
    container = _container()
    for bad_id, error in (("none", NotFound), ("a/b", BadInput), ("", BadInput)):
        with pytest.raises(error):
            container.read_item(bad_id, "a")
    with pytest.raises(BadInput):
        container.read_item("1", "k" * 3000)
    with pytest.raises(BadInput):
        container.read_item("1", "\ud800")


def test_after_a_split_the_long_way_finds_the_new_range() -> None:
    container = _container()
    container.read_item("1", "a")
    other = armillary.Container(container._store)
    for one in container.partitions():
        if one.items >= 6:
            other.split(one.id)
    for key in ("a", "b", "ключ"):
        assert container.read_item("1", key)["k"] == key
