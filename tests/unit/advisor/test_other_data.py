"""Data sets that the advisor was not tuned on: the right key wins, the others fail for their true
cause, and neither names nor the order of properties decide."""

import json
from fnmatch import fnmatchcase
from random import Random
from typing import Any

import pytest
from tests.support.advice import advised
from tests.support.advice_data import WITH_WORKLOAD, WITHOUT_WORKLOAD, Known

from armillary.advisor.advice.advising import Advice
from armillary.advisor.advice.explanation import caveats, reasons
from armillary.advisor.workload.lenient import what_is_meant

ALL = {**WITH_WORKLOAD, **WITHOUT_WORKLOAD}


def advice_on(known: Known, seed: int = 1) -> Advice:
    return advised(known.items(seed), known.operations, known.targets)


def wins(key: str, best: tuple[str, ...]) -> bool:
    return any(fnmatchcase(key, one.replace("[", "[[]")) for one in best)


@pytest.mark.parametrize("name", ALL)
def test_the_right_key_wins_and_the_others_fail_for_their_cause(name: str) -> None:
    known = ALL[name]
    advice = advice_on(known)
    assert wins(advice.recommended.candidate.name, known.best), advice.recommended.candidate.name
    assert advice.recommended.verdict == "recommended"
    for key, cause in known.rejected.items():
        found = advice.of(key)
        assert found is not None, key
        assert found.verdict == "rejected", key
        assert any(cause in reason for reason in reasons(found, advice)), key


@pytest.mark.parametrize("name", WITHOUT_WORKLOAD)
def test_names_order_and_another_seed_decide_nothing(name: str) -> None:
    known = WITHOUT_WORKLOAD[name]
    items, random = known.items(2), Random(5)
    names = sorted({key for item in items for key in item if key != "id"})
    random.shuffle(names)
    other = {key: f"p{number}" for number, key in enumerate(names)}
    shuffled = ["id", *names]
    random.shuffle(shuffled)
    changed: list[dict[str, Any]] = [
        {other.get(key, key): item[key] for key in shuffled if key in item}
        for item in items
        if random.random() < 0.9
    ]
    key = advised(changed, known.operations, known.targets).recommended.candidate.name
    back = {f"/{new}": f"/{old}" for old, new in other.items()}
    assert wins(back.get(key, key), known.best), key


def test_a_bucket_of_time_ends_the_growth_of_a_key_that_the_sample_has_not_seen_end() -> None:
    known = WITH_WORKLOAD["few machines that fill up"]
    advice = advice_on(known)
    bucketed = [one for one in advice.ranked if one.candidate.kind == "time_bucket"]
    assert bucketed
    assert all("growth" not in one.judgement.failed for one in bucketed)


def test_what_the_database_would_refuse_is_understood_and_said() -> None:
    text = "SELECT c.value FROM c WHERE c.a = 'x.y BETWEEN' AND c.when BETWEEN @a AND 2 AND c.b > 1"
    assert what_is_meant(text) == (
        """SELECT c["value"] FROM c WHERE c["a"] = 'x.y BETWEEN' AND """
        """(c["when"] BETWEEN @a AND 2) AND c["b"] > 1"""
    )
    notes = json.dumps(caveats(advice_on(WITH_WORKLOAD["few machines that fill up"])))
    assert "read as" in notes
    notes = json.dumps(caveats(advice_on(WITH_WORKLOAD["a query without text"])))
    assert "'comment' is no member" in notes
