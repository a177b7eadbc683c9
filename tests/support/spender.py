"""A process that writes as fast as it is admitted, for some seconds.

    python -m tests.support.spender ADDRESS NAME SECONDS

Prints the request units it was admitted, the refusals, and the seconds of the clock it worked in.
"""

import json
import sys
import time

from armillary.account import open_account
from armillary.errors import Throttled
from armillary.store.preparing import Operation


def main(address: str, name: str, seconds: str) -> None:
    with open_account(address, enforce="on", durability="relaxed", housekeeping=False) as account:
        store = account.database("d").container("c")._store
        store.refresh()
        print("ready", flush=True)
        sys.stdin.readline()
        end = time.time() + float(seconds)
        spent, refused, number, largest = 0.0, 0, 0, 0.0
        first = time.time()
        while time.time() < end:
            number += 1
            body = {"id": f"{name}{number}", "pk": "one", "text": "x" * 200}
            try:
                ru = store.run(Operation("create", body=body), None).charge_ru
                spent += ru
                largest = max(largest, ru)
            except Throttled as refusal:
                refused += 1
                time.sleep(min(0.005, refusal.facts["retry_after_ms"] / 1000))
        print(
            json.dumps(
                {
                    "spent": spent,
                    "refused": refused,
                    "largest": largest,
                    "first": first,
                    "last": time.time(),
                }
            )
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
