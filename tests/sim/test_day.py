"""Without this, something below `server/` could ask the operating system for the time, and no day
could be replayed. Here one passes in seconds: throttling, expiry and splits, on a clock that only
the test moves. Twice with one seed it is the same day.
"""

import time
from collections import Counter
from random import Random

from tests.support.accounts import check, open_world

from armillary.errors import Throttled

HOUR = 3600
SEED = 5


def a_day(seed: int) -> tuple[Counter[str], list[object]]:
    counts: Counter[str] = Counter()
    random = Random(seed)
    options = {"enforce": "on", "partition_bytes": 60_000, "seed": seed}
    with open_world(":memory:", **options) as world:
        devices = world.container("devices", "/device", throughput=400, default_ttl=6 * HOUR)
        number = 0
        for quarter in range(24 * 4):
            busy = 8 <= quarter // 4 < 20
            for _ in range(60 if busy else 8):
                number += 1
                body = {"id": str(number), "device": f"d{random.randrange(50)}", "text": "x" * 300}
                try:
                    devices.create_item(body)
                    counts["written"] += 1
                except Throttled as refusal:
                    counts["refused"] += 1
                    world.clock.advance(refusal.facts["retry_after_ms"] / 1000)
                if random.random() < 0.02:
                    world.clock.advance(1)
            world.clock.advance(15 * 60)
            before = sum(one.items for one in devices.partitions())
            world.account.settle()
            counts["expired"] += before - sum(one.items for one in devices.partitions())
        counts["ranges"] = len(devices.partitions())
        counts["hours"] = (world.clock.now_ms() - 1_700_000_000_000) // (HOUR * 1000)
        check(devices)
        items: list[object] = []
        for device in range(50):
            world.clock.advance(1)  # reading is paid for, too
            for one in devices.read_all_items(partition_key=f"d{device}"):
                assert isinstance(one["_ts"], int)
                assert one["_ts"] * 1000 <= world.clock.now_ms()
                items.append((one["id"], one["_ts"], one["_etag"]))
        return counts, items


def test_a_day_passes_in_seconds_and_can_be_replayed() -> None:
    began = time.process_time()
    counts, items = a_day(SEED)
    assert time.process_time() - began < 60
    assert counts["hours"] >= 24
    assert counts["refused"] > 0, counts
    assert counts["expired"] > 500, counts
    assert counts["ranges"] > 4, counts
    assert counts["written"] == len(items) + counts["expired"]
    assert a_day(SEED) == (counts, items)
