"""A process that writes as fast as it is admitted, for some seconds and until it was refused.

    python -m tests.support.spender ADDRESS NAME SECONDS

Prints the request units it was admitted, the seconds with refusals, and when by
the clock it worked.
"""

import json
import sys
import time
from collections import defaultdict

from armillary.account import open_account
from armillary.errors import Throttled
from armillary.store.items.preparation import Operation


def main(address: str, name: str, seconds: str) -> None:
    with open_account(address, enforce="on", durability="relaxed", housekeeping=False) as account:
        store = account.database("d").container("c")._store
        store.refresh()
        print("ready", flush=True)
        sys.stdin.readline()
        end = time.time() + float(seconds)
        spent, number, largest = 0.0, 0, 0.0
        spent_by_second: defaultdict[int, float] = defaultdict(float)
        refused: set[int] = set()
        first = time.time()
        while (now := time.time()) < end or (not refused and now < end + 100):
            number += 1
            body = {"id": f"{name}{number}", "pk": "one", "text": "x" * 200}
            try:
                ru = store.run(Operation("create", body=body), None).charge_ru
                spent += ru
                largest = max(largest, ru)
                # It was charged in one of these seconds.
                for second in {int(now), int(time.time())}:
                    spent_by_second[second] += ru
            except Throttled as refusal:
                if int(now) == int(time.time()):
                    refused.add(int(now))
                time.sleep(min(0.005, refusal.facts["retry_after_ms"] / 1000))
        print(
            json.dumps(
                {
                    "spent": spent,
                    "spent_by_second": spent_by_second,
                    "refused": sorted(refused),
                    "largest": largest,
                    "first": first,
                    "last": time.time(),
                }
            )
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
