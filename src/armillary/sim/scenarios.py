"""Worked examples by name: `armillary simulate --scenario reference`."""

from collections.abc import Mapping

from armillary.errors import BadInput
from armillary.sim.scenario import Scenario, apply

#: As a file would say them.
NAMED: Mapping[str, Mapping[str, object]] = {
    "reference": {
        "about": "From one full range to 100 TB in a year by storage splits alone, then 10 M RU/s",
        "storage": "50GB",
        "throughput": 10_000,
        "keys": "1e9",
        "days": 366,
        "growth": "exp:100TB",
        "split_at": 1.0,
        "demand": "60%",
        "partitions": 1,
        "events": [{"at": "365d", "throughput": "10M"}],
        "windows": 4,
    },
    "hot-key": {
        "about": "A third of all requests go to one key: no throughput and no split helps",
        "storage": "500GB",
        "throughput": 100_000,
        "keys": "1e6",
        "skew": "hot:0.33",
        "bytes_skew": "uniform",
        "days": 3,
        "demand": "35%",
        "window": 300,
        "windows": 3,
        "events": [{"at": "1d", "throughput": 200_000}],
    },
    "black-friday": {
        "about": "Autoscale over ten days with a daily swing and one day of eight times the load",
        "storage": "1TB",
        "throughput": 400_000,
        "autoscale": True,
        "keys": "2e7",
        "skew": "zipf:0.5",
        "bytes_skew": "uniform",
        "days": 10,
        "daily": 0.5,
        "demand": 32_000,
        "events": [{"at": "5d", "load": 8, "for": "24h"}],
        "windows": 10,
    },
    "region-loss": {
        "about": "Two regions share the reads; one is lost for six hours",
        "storage": "2TB",
        "throughput": 400_000,
        "keys": "1e7",
        "regions": ["east", "west"],
        "days": 2,
        "demand": 440_000,
        "workload": {"mix": {"read": 0.9, "create": 0.1}},
        "failover": "1h",
        "events": [{"at": "1d", "region": "east", "for": "6h"}],
        "windows": 6,
    },
    "growth": {
        "about": "From 1 TB to 20 TB in half a year; the throughput follows in two steps",
        "storage": "1TB",
        "throughput": 100_000,
        "keys": "1e8",
        "days": 182,
        "growth": "to:20TB",
        "demand": "60%",
        "events": [{"at": "60d", "throughput": 400_000}, {"at": "120d", "throughput": 4_000_000}],
        "windows": 6,
    },
    "bad-key": {
        "about": "Forty countries as the key, the largest with a fifth of everything",
        "storage": "30GB",
        "throughput": 50_000,
        "keys": 40,
        "skew": "zipf:1.0",
        "days": 180,
        "growth": "2GB/day",
        "demand": "60%",
        "windows": 6,
    },
    "expiry": {
        "about": "Telemetry kept for thirty days: what expires is deleted with left-over RU",
        "storage": "3TB",
        "throughput": 150_000,
        "keys": "5e7",
        "days": 60,
        "growth": "40GB/day",
        "ttl": "30d",
        "demand": "80%",
        "events": [
            {"at": "20d", "load": 1.25, "for": "4d"},
            {"at": "40d", "throughput": 40_000},
            {"at": "41d", "merge": True},
        ],
        "windows": 6,
    },
}


def named(name: str) -> Scenario:
    if name not in NAMED:
        raise BadInput(f"There is no scenario {name!r}; there are {', '.join(NAMED)}.")
    return apply(Scenario(name=name), NAMED[name])
