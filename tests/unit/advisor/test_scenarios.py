"""Known answers: the right key wins each scenario, for the true reason, and chance or names do not
change it. Without these the advisor could be plausible and wrong."""

import pytest
from tests.support.advice import played, renamed, resampled

from armillary.advisor.advice.explanation import reasons
from armillary.advisor.workload.scenarios import SCENARIOS, matches, scenario
from armillary.errors import BadInput

NAMES = list(SCENARIOS)
#: Scenario → key that is rejected, and the word its first reason begins with.
REJECTED = [
    ("telemetry", "/date", "Heat"),
    ("telemetry", "/site", "Size"),
    ("tenants", "/tenantId", "Heat"),
    ("status", "/status", "Cardinality"),
    ("clicks", "/timestamp", "Heat"),
    ("vehicles", "/date", "Heat"),
    ("vehicles", "/date,/vin", "Heat"),
    ("logs", "/day", "Heat"),
    ("logs", "/level", "Cardinality"),
    ("profiles", "/country", "Cardinality"),
]


@pytest.mark.parametrize("name", NAMES)
def test_the_right_key_wins(name: str) -> None:
    advice = played(name)
    assert matches(advice.recommended.candidate.name, SCENARIOS[name].best)
    assert advice.recommended.verdict == "recommended"
    assert advice.stability >= 0.9


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_and_nine_tenths_of_it_have_the_same_winner(name: str) -> None:
    other = played(name, seed=2, change=resampled)
    assert matches(other.recommended.candidate.name, SCENARIOS[name].best)


@pytest.mark.parametrize("name", NAMES)
def test_names_decide_nothing(name: str) -> None:
    advice, names = renamed(name)
    key = advice.recommended.candidate.name
    for old, new in names.items():
        key = key.replace(f"/{new}", f"/{old}")
    assert key == played(name).recommended.candidate.name


@pytest.mark.parametrize(("name", "key", "cause"), REJECTED)
def test_what_is_wrong_is_rejected_for_the_true_cause(name: str, key: str, cause: str) -> None:
    advice = played(name)
    found = advice.of(key)
    assert found is not None
    assert found.verdict == "rejected"
    assert reasons(found, advice)[0].startswith(cause)


def test_the_suffixes_of_the_documents_are_415() -> None:
    advice = played("vehicles")
    assert advice.recommended.candidate.suffixes == 415
    assert advice.scale.partitions == 10


def test_a_scenario_that_is_none_is_said() -> None:
    with pytest.raises(BadInput, match="telemetry"):
        scenario("nonsense")
