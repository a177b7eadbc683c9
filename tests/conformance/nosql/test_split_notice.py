"""Who watches the ranges of a container sees them `splitting` before they are gone."""

from typing import Any

import pytest
from tests.support.nosql import Api, api, document
from tests.support.waiting import until

from armillary.api.core import gateway

RANGES = "/dbs/d/colls/c/pkranges"


def test_splits_are_announced_before_they_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    # Longer than what a busy machine may lose between two lines of this test.
    monkeypatch.setattr(gateway, "SPLIT_NOTICE_SECONDS", 3.0)
    with api() as made:
        quiet = made.ask("GET", RANGES)
        assert states(quiet) == {"0": "online"}
        scale(made, 20_000)
        watched = made.ask("GET", RANGES, headers={"if-none-match": etag(quiet)})
        assert states(watched) == {"0": "splitting"}
        assert made.ask("GET", RANGES, headers={"if-none-match": etag(watched)}).status == 304
        until(lambda: len(states(made.ask("GET", RANGES))) == 2)
        until(lambda: set(states(made.ask("GET", RANGES)).values()) == {"online"})
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
