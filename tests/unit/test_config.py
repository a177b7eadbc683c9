"""Without these, a setting could be misread or quietly ignored, and a laptop would never split."""

import dataclasses

import pytest

from armillary import limits
from armillary.config import (
    VARIABLES,
    ApiSettings,
    EngineSettings,
    PartitionSettings,
    QuerySettings,
    Settings,
    ThroughputSettings,
    parse_bytes,
)
from armillary.errors import BadInput


def test_the_defaults_are_the_limits_of_the_original() -> None:
    settings = Settings.default()
    assert settings.partition.bytes == limits.PARTITION_BYTES_MAX == 50_000_000_000
    assert settings.partition.logical_bytes == limits.LOGICAL_BYTES_MAX == 20_000_000_000
    assert settings.engine == EngineSettings("./.armillary", "full")
    assert Settings.from_environment({"PATH": "/bin", "HOME": "/"}) == settings


def test_every_variable_reaches_its_setting() -> None:
    settings = Settings.from_environment(
        {
            "ARMILLARY_PARTITION_BYTES": "2MB",
            "ARMILLARY_PARTITION_LOGICAL_BYTES": "1000000",
            "ARMILLARY_ENGINE_URL": "postgresql://localhost/x",
            "ARMILLARY_ENGINE_DURABILITY": "relaxed",
            "ARMILLARY_PARTITION_RU": "1000",
            "ARMILLARY_THROUGHPUT_ENFORCE": "report",
            "ARMILLARY_THROUGHPUT_PROFILE": "classic",
            "ARMILLARY_THROUGHPUT_BURST": "on",
            "ARMILLARY_API_CONSISTENCY": "Strong",
            "ARMILLARY_API_CORS_ORIGINS": "https://a.example, https://b.example",
            "ARMILLARY_API_TRUST_FORWARDED": "True",
            "ARMILLARY_API_ACCEPT_ENTRA": "1",
            "ARMILLARY_QUERY_GATEWAY_MERGE": "on",
        }
    )
    assert settings == Settings(
        PartitionSettings(2_000_000, 1_000_000, 1000),
        EngineSettings("postgresql://localhost/x", "relaxed"),
        ThroughputSettings("report", "classic", True),
        ApiSettings("Strong", ("https://a.example", "https://b.example"), True, True),
        QuerySettings(gateway_merge=True),
    )


def test_the_classic_profile_brings_its_sizes_unless_they_are_set() -> None:
    classic = {"throughput": {"profile": "classic"}}
    assert Settings.of(classic).partition == PartitionSettings(10_000_000_000, 10_000_000_000)
    own = Settings.of({"partition": {"bytes": 5}}, classic).partition
    assert own == PartitionSettings(5, 10_000_000_000)
    assert Settings.of().partition == PartitionSettings(50_000_000_000, 20_000_000_000)


def test_every_setting_has_a_variable() -> None:
    plain = Settings.default()
    sections = {one.name: getattr(plain, one.name) for one in dataclasses.fields(Settings)}
    expected = {
        f"ARMILLARY_{section}_{key.name}".upper(): (section, key.name)
        for section, kind in sections.items()
        for key in dataclasses.fields(kind)
    }
    assert {name: place[:2] for name, place in VARIABLES.items()} == expected


def test_partitions_can_be_made_small_without_touching_the_logical_limit() -> None:
    settings = Settings.from_environment({"ARMILLARY_PARTITION_BYTES": "2MB"})
    assert settings.partition == PartitionSettings(2_000_000, limits.LOGICAL_BYTES_MAX)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ARMILLARY_PARTITION_BYTES", "much", "ARMILLARY_PARTITION_BYTES is 'much'; a size is"),
        ("ARMILLARY_PARTITION_BYTES", "", "a size is a whole number"),
        ("ARMILLARY_PARTITION_RU", "-1", "a whole number"),
        ("ARMILLARY_THROUGHPUT_ENFORCE", "no", "'on', 'report' or 'off'"),
        ("ARMILLARY_THROUGHPUT_BURST", "perhaps", "a switch is 'on' or 'off'"),
        ("ARMILLARY_API_CONSISTENCY", "session", "'Strong'"),
        ("ARMILLARY_PARTITION_BYTES", "-1", "a size is a whole number"),
        ("ARMILLARY_PARTITION_BYTES", "0", "partition.bytes is 0; it has to be a positive"),
        ("ARMILLARY_PARTITION_LOGICAL_BYTES", "0", "partition.logical_bytes is 0"),
        ("ARMILLARY_PARTITION_BYTES", "2 parsecs", "a size is a whole number"),
        ("ARMILLARY_ENGINE_DURABILITY", "maybe", "it has to be 'full' or 'relaxed'"),
        ("ARMILLARY_ENGINE_URL", "", "engine.url is empty"),
        ("ARMILLARY_REPLICAS_URLS", "postgresql://db", "a list of 'Region=value'"),
        ("ARMILLARY_REPLICAS_READERS", "0", "replicas.readers is 0"),
        ("ARMILLARY_REGIONS_ENDPOINTS", "West=west:8081", "it has to be like http://host"),
        ("ARMILLARY_REGIONS_ENDPOINTS", "A=http://a,A=http://b", "names A twice"),
        ("ARMILLARY_REGIONS_LAG_MS", "West=500", "which has no endpoint"),
        ("ARMILLARY_REGIONS_STALENESS_S", "0", "regions.staleness_s is 0"),
        ("ARMILLARY_REGIONS_HERE", " ", "regions.here is empty"),
        ("ARMILLARY_ENGINE_DURABLITY", "full", "ARMILLARY_ENGINE_DURABLITY is not a setting"),
    ],
)
def test_a_wrong_value_is_refused_by_name(name: str, value: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        Settings.from_environment({name: value})
    assert said in caught.value.message


def test_names_made_by_a_platform_are_left_alone() -> None:
    environ = {"ARMILLARY_PORT": "tcp://10.0.0.1:8081", "ARMILLARY_SERVICE_HOST": "10.0.0.1"}
    assert Settings.from_environment(environ) == Settings.default()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("2000000", 2_000_000),
        ("2MB", 2_000_000),
        (" 2 mb ", 2_000_000),
        ("50GB", 50_000_000_000),
        ("1KiB", 1024),
        ("64MiB", 64 * 1024**2),
        ("1GiB", 1024**3),
        ("7B", 7),
    ],
)
def test_sizes(text: str, count: int) -> None:
    assert parse_bytes(text) == count
