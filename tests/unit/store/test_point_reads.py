"""Point reads in process: the one read of the store, over keys and ids of every kind."""

import json
from typing import Any

import pytest

import armillary
from armillary.container import Container
from armillary.errors import BadInput, DbError, NotFound

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


@pytest.mark.parametrize(
    ("key", "options"),
    [(V2, {}), (V1, {}), (V2, {"default_ttl": 100})],
    ids=["hash V2", "hash V1", "time to live"],
)
def test_every_item_is_found_again_and_again(
    key: dict[str, object], options: dict[str, object]
) -> None:
    """The second time its key is known."""
    container = _container(key, **options)
    for _ in range(2):
        for value in ("a", "b", "ключ"):
            for item_id in ("1", "длинный", "x" * 200):
                found = json.loads(container.read_item_bytes(item_id, value))
                assert (found["id"], found["k"]) == (item_id, value)


def test_equal_keys_of_other_types_are_other_keys() -> None:
    container = _container()
    for value in (1, True, "1"):
        container.create_item({"id": f"{value!r}", "k": value})
    for _ in range(2):
        for value in (1, True, "1"):
            assert container.read_item(f"{value!r}", value)["k"] is value or value == "1"
            others = [one for one in ("1", "True", "'1'") if one != f"{value!r}"]
            for other in others:
                with pytest.raises(NotFound):
                    container.read_item(other, value)


def test_keys_that_begin_alike_are_other_keys() -> None:
    """Of a hierarchical key; also when some are known already, and where a level is missing."""
    paths = {"paths": ["/k", "/m"], "kind": "MultiHash", "version": 2}
    account = armillary.open(":memory:", housekeeping=False, seed=1)
    container = account.create_database("d").create_container("c", paths)
    keys: list[list[Any]] = [["a", "b"], ["a", "c"], ["a", 1], ["a", True], ["b", "a"]]
    for number, (first, second) in enumerate(keys):
        container.create_item({"id": f"item{number}", "k": first, "m": second})
    for _ in range(2):
        for key in keys:
            for number, own in enumerate(keys):
                if own is key:
                    assert container.read_item(f"item{number}", key)["m"] is not None
                else:
                    with pytest.raises(NotFound):
                        container.read_item(f"item{number}", key)


def test_a_miss_says_what_is_wrong() -> None:
    container = _container()
    bad: dict[Any, type[DbError]] = {"none": NotFound, "..": BadInput, "": BadInput, 7: BadInput}
    for bad_id, error in bad.items():
        with pytest.raises(error):
            container.read_item(bad_id, "a")
    with pytest.raises(BadInput):
        container.read_item("1", "k" * 3000)
    with pytest.raises(BadInput):
        container.read_item("1", "\ud800")


def test_after_a_split_the_general_path_finds_the_new_range() -> None:
    container = _container()
    container.read_item("1", "a")
    other = armillary.Container(container._store)
    for one in container.partitions():
        if one.items >= 6:
            other.split(one.id)
    for key in ("a", "b", "ключ"):
        assert container.read_item("1", key)["k"] == key
