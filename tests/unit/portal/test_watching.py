"""What pages get. Without these tests a page could miss a split, show a wrong minute, or ask
an idle server over and over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from armillary.portal.context import Place
from armillary.portal.data.bins import BINS, Bins
from armillary.portal.data.client import Client, Refused
from armillary.portal.data.watching import Watch, Watches

PLACE = Place("d", "c")


def partition(id: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "from": 0.0,
        "to": 1.0,
        "parents": [],
        "status": "online",
        "bytes": 0,
        "items": 0,
        "ru_per_s": 400.0,
        "consumed_ru_last_s": 0.0,
        "normalized_ru": 0.0,
        "throttled_last_min": 0,
        "refused": 0,
        "ru": [],
        **more,
    }


def report(*partitions: dict[str, Any], first_s: int = 1000, keys: Any = ()) -> dict[str, Any]:
    return {
        "database": "d",
        "container": "c",
        "partition_key": ["/pk"],
        "throughput": 400,
        "limits": {"partition_bytes": 10, "partition_ru": 10, "logical_bytes": 10},
        "now_s": first_s,
        "step_s": 5,
        "first_s": first_s,
        "partitions": list(partitions),
        "moves": [],
        "past": [],
        "keys": list(keys),
    }


def test_bins_continue_from_look_to_look() -> None:
    bins = Bins()
    bins.add(report(partition("0", ru=[1.0] * BINS), first_s=1000))
    assert bins.since_s == 1000 + 5 * BINS
    bins.add(report(partition("0", ru=[2.0, 3.0]), first_s=bins.since_s))
    assert bins.row("0")[-3:] == [1.0, 2.0, 3.0]
    assert len(bins.row("0")) == BINS
    bins.add(report(partition("0", ru=[]), first_s=bins.since_s))
    assert bins.row("0")[-1] == 3.0
    # Nobody looked for four bins; the server remembers only what was asked for.
    bins.add(report(partition("0", ru=[9.0]), first_s=bins.since_s + 20))
    assert bins.row("0")[-6:] == [3.0, 0.0, 0.0, 0.0, 0.0, 9.0]
    bins.add(report(partition("1", ru=[4.0]), first_s=bins.since_s))
    assert bins.row("1") == [0.0] * (BINS - 1) + [4.0]
    assert bins.row("0") == [0.0] * BINS


class FakeClient:
    """Answers what it is given, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer: Any = report(partition("0"))
        self.lines: asyncio.Queue[str] = asyncio.Queue()

    async def control(self, method: str, path: str) -> Any:
        self.asked.append(path)
        if isinstance(self.answer, Refused):
            raise self.answer
        return {**self.answer}

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[AsyncIterator[str]]:
        async def lines() -> AsyncIterator[str]:
            while True:
                yield await self.lines.get()

        yield lines()


async def told(watch: Watch, looks: int) -> None:
    async with asyncio.timeout(60):
        while watch.looks < looks and watch.error is None:
            await asyncio.sleep(0.01)


def test_an_event_ends_the_wait_and_a_split_is_news() -> None:
    async def main() -> None:
        client = FakeClient()
        watches = Watches(cast(Client, client))
        seen: list[int] = []

        def listener(watch: Watch) -> None:
            seen.append(watch.looks)

        watch = watches.join(PLACE, listener)
        await told(watch, 1)
        assert "keys=on" in client.asked[0]
        children = [partition(id, parents=["0"]) for id in ("1", "2")]
        done = {"kind": "split", "parents": ["0"], "children": ["1", "2"], "at_s": 1000}
        client.answer = report(*children) | {"past": [done]}
        await client.lines.put("event: split")
        await client.lines.put('data: {"database": "d", "container": "other"}')
        await client.lines.put('data: {"database": "d", "container": "c"}')
        await told(watch, 2)
        assert [one.partition("  ")[2] for one in watch.news] == ["split done: 0 → 1, 2"]
        assert seen[0] == 1
        watches.leave(watch, listener)
        asked = len(client.asked)
        await asyncio.sleep(0.05)
        assert len(client.asked) == asked  # nobody looks, nobody asks

    asyncio.run(main())


def test_keys_are_asked_for_again_only_after_something_happened() -> None:
    watch = Watch(cast(Client, FakeClient()), PLACE)
    watch.take(report(partition("0"), keys=[]), with_keys=True)
    for _ in range(6):
        watch.take(report(partition("0")), with_keys=False)
    assert not watch._wants_keys()
    watch.take(report(partition("0", bytes=5)), with_keys=False)
    assert watch._wants_keys()


def test_keys_are_asked_for_again_although_it_is_quiet_since() -> None:
    """Without it, what happened just after keys were asked for would never be shown."""
    watch = Watch(cast(Client, FakeClient()), PLACE)
    watch.take(report(partition("0"), keys=[]), with_keys=True)
    for _ in range(6):
        watch.take(report(partition("0", bytes=5)), with_keys=False)
    assert watch._wants_keys()
    watch.take(report(partition("0", bytes=5), keys=[]), with_keys=True)
    for _ in range(6):
        watch.take(report(partition("0", bytes=5)), with_keys=False)
    assert not watch._wants_keys()


def test_a_refusal_is_told_and_ends_when_the_server_answers() -> None:
    async def main() -> None:
        client = FakeClient()
        client.answer = Refused(404, "NotFound", "gone", {})
        watches = Watches(cast(Client, client))
        errors: list[Refused | None] = []

        def listener(watch: Watch) -> None:
            errors.append(watch.error)

        watch = watches.join(PLACE, listener)
        await told(watch, 1)
        client.answer = report(partition("0"))
        watch.wake()
        async with asyncio.timeout(60):
            while watch.error is not None or not watch.looks:
                await asyncio.sleep(0.01)
        assert isinstance(errors[0], Refused)
        watches.leave(watch, listener)

    asyncio.run(main())


def test_two_pages_share_one_look() -> None:
    async def main() -> None:
        client = FakeClient()
        watches = Watches(cast(Client, client))
        first: list[Watch] = []
        second: list[Watch] = []
        watch = watches.join(PLACE, first.append)
        await told(watch, 1)
        assert watches.join(PLACE, second.append) is watch
        assert second == [watch]  # what is known is shown at once
        watches.leave(watch, first.append)
        watches.leave(watch, second.append)

    asyncio.run(main())
