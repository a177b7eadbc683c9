"""What one query may use by default."""

from __future__ import annotations

import time

from armillary.budget import Budget
from armillary.limits import QUERY_BYTES_MAX, QUERY_SECONDS_MAX


def query_budget() -> Budget:
    """For a request that begins now."""
    return Budget(deadline=time.monotonic() + QUERY_SECONDS_MAX, bytes_max=QUERY_BYTES_MAX)
