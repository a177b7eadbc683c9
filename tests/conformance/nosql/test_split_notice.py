"""Who watches the ranges of a container sees them `splitting` before they are gone."""

import time
from collections.abc import Callable
from typing import Any

from tests.support.nosql import Api, api, document

RANGES = "/dbs/d/colls/c/pkranges"


def test_splits_are_announced_before_they_begin() -> None:
    with api() as made:
        quiet = made.ask("GET", RANGES)
        assert states(quiet) == {"0": "online"}
        scale(made, 20_000)
        watched = made.ask("GET", RANGES, headers={"if-none-match": etag(quiet)})
        assert states(watched) == {"0": "splitting"}
        assert made.ask("GET", RANGES, headers={"if-none-match": etag(watched)}).status == 304
        wait(lambda: len(states(made.ask("GET", RANGES))) == 2)
        wait(lambda: set(states(made.ask("GET", RANGES)).values()) == {"online"})
        assert made.ask("GET", RANGES, headers={"if-none-match": etag(watched)}).status == 200


def scale(made: Api, ru: int) -> None:
    [offer] = document(made.ask("GET", "/offers"))["Offers"]
    offer["content"]["offerThroughput"] = ru
    answer = made.ask("PUT", f"/offers/{offer['_rid']}", offer)
    assert document(answer)["content"]["isOfferReplacePending"]


def states(answer: Any) -> dict[str, str]:
    return {one["id"]: one["status"] for one in document(answer)["PartitionKeyRanges"]}


def etag(answer: Any) -> str:
    return str(dict(answer.headers)["etag"])


def wait(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not is_true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
