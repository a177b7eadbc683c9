"""What a client does after 429: the policy of the official SDKs, for those who imitate clients.

    429, retry after 300 ms ──▶ wait 300 ms ──▶ again ──▶ 429 … ──▶ the ninth retry fails: an error

A client gives up after nine retries, or once it has waited for thirty seconds in all. As in
azure-cosmos (`_resource_throttle_retry_policy.py`) the sum is compared before the next wait is
added, so the last wait may lead beyond it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    retries: int = 9
    wait_ms_max: int = 30_000

    def wait_ms(self, retries_done: int, waited_ms: int, retry_after_ms: int) -> int | None:
        """How long to wait before trying again. None: the caller gets the error."""
        if retries_done >= self.retries or waited_ms >= self.wait_ms_max:
            return None
        return retry_after_ms


SDK_RETRIES = RetryPolicy()
NO_RETRIES = RetryPolicy(retries=0)
