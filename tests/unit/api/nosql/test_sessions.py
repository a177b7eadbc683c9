"""Session tokens: their form, and the barrier. Facts: nosql-rest 3.3."""

import pytest
from tests.support.nosql import Api, document, pk
from tests.support.nosql import api as made

from armillary.api.nosql.items.sessions import (
    Seen,
    check_barrier,
    format_token,
    parse_token,
    seen_of,
)
from armillary.errors import BadInput, SessionNotAvailable
from armillary.partition.ranges import Range
from armillary.store.moves.runner import begin_merge, begin_split
from armillary.store.rows.meta import Meta

DOCS = "/dbs/d/colls/c/docs"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0:-1#62", {0: Seen(-1, 62)}),
        ("0:62", {0: Seen(-1, 62)}),
        ("0:0#62#27=-1", {0: Seen(0, 62)}),
        ("0:-1#62,3:-1#17", {0: Seen(-1, 62), 3: Seen(-1, 17)}),
        ("0:-1#5,0:-1#9", {0: Seen(-1, 9)}),
    ],
)
def test_tokens_are_read(text: str, expected: dict[int, Seen]) -> None:
    assert parse_token(text) == expected


@pytest.mark.parametrize("text", ["", "x", "0", "0:", "0:#1", "a:1#2", "0:1#", "0:-1#62,", "0:１"])
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="session token"):
        parse_token(text)


@pytest.mark.parametrize(
    ("token", "fine"),
    [
        ("3:-1#10", True),
        ("3:-1#11", False),
        ("3:0#1", False),
        ("3:-2#99", True),
        ("9:-1#99", True),
        ("1:-1#11", False),
        ("1:-1#10", True),
    ],
)
def test_a_read_behind_what_the_client_has_seen_is_refused(token: str, fine: bool) -> None:
    owner = Range(3, 1, b"", b"\xff", parents=(1,))
    now = seen_of(Meta(b"", 3, lsn=10))
    if fine:
        check_barrier(parse_token(token), owner, now)
    else:
        with pytest.raises(SessionNotAvailable):
            check_barrier(parse_token(token), owner, now)


def test_every_write_moves_the_token_by_one(api: Api) -> None:
    tokens = [api.item({"id": str(n), "pk": "x"}).headers["x-ms-session-token"] for n in range(3)]
    assert tokens == [format_token(0, -1, n) for n in (1, 2, 3)]
    read = api.ask("GET", DOCS + "/0", None, pk("x"))
    assert read.headers["x-ms-session-token"] == "0:-1#3"
    assert read.headers["x-ms-item-lsn"] == "1"
    assert read.headers["x-ms-content-path"] == document(api.ask("GET", "/dbs/d/colls/c"))["_rid"]


def test_a_token_from_before_a_split_and_a_merge_still_works(api: Api) -> None:
    for n in range(20):
        api.item({"id": str(n), "pk": f"k{n}"})
    old = "0:-1#20"
    store = api.account.container("d", "c")
    begin_split(store, 0).run()
    read = api.ask("GET", DOCS + "/3", None, pk("k3") | {"x-ms-session-token": old})
    assert read.status == 200
    ordinal, version, lsn = _parts(read.headers["x-ms-session-token"])
    assert ordinal in (1, 2)
    assert version == -1
    assert lsn >= 20
    ahead = {"x-ms-session-token": f"0:-1#{lsn + 5}"}
    assert api.ask("GET", DOCS + "/3", None, pk("k3") | ahead).status == 404
    begin_merge(store, [1, 2]).run()
    read = api.ask("GET", DOCS + "/3", None, pk("k3") | {"x-ms-session-token": old})
    assert read.status == 200
    assert _parts(read.headers["x-ms-session-token"])[:2] == (3, 0)


def _parts(token: str) -> tuple[int, int, int]:
    (ordinal, seen), *_ = parse_token(token).items()
    return ordinal, *seen


QUERY = {"x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True"}
ALL = {"query": "SELECT * FROM c"}


def test_an_answer_of_several_ranges_has_a_token_for_each() -> None:
    """Or a session would end at the first query over all of them."""
    with made(partitions=3) as api:
        for n in range(12):
            api.item({"id": str(n), "pk": f"k{n}"})
        for answer in (api.ask("POST", DOCS, ALL, QUERY), api.ask("GET", DOCS)):
            token = answer.headers["x-ms-session-token"]
            seen = parse_token(token)
            assert sorted(seen) == [0, 1, 2]
            assert sum(one.lsn for one in seen.values()) == 12
            again = QUERY | {"x-ms-session-token": token}
            assert api.ask("POST", DOCS, ALL, again).status == 200
        ahead = QUERY | {"x-ms-session-token": f"1:-1#{seen[1].lsn + 1}"}
        assert api.ask("POST", DOCS, ALL, ahead).status == 404
        assert api.ask("GET", DOCS, None, ahead).headers["x-ms-substatus"] == "1002"


@pytest.mark.parametrize("target", [DOCS, DOCS + "/1"])
def test_only_a_session_waits_for_its_token(api: Api, target: str) -> None:
    api.item({"id": "1", "pk": "x"})
    ahead = pk("x") | {"x-ms-session-token": "0:-1#99"}
    for level, status in {"Session": 404, "ConsistentPrefix": 200, "Eventual": 200}.items():
        headers = ahead | {"x-ms-consistency-level": level}
        assert api.ask("GET", target, None, headers).status == status, level
    stronger = ahead | {"x-ms-consistency-level": "Strong"}
    assert api.ask("GET", target, None, stronger).status == 400
    nonsense = pk("x") | {"x-ms-session-token": "?", "x-ms-consistency-level": "Eventual"}
    assert api.ask("GET", target, None, nonsense).status == 400
