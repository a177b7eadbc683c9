"""What may be asked for, and the sentences that say no: SDK users search for them word by word."""

from collections.abc import Callable

import pytest

from armillary.errors import BadInput
from armillary.partition.provisioning.offers import (
    check_kind_change,
    check_throughput,
    is_synchronous,
    minimum_throughput,
    raised_by_storage,
    refuse_serverless,
    requested,
)
from armillary.partition.provisioning.partitions import GB, OfferKind


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(BadInput) as refused:
        call()
    return refused.value.message


@pytest.mark.parametrize(
    ("kind", "highest", "gigabytes", "containers", "minimum"),
    [
        ("manual", 0, 0, 0, 400),
        ("manual", 50_000, 20, 0, 500),
        ("manual", 50_000, 2000, 0, 2000),
        ("manual", 40_100, 0, 0, 500),
        ("manual", 0, 401, 0, 500),
        ("manual", 0, 0, 25, 400),
        ("manual", 0, 0, 26, 500),
        ("manual", 50_000, 0, 30, 900),
        ("manual", 1_000_000, 0, 30, 10_000),
        ("autoscale", 0, 0, 0, 1000),
        ("autoscale", 50_000, 20, 0, 5000),
        ("autoscale", 50_000, 2000, 0, 20_000),
        ("autoscale", 10_001, 0, 0, 2000),
        ("autoscale", 0, 0, 25, 1000),
        ("autoscale", 0, 0, 30, 6000),
        ("manual", 10_000_000, 100_000, 0, 100_000),
        ("autoscale", 10_000_000, 100_000, 0, 1_000_000),
    ],
)
def test_the_least(
    kind: OfferKind, highest: int, gigabytes: int, containers: int, minimum: int
) -> None:
    found = minimum_throughput(
        kind, highest_ever=highest, stored_bytes=gigabytes * GB, shared_containers=containers
    )
    assert found == minimum


@pytest.mark.parametrize(
    ("value", "kind"), [(400, "manual"), (1_000_000, "manual"), (4000, "autoscale")]
)
def test_a_value_on_a_step_is_accepted(value: int, kind: OfferKind) -> None:
    check_throughput(value, kind, minimum=minimum_throughput(kind))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (399, "manual"),
        (300, "manual"),
        (450, "manual"),
        (1_000_100, "manual"),
        (0, "autoscale"),
        (1500, "autoscale"),
    ],
)
def test_a_value_off_its_bounds_or_steps_is_refused(value: int, kind: OfferKind) -> None:
    with pytest.raises(BadInput) as refused:
        check_throughput(value, kind, minimum=minimum_throughput(kind))
    least, step = {"manual": (400, 100), "autoscale": (1000, 1000)}[kind]
    less = "Requested throughput 0 is less than required minimum throughput 1000. "
    before = less if (value, kind) == (0, "autoscale") else ""
    assert refused.value.message == before + (
        "The value of offer throughput specified is invalid. Please specify a value between "
        f"{least} and 1000000 inclusive in increments of {step}. Please contact "
        "https://azure.microsoft.com/support to request limit increases beyond 1000000 RU/s."
    )
    assert refused.value.facts == {"minimum": least, "maximum": 1_000_000, "step": step}


def test_headers_ask_for_one_kind() -> None:
    assert requested(None, None) is None
    assert requested(500, None) == ("manual", 500)
    assert requested(None, 4000) == ("autoscale", 4000)
    assert requested(None, None, "S1") is None


def test_headers_that_contradict_are_refused() -> None:
    both = "Offer throughput and autopilot settings cannot both be specified."
    assert refusal(lambda: requested(400, 4000)) == both
    typed = "Offer type and throughput cannot both be specified."
    assert refusal(lambda: requested(400, None, "S1")) == typed


def test_only_a_migration_changes_the_kind() -> None:
    check_kind_change("manual", "manual")
    assert refusal(lambda: check_kind_change("manual", "autoscale")) == (
        "Updating offer to autoscale throughput is not allowed. "
        "Please invoke migration API to migrate this offer."
    )


def test_serverless_has_no_offers() -> None:
    sentence = "Reading or replacing offers is not supported for serverless accounts."
    assert refusal(refuse_serverless) == sentence


def test_up_to_a_hundred_times_the_minimum_a_change_is_synchronous() -> None:
    assert [is_synchronous(ru, 400) for ru in (399, 400, 40_000, 40_100)] == [
        False,
        True,
        True,
        False,
    ]


def test_storage_raises_the_throughput() -> None:
    assert raised_by_storage(50_000, "autoscale", 5000 * GB) == 50_000
    assert raised_by_storage(50_000, "autoscale", 6000 * GB) == 60_000
    assert raised_by_storage(400, "manual", 450 * GB) == 500
    assert raised_by_storage(400, "manual", 0) == 400
