"""Without these, a build could pass although its key is hot."""

import pytest

from armillary.errors import BadInput
from armillary.operate.checking import Measures, Thresholds, check, measures_of

USAGE = {
    "database": "shop",
    "container": "orders",
    "partitions": [
        {
            "id": "0",
            "bytes": 300,
            "requests": 90,
            "refused": 9,
            "normalized_ru": 100.0,
            "dearest_ru": 12.5,
            "dearest_operation": "create",
        },
        {
            "id": "1",
            "bytes": 100,
            "requests": 10,
            "refused": 0,
            "normalized_ru": 20.0,
            "dearest_ru": 31.0,
            "dearest_operation": "query",
        },
    ],
    "keys": [
        {"key": ["ada"], "ru_share": 0.62, "bytes": 80},
        {"key": ["bob"], "ru_share": 0.01, "bytes": 220},
    ],
    "queries": [
        {"text": "SELECT * FROM c WHERE c.x = 1", "ranges": 2, "ru": 30.0},
        {"text": "SELECT * FROM c WHERE c.pk = 1", "ranges": 1, "ru": 3.0},
    ],
}
MEASURED = {
    "max_key_share": (0.62, '["ada"]'),
    "max_key_bytes": (220, '["bob"]'),
    "max_fanout": (2, "c.x = 1"),
    "max_ru": (31.0, "query on partition 1"),
    "max_429_share": (0.09, "9 of 100"),
    "max_normalized_ru": (100.0, "partition 0"),
    "max_partition_skew": (1.5, "partition 0"),
}


@pytest.mark.parametrize("name", MEASURED)
def test_each_threshold_holds_up_to_its_value_and_no_further(name: str) -> None:
    value, evidence = MEASURED[name]
    (at,) = check(measures_of(USAGE), Thresholds(**{name: value}))
    (below,) = check(measures_of(USAGE), Thresholds(**{name: value * 0.99}))
    assert at.value == pytest.approx(value)
    assert (at.holds, below.holds) == (True, False)
    assert evidence in below.evidence
    assert str(below).startswith("BAD  shop/orders: ")
    assert below.as_json()["assertion"] == name


def test_an_unused_container_measures_nothing() -> None:
    partition = dict.fromkeys(USAGE["partitions"][0], 0) | {"id": "0", "dearest_operation": ""}
    measures = measures_of({**USAGE, "partitions": [partition], "keys": [], "queries": []})
    assert measures.requests == 0
    limits = Thresholds(**dict.fromkeys(MEASURED, 1.0))
    assert all(finding.holds for finding in check(measures, limits))


def test_what_nothing_measures_is_said() -> None:
    with pytest.raises(BadInput, match="max-ru can't be checked"):
        check(Measures("x", 1, {}), Thresholds(max_ru=1))
