"""A replay that retries otherwise than the SDK would promise other numbers than people get."""

from typing import Any

from azure.cosmos._resource_throttle_retry_policy import ResourceThrottleRetryPolicy
from hypothesis import given
from hypothesis import strategies as st

from armillary.partition.retrying import NO_RETRIES, SDK_RETRIES


class Refusal:
    def __init__(self, retry_after_ms: int) -> None:
        self.headers = {"x-ms-retry-after-ms": str(retry_after_ms)}


@given(st.lists(st.integers(1, 12_000), max_size=15))
def test_it_waits_and_gives_up_exactly_as_the_sdk(asked_ms: list[int]) -> None:
    policy: Any = ResourceThrottleRetryPolicy
    theirs = policy(9, None, 30)
    waited = 0
    for retries, retry_after_ms in enumerate(asked_ms):
        again = theirs.ShouldRetry(Refusal(retry_after_ms))
        wait_ms = SDK_RETRIES.wait_ms(retries, waited, retry_after_ms)
        assert (wait_ms is not None) == again
        if wait_ms is None:
            return
        assert wait_ms == theirs.retry_after_in_milliseconds
        waited += wait_ms


def test_the_defaults_are_those_of_the_sdk() -> None:
    from azure.cosmos._retry_options import RetryOptions

    options = RetryOptions()
    assert SDK_RETRIES.retries == options.MaxRetryAttemptCount
    assert SDK_RETRIES.wait_ms_max == options.MaxWaitTimeInSeconds * 1000


def test_without_retries_the_first_refusal_is_an_error() -> None:
    assert NO_RETRIES.wait_ms(0, 0, 5) is None
