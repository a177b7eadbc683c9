"""A client that only reads an item of a container of its own, as a process: `victim PORT`. It reads
until its standard input ends, then prints its times in milliseconds as JSON."""

from __future__ import annotations

import json
import sys
import threading
import time

from tests.support.signed_http import SignedClient

CONTAINER = "dbs/victim/colls/c"
GAP_SECONDS = 0.005


def main() -> None:
    client = SignedClient(int(sys.argv[1]), timeout_s=120)
    ended = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    times: list[float] = []
    wrong = 0
    print("ready", flush=True)
    while not (ended.is_set() and times):
        began = time.perf_counter()
        reply = client.read(CONTAINER, "1", "a")
        times.append((time.perf_counter() - began) * 1000)
        wrong += reply.status != 200
        time.sleep(GAP_SECONDS)
    times.sort()
    shown = {
        "reads": len(times),
        "wrong": wrong,
        "p50": times[len(times) // 2],
        "p99": times[int(len(times) * 0.99)],
        "max": times[-1],
    }
    print(json.dumps(shown))


if __name__ == "__main__":
    main()
