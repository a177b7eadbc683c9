"""After k grows, items written before must still be found."""

from random import Random
from typing import Any

import pytest

from armillary.errors import BadInput
from armillary.keys import SyntheticKey, candidates_over, check_successor, fits_any, group_over


def dated(suffix: dict[str, Any] | None = None, **more: Any) -> SyntheticKey:
    spec = {"version": 1, "path": "/pk", "parts": ["/date"], "separator": "."} | more
    return SyntheticKey.from_json(spec if suffix is None else spec | {"suffix": suffix})


def computed(k: int, source: str = "/vin") -> dict[str, Any]:
    return {"kind": "computed", "k": k, "source": source}


OLD, NEW = dated(computed(400)), dated(computed(1000))


def test_an_item_is_found_under_the_old_and_the_new_k() -> None:
    known = {"date": "2018-08-09", "vin": "1HGCM82633A004352"}
    assert candidates_over([NEW, OLD], known) == ["2018-08-09.963", "2018-08-09.363"]
    for written in (OLD.apply(known), NEW.apply(known)):
        assert fits_any([NEW, OLD], known, written["pk"])
        assert candidates_over([NEW, OLD], written) == [written["pk"]]
    assert not fits_any([NEW, OLD], known, "2018-08-09.1")


def test_a_group_is_read_once_under_each_key() -> None:
    assert len(group_over([NEW, OLD], {"date": "d"})) == 1000
    random = [dated({"kind": "random", "k": k}) for k in (5, 3)]
    assert group_over(random, {"date": "d"}) == ["d.1", "d.2", "d.3", "d.4", "d.5"]
    assert fits_any(random, {"date": "d"}, random[0].value_for({"date": "d"}, Random(3)))


def test_a_key_first_without_then_with_a_suffix() -> None:
    plain = dated()
    check_successor(plain, OLD)
    known = {"date": "d", "vin": "a"}
    assert candidates_over([OLD, plain], known) == ["d.202", "d"]


def test_specifications_of_different_paths_are_not_read_together() -> None:
    with pytest.raises(BadInput, match="store the key at one path"):
        candidates_over([OLD, dated(path="/other")], {"date": "d"})


def test_k_may_grow() -> None:
    check_successor(OLD, NEW)
    check_successor(OLD, OLD)


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (dated(computed(399)), "can only grow: it is 400, and 399 was asked for"),
        (dated(), "can only grow: it is 400, and 1 was asked for"),
        (dated(computed(400, "/plate")), "kind and the source of a suffix can't change"),
        (dated(computed(500, "/plate")), "kind and the source of a suffix can't change"),
        (dated({"kind": "random", "k": 500}), "kind and the source of a suffix can't change"),
        (dated(computed(500), separator="-"), "Only the suffix of a synthetic key can change"),
        (dated(computed(500), parts=["/day"]), "Only the suffix of a synthetic key can change"),
        (dated(computed(500), path="/k"), "Only the suffix of a synthetic key can change"),
        (dated(computed(500), escape=True), "Only the suffix of a synthetic key can change"),
    ],
)
def test_anything_else_is_refused(new: SyntheticKey, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        check_successor(OLD, new)
