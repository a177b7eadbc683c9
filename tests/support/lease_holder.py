"""A process that takes leases on a store, says so, and does nothing until it is killed."""

import sys

from armillary.account import open_account

LEASE_MS = 2_000


def main() -> None:
    address, *jobs = sys.argv[1:]
    with open_account(address, housekeeping=False) as account:
        store = account._store
        store._lease_ms = LEASE_MS
        held = store.round()
        print(*[job for job in jobs if held.may(job)], flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
