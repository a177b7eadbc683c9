"""Scenarios of the advisor, as they are or in disguise."""

import json
from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import Any

from armillary.advisor.advice.advising import Advice, advise, wanted_paths
from armillary.advisor.data.survey import Survey, survey
from armillary.advisor.keys.candidates import Candidate
from armillary.advisor.reading.frames import Reading
from armillary.advisor.workload.model import Workload, parse_workload
from armillary.advisor.workload.scenarios import SCENARIOS
from armillary.advisor.workload.targets import Targets

Change = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def surveyed(
    items: list[dict[str, Any]], workload: Workload | None = None, seed: int = 0
) -> Survey:
    reading = Reading()
    return survey(reading.items(items, "it"), reading, seed=seed, wanted=wanted_paths(workload, ()))


def advised(
    items: list[dict[str, Any]],
    operations: list[dict[str, Any]] | None = None,
    targets: Targets | None = None,
    candidates: list[Candidate] | None = None,
) -> Advice:
    workload = None if operations is None else parse_workload({"operations": operations})
    return advise(surveyed(items, workload), workload, targets, candidates=candidates or ())


@lru_cache(maxsize=32)
def played(name: str, seed: int = 1, change: Change | None = None) -> Advice:
    chosen = SCENARIOS[name]
    items = chosen.data(seed)
    return advised(items if change is None else change(items), chosen.operations, chosen.targets)


def resampled(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Nine in ten of them, in their order."""
    random = Random(99)
    return [item for item in items if random.random() < 0.9]


def renamed(name: str, seed: int = 1) -> tuple[Advice, dict[str, str]]:
    """The scenario with every property but the id called something else, in another order."""
    chosen = SCENARIOS[name]
    items = chosen.data(seed)
    names = sorted({key for item in items for key in item if key != "id"}, reverse=True)
    other = {key: f"p{number}x" for number, key in enumerate(names)}
    texts = json.dumps(chosen.operations)
    for key, new in other.items():
        texts = texts.replace(f"c.{key} ", f"c.{new} ").replace(f'"/{key}"', f'"/{new}"')
    changed = [{other.get(key, key): value for key, value in item.items()} for item in items]
    return advised(changed, json.loads(texts), chosen.targets), other
