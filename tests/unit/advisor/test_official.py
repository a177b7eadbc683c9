"""The published example of the official advisor: 50 GB, 200 requests a second, 60 % reads."""

import pytest

from armillary.advisor.advice.official import official
from armillary.advisor.keys.candidates import parse_candidate
from armillary.advisor.workload.model import Workload, parse_workload
from armillary.advisor.workload.targets import Targets, scale
from armillary.partition.provisioning.partitions import GB


def example() -> Workload:
    where = {
        30: "c.customerId = @c",
        50: "c.customerId = @c AND c.cartId = @k",
        20: "c.lastModifiedTimestamp = @t",
    }
    reads = [
        {"kind": "query", "rate": 120 * share / 100, "text": f"SELECT * FROM c WHERE {text}"}
        for share, text in where.items()
    ]
    return parse_workload({"operations": [{"kind": "create", "rate": 80}, *reads]})


@pytest.mark.parametrize(
    ("key", "tier", "share", "extra"),
    [
        ("/customerId", 0, 0.12, 144),
        ("/cartId", 1, 0.30, 360),
        ("/lastModifiedTimestamp", 2, 0.48, 576),
        ("/id", 2, 0.60, 720),
    ],
)
def test_the_published_tiers(key: str, tier: int, share: float, extra: float) -> None:
    # 50 GB of items are 57.5 GB with their index: two partitions.
    planned = scale(Targets(), 50_000_000, 1_000, 2_000, 0)
    assert planned.bytes_today == pytest.approx(57.5 * GB)
    assert planned.partitions_target == 2
    found = official(parse_candidate(key), example(), planned.partitions_target)
    assert found.tier == tier
    assert found.cross_share == pytest.approx(share)
    assert found.extra_ru == pytest.approx(extra)


@pytest.mark.parametrize(
    ("partitions", "impact"), [(1, "low"), (3, "medium"), (20, "high"), (200, "high")]
)
def test_the_scale_is_stricter_for_more_partitions(partitions: int, impact: str) -> None:
    assert (
        official(parse_candidate("/lastModifiedTimestamp"), example(), partitions).impact == impact
    )
