"""What holds for every test.

**The same examples every time.** `make test` must say the same of the same code, so hypothesis
draws its examples from the text of each test. `make soak` (`-m soak`) and `ARMILLARY_EXPLORE=1`
draw new ones in every run, and print what repeats a failure. A slow machine is no failure: nothing
has a deadline of its own.

**Long files first.** Two processes share the files (`--dist loadfile`). Were a long one the last,
the other process would have nothing to do meanwhile.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent

#: By their time, the longest first; what is not here takes a few seconds at most. Only their order
#: matters, so nobody needs to keep the list exact.
LONG_FILES: tuple[str, ...] = ()


def pytest_configure(config: pytest.Config) -> None:
    """Before any test is imported: `@settings` takes what it does not name from the profile."""
    slow = [HealthCheck.too_slow]
    settings.register_profile(
        "repeat", derandomize=True, database=None, deadline=None, suppress_health_check=slow
    )
    settings.register_profile(
        "explore", derandomize=False, deadline=None, print_blob=True, suppress_health_check=slow
    )
    exploring = config.option.markexpr == "soak" or os.environ.get("ARMILLARY_EXPLORE")
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("explore" if exploring else "repeat")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {ROOT / name: at for at, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))
