"""Which part of a container a request is about, also when the range it names is gone."""

import pytest
from tests.support.nosql import Api, document

from armillary.store.moves.runner import begin_merge, begin_split

DOCS = "/dbs/d/colls/c/docs"
COUNT = 40
ORDERED = "SELECT VALUE c.n FROM c ORDER BY c.n"
PLAIN = "SELECT VALUE c.n FROM c"


def page(api: Api, text: str, ordinal: int, token: str | None = None) -> tuple[list[int], str]:
    headers = {
        "x-ms-documentdb-isquery": "True",
        "x-ms-documentdb-partitionkeyrangeid": str(ordinal),
        "x-ms-max-item-count": "7",
    } | ({} if token is None else {"x-ms-continuation": token})
    answer = api.ask("POST", DOCS, {"query": text}, headers)
    if answer.status != 200:
        assert (answer.status, answer.headers["x-ms-substatus"]) == (410, "1002")
        return [], "gone"
    return document(answer)["Documents"], answer.headers.get("x-ms-continuation", "")


def rest(api: Api, text: str, ordinal: int, token: str) -> list[int]:
    found: list[int] = []
    while token:
        rows, token = page(api, text, ordinal, token)
        found += rows
    return found


@pytest.fixture
def filled(api: Api) -> Api:
    for n in range(COUNT):
        api.item({"id": str(n), "pk": f"k{n}", "n": n})
    return api


@pytest.mark.parametrize("text", [ORDERED, PLAIN])
def test_who_is_in_the_middle_of_a_range_that_splits_goes_on(filled: Api, text: str) -> None:
    """Two SDKs lose their place at a 410: rows would come twice, or never end."""
    store = filled.service.gateway.container("d", "c")
    begin_split(store, 0).run()
    first, token = page(filled, text, 1)
    mine = first + rest(filled, text, 1, token)
    begin_split(store, 1).run()
    begin_split(store, 3).run()  # and a child of it again
    found = first + rest(filled, text, 1, token)
    assert sorted(found) == sorted(mine)
    assert len(mine) < COUNT, "the neighbour's rows are not ours"
    if text == ORDERED:
        assert found == mine


def test_what_begins_now_is_told_that_the_range_is_gone(filled: Api) -> None:
    store = filled.service.gateway.container("d", "c")
    begin_split(store, 0).run()
    store.refresh()
    assert page(filled, PLAIN, 0) == ([], "gone")
    feed = {"x-ms-documentdb-partitionkeyrangeid": "0", "a-im": "Incremental Feed"}
    feed |= {"if-none-match": '"5"', "x-ms-continuation": "x"}
    assert filled.ask("GET", DOCS, None, feed).status == 410


@pytest.mark.parametrize("text", [ORDERED, PLAIN])
def test_who_is_in_the_middle_of_a_range_that_merges_goes_on(filled: Api, text: str) -> None:
    """What became of it reaches further than it did: only its own rows are given."""
    store = filled.service.gateway.container("d", "c")
    begin_split(store, 0).run()
    first, token = page(filled, text, 1)
    mine = first + rest(filled, text, 1, token)
    begin_merge(store, [1, 2]).run()
    store.refresh()
    found = first + rest(filled, text, 1, token)
    assert sorted(found) == sorted(mine)
    assert len(mine) < COUNT
    assert page(filled, text, 1) == ([], "gone"), "what begins now"


def test_a_range_that_never_was_is_gone(filled: Api) -> None:
    _, token = page(filled, PLAIN, 0)
    assert page(filled, PLAIN, 77, token) == ([], "gone")
