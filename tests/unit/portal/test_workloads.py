"""Generated workloads. Without these tests "one hot key" could be two, and a page could write items
that its container refuses."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from armillary.portal.data.workloads import (
    ABOUT,
    KINDS,
    KeyChooser,
    Kind,
    Target,
    Workload,
    key_of,
    target_of,
)

MINUTE = 1_700_000_040.0


def chosen(kind: Kind, count: int = 4000, keys: int = 100) -> Counter[str]:
    chooser = KeyChooser(Workload(kind, keys=keys), Random(1), lambda: MINUTE)
    return Counter(chooser.next() for _ in range(count))


def test_each_kind_is_what_it_says() -> None:
    assert set(ABOUT) == set(KINDS)
    uniform, zipf, hot = chosen("uniform"), chosen("zipf"), chosen("hot")
    assert len(uniform) == 100
    assert max(uniform.values()) < 3 * min(uniform.values())
    assert 0.15 < zipf.most_common(1)[0][1] / 4000 < 0.25  # 1/H(100) = 19 %
    assert 0.88 < hot["key-00000"] / 4000 < 0.93
    assert chosen("time") == {"2023-11-14T22:14": 4000}


def test_a_seed_makes_the_same_workload_again() -> None:
    assert chosen("zipf") == chosen("zipf")


@pytest.mark.parametrize(
    "wrong",
    [{"rate": -1}, {"rate": 1001}, {"reads_percent": 101}, {"keys": 0}, {"item_bytes": -1}],
)
def test_what_can_not_be_is_refused_in_words(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="is between"):
        Workload(**wrong)  # type: ignore[arg-type]


def test_items_carry_their_key_where_the_container_looks() -> None:
    nested = Target(("/a/b", "/c"))
    item = nested.item("k", "1", 300)
    assert (item["a"], item["c"], len(item["filler"])) == ({"b": "k"}, "k/1", 100)
    assert key_of(item, ("/a/b", "/c")) == nested.key("k") == ["k", "k/1"]
    assert key_of({"id": "1"}, ("/a/b",)) == [{}]
    assert Target(("/id",)).item("k", "1", 0)["id"] == "1"


def test_synthetic_keys_are_left_to_the_server() -> None:
    spec = {"path": "/pk", "parts": ["/x"], "suffix": {"kind": "computed", "source": "/y"}}
    target = target_of(("/pk",), spec)
    assert (target.paths, target.is_synthetic, target.key("k")) == (("/x", "/y"), True, [{}])
    assert target_of(("/pk",), None) == Target(("/pk",))
