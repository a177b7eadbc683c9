"""Without this, reading a thousand items by id and key in one query, as SDKs do for `read_items`,
would ask the index a million times: once for each pair in each key's piece of the ring."""

from unittest.mock import patch

import pytest
from tests.support.accounts import store_of

from armillary.account import open_account
from armillary.query.access.rids import Gathering
from armillary.query.run.sql import run_query

COUNT = 60
PAIRS = "SELECT * FROM c WHERE ( {} )".format(
    " OR ".join(f"( c.id = @i{n} AND c.pk = @k{n} )" for n in range(COUNT))
)
KEYS = "SELECT * FROM c WHERE c.pk IN ({})".format(", ".join(f"@k{n}" for n in range(COUNT)))


@pytest.mark.parametrize("text", [PAIRS, KEYS])
def test_the_index_is_not_asked_for_every_pair_in_every_key(text: str) -> None:
    parameters = {f"@i{n}": f"i{n}" for n in range(COUNT)} | {
        f"@k{n}": f"k{n}" for n in range(COUNT)
    }
    with open_account(":memory:", housekeeping=False) as account:
        items = account.create_database("d").create_container("c", "/pk", throughput=12_000)
        items.bulk(("create", ({"id": f"i{n}", "pk": f"k{n}"},)) for n in range(2 * COUNT))
        used = {name: value for name, value in parameters.items() if name in text}
        with patch("armillary.query.access.choice.Gathering", wraps=Gathering) as reading:
            found = {str(one["id"]) for one in items.query(text, used)}
    assert found == {f"i{n}" for n in range(COUNT)}
    assert reading.call_count < COUNT


def test_a_page_holds_all_keys_of_its_physical_partition() -> None:
    """Or a client would need a request for every key."""
    with open_account(":memory:", housekeeping=False) as account:
        items = account.create_database("d").create_container("c", "/pk", throughput=12_000)
        items.bulk(("create", ({"id": f"i{n}", "pk": f"k{n}"},)) for n in range(COUNT))
        parameters = {f"@k{n}": f"k{n}" for n in range(COUNT)}
        pages, token = [], None
        while True:
            page = run_query(
                store_of(items), KEYS, parameters, continuation=token, page_per_range=True
            )
            pages.append(len(page.rows))
            token = page.continuation
            if token is None:
                break
        assert (len(pages), sum(pages)) == (len(items.partitions()), COUNT)


@pytest.mark.parametrize("tail", ["", " ORDER BY c.id"])
@pytest.mark.parametrize("text", [PAIRS, KEYS, KEYS.replace("*", "DISTINCT VALUE c.id")])
@pytest.mark.parametrize("size", [-1, 7])
def test_a_physical_partition_is_charged_once_however_many_keys(
    text: str, tail: str, size: int
) -> None:
    """Or reading a hundred items by id in one query would cost 250 RU, and be refused."""
    parameters = {f"@i{n}": f"i{n}" for n in range(COUNT)} | {
        f"@k{n}": f"k{n}" for n in range(COUNT)
    }
    used = {name: value for name, value in parameters.items() if name in text}
    with open_account(":memory:", housekeeping=False) as account:
        items = account.create_database("d").create_container("c", "/pk", throughput=12_000)
        items.bulk(("create", ({"id": f"i{n}", "pk": f"k{n}"},)) for n in range(2 * COUNT))
        ranges, rows, token = 0, 0, None
        for _ in range(2 * COUNT):
            page = run_query(store_of(items), text + tail, used, continuation=token, max_items=size)
            ranges += page.metrics.ranges
            rows += len(page.rows)
            token = page.continuation
            if token is None:
                break
        assert (ranges, rows) == (len(items.partitions()), COUNT)
        assert ranges > 1
