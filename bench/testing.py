"""What a fresh account costs a test, with the SDK and without.

    account     `armillary.open(":memory:")` with one container
    in process  `armillary.testing.Cosmos` with one container, a client, one item written

CPU time of this process, in rounds that take turns, so that a busy machine disturbs both alike.
"""

import statistics
import time
from collections.abc import Callable

from armillary.account import open_account
from armillary.testing import Cosmos

ROUNDS = 200
ITEM = {"id": "1", "customerId": "ada"}


def bare() -> None:
    with open_account(":memory:", housekeeping=False) as account:
        account.create_database("test").create_container("orders", "/customerId").create_item(ITEM)


def account_only() -> None:
    Cosmos(containers={"orders": "/customerId"}).close()


def with_sdk() -> None:
    with Cosmos(containers={"orders": "/customerId"}) as cosmos:
        cosmos.container().create_item(ITEM)


def cost_ms(work: Callable[[], None]) -> float:
    start = time.process_time_ns()
    work()
    return (time.process_time_ns() - start) / 1e6


def main() -> None:
    for work in (bare, account_only, with_sdk):
        work()  # imports
    rounds = [(cost_ms(bare), cost_ms(account_only), cost_ms(with_sdk)) for _ in range(ROUNDS)]
    plain, made, full = (statistics.median(column) for column in zip(*rounds, strict=True))
    print(f"account in process, one container, one item   {plain:6.2f} ms")
    print(f"Cosmos(...) with one container, closed        {made:6.2f} ms  x {made / plain:.1f}")
    print(f"the same with a client of the SDK, one item   {full:6.2f} ms  x {full / plain:.1f}")


if __name__ == "__main__":
    main()
