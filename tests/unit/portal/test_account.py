"""A page of items out of the pieces that the API gives: neither half empty nor without bound."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import httpx
import pytest

from armillary.portal.context import Place
from armillary.portal.data.account import PAGE_BYTES, Items
from armillary.portal.data.client import Client, Reply
from armillary.portal.data.items import Keyed

KEY = {"partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}


class Ranges:
    """A container of ten ranges with three items each: a piece ends with its range."""

    def __init__(self, piece_bytes: int) -> None:
        self.asked: list[tuple[int, str | None]] = []
        self._piece_bytes = piece_bytes

    async def rest(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        assert headers is not None
        size, token = int(headers["x-ms-max-item-count"]), headers.get("x-ms-continuation")
        self.asked.append((size, token))
        at = int(token or 0)
        end = min(at + size, at - at % 3 + 3)
        found = {"x-ms-request-charge": "1.5", "content-length": str(self._piece_bytes)}
        found |= {"x-ms-continuation": str(end)} if end < 30 else {}
        items = [{"id": str(number)} for number in range(at, end)]
        return Reply(200, httpx.Headers(found), {"Documents": items}, 0.0)


def items_of(ranges: Ranges) -> Items:
    client = cast(Client, cast(Any, ranges))
    return Items(client, Place("d", "c"), Keyed.of(KEY))


@pytest.mark.parametrize(("size", "count"), [(2, 2), (7, 7), (25, 25), (100, 30)])
def test_a_page_is_filled_over_ranges(size: int, count: int) -> None:
    page = asyncio.run(items_of(Ranges(100)).page(size, None))
    assert [one["id"] for one in page.items] == [str(number) for number in range(count)]
    assert (page.continuation is None) == (count == 30)


def test_pages_go_on_where_the_one_before_ended() -> None:
    items = items_of(Ranges(100))
    seen, token = [], None
    while True:
        page = asyncio.run(items.page(7, token))
        seen += [one["id"] for one in page.items]
        token = page.continuation
        if token is None:
            break
    assert seen == [str(number) for number in range(30)]


def test_large_items_end_a_page_early() -> None:
    ranges = Ranges(PAGE_BYTES // 2)
    page = asyncio.run(items_of(ranges).page(25, None))
    assert (len(page.items), page.continuation, page.charge_ru) == (6, "6", 3.0)
    assert len(ranges.asked) == 2
