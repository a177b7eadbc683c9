"""What one query may use by default, and what the condition of a patch may."""

from __future__ import annotations

import time

from armillary.budget import Budget
from armillary.limits import (
    CONDITION_BYTES_MAX,
    CONDITION_SECONDS_MAX,
    CONDITION_STEPS_MAX,
    QUERY_BYTES_MAX,
    QUERY_SECONDS_MAX,
)


def query_budget() -> Budget:
    """For a request that begins now."""
    return Budget(deadline=time.monotonic() + QUERY_SECONDS_MAX, bytes_max=QUERY_BYTES_MAX)


def condition_budget() -> Budget:
    """For the conditions of the patches of one request. They run where writes do, and not in the
    threads for queries, so they have to be short."""
    return Budget(
        deadline=time.monotonic() + CONDITION_SECONDS_MAX,
        bytes_max=CONDITION_BYTES_MAX,
        steps_max=CONDITION_STEPS_MAX,
    )
