"""The fast path of a point read answers exactly like the general path, or leaves the request to it.
Without this, a header handled in one place only would make reads depend on luck."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.nosql import READ_ONLY_KEY, SECONDARY_KEY, WRONG_KEY, Api
from tests.support.nosql import api as made
from tests.support.raw_http import parse_answer

from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.http.encoding import encode
from armillary.api.http.messages import Request, Waiting
from armillary.server.bounds import Bounds
from armillary.server.http.templates import Templates
from armillary.server.http.wire import Incoming, RequestReader

ACTIVITY = {"x-ms-activity-id": "6c1e"}
DATE_LINE = "Date: today\r\n"
ORDINARY = "/dbs/d/colls/c/docs/i1"
OF_K1 = {"x-ms-documentdb-partitionkey": '["k1"]'}


@pytest.fixture(scope="module")
def filled() -> Iterator[Api]:
    with made(partitions=3) as api:
        for number in range(20):
            api.item({"id": f"i{number}", "pk": f"k{number % 7}", "text": "x" * 100 * number})
        api.item({"id": "50%", "pk": "k0"})
        api.item({"id": "one", "pk": 1})
        api.item({"id": "one", "pk": True})
        yield api


def raw(target: str, headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"GET {target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


def parsed(data: bytes) -> Request | None:
    events = RequestReader(Bounds()).receive(data)
    (event,) = events if len(events) == 1 else (None,)
    return event.request if isinstance(event, Incoming) else None


def short(api: Api, data: bytes, like: bytes | None = None) -> bytes | None:
    """The answer of a worker that has seen a request like it."""
    request = parsed(data if like is None else like)
    assert request is not None
    shape = Templates(api.service.fast_paths).find(data if like is None else like, request)
    found = None if shape is None else shape.match(data)
    if shape is None or found is None:
        return None
    answer = shape.answer(DATE_LINE.encode(), *found)
    assert not isinstance(answer, Waiting)
    return answer


def long(api: Api, request: Request) -> bytes:
    return encode(api.service.handle(request), DATE_LINE, old=False)


targets = st.sampled_from(
    [
        *(f"/dbs/d/colls/c/docs/i{number}" for number in range(20)),
        "/dbs/d/colls/c/docs/one",
        "/dbs/d/colls/c/docs/i1/",
        "//dbs/d/colls/c/docs/i1",
        "/dbs/d/colls/c/docs/none",
        "/dbs/d/colls/c/docs/50%25",
        "/dbs/d/colls/c/docs/i1?x=1",
        "/dbs/d/colls/none/docs/i1",
        "/dbs/d/colls/c/docs/" + 200 * "i",
        "/dbs/d/colls/c/docs/i1/attachments",
    ]
)
keys = st.sampled_from(
    [f'["k{number}"]' for number in range(8)]
    + ["[1]", "[true]", "[1.0]", "[]", "x", '["a","b"]', "[{}]", '[ "k1" ]', '["k1"', "[]]"]
)
optional = st.fixed_dictionaries(
    {},
    optional={
        "x-ms-documentdb-partitionkey": keys,
        "x-ms-session-token": st.sampled_from(
            ["", "0:-1#1", "1:-1#99", "2:5", "x", "0:-1#1,1:0#0", "#", "0:-1#1,"]
        ),
        "x-ms-consistency-level": st.sampled_from(["Session", "Eventual", "Strong", "x"]),
        "if-none-match": st.sampled_from(["*", '"x"']),
        "x-ms-cosmos-intended-collection-rid": st.sampled_from(["", "AAAA", "RID"]),
        "x-ms-activity-id": st.sampled_from(["6c1e", "", "x" * 100, "ä"]),
        "a-im": st.just("Incremental Feed"),
        "x-ms-date": st.sampled_from(["", "yesterday", "Thu, 01 Jan 1970 00:00:00 GMT"]),
        "user-agent": st.sampled_from(["a", "", "b  c"]),
    },
)
signing = st.sampled_from([EMULATOR_KEY] * 4 + [SECONDARY_KEY, READ_ONLY_KEY, WRONG_KEY])
shifts = st.sampled_from([0, 0, 0, 899, 1000])


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(target=targets, extra=optional, key=signing, shift_s=shifts)
@example(ORDINARY, OF_K1, EMULATOR_KEY, 0)
def test_both_paths_answer_alike(
    filled: Api, target: str, extra: dict[str, str], key: str, shift_s: int
) -> None:
    if extra.get("x-ms-cosmos-intended-collection-rid") == "RID":
        extra = extra | {"x-ms-cosmos-intended-collection-rid": rid_of(filled)}
    headers = filled.signed("GET", target, key=key, shift_s=shift_s) | ACTIVITY | extra
    data = raw(target, headers)
    request = parsed(data)
    assert request is not None
    whole = long(filled, request)
    quick = short(filled, data)
    if quick is not None:
        assert parse_answer(quick) == parse_answer(whole)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(target=targets, extra=optional, key=signing, shift_s=shifts)
def test_what_was_learned_from_another_request_answers_alike_too(
    filled: Api, target: str, extra: dict[str, str], key: str, shift_s: int
) -> None:
    like = raw(ORDINARY, filled.signed("GET", ORDINARY) | ACTIVITY | OF_K1 | extra)
    if parsed(like) is None:
        return
    data = raw(target, filled.signed("GET", target, key=key, shift_s=shift_s) | ACTIVITY | extra)
    quick = short(filled, data, like)
    if quick is not None:
        request = parsed(data)
        assert request is not None
        assert parse_answer(quick) == parse_answer(long(filled, request))


def rid_of(api: Api) -> str:
    return api.service.gateway.container("d", "c").state.record.rid


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"x-ms-session-token": "0:-1#1"},
        {"x-ms-consistency-level": "Session"},
        {"user-agent": "anything (at) all"},
        {"x-ms-cosmos-intended-collection-rid": "RID"},
    ],
    ids=str,
)
def test_an_ordinary_read_takes_the_fast_path(filled: Api, extra: dict[str, str]) -> None:
    if "x-ms-cosmos-intended-collection-rid" in extra:
        extra = {"x-ms-cosmos-intended-collection-rid": rid_of(filled)}
    filled.ask("GET", ORDINARY, headers=OF_K1)  # its container is known then
    quick = short(filled, raw(ORDINARY, filled.signed("GET", ORDINARY) | OF_K1 | extra))
    assert quick is not None
    assert quick.startswith(b"HTTP/1.1 200 OK\r\n")
    assert quick.endswith(b"}")


#: What azure-cosmos 4.17 sends with a point read beside what it signs.
SDK = {
    "Cache-Control": "no-cache",
    "x-ms-version": "2020-07-15",
    "x-ms-documentdb-query-iscontinuationexpected": "False",
    "User-Agent": "azsdk-python-cosmos/4.17.1",
    "x-ms-client-id": "6c1e",
    "x-ms-consistency-level": "Session",
    "x-ms-cosmos-sdk-supportedcapabilities": "0",
    "x-ms-session-token": "0:-1#1",
    "x-ms-thinclient-proxy-operation-type": "Read",
    "x-ms-thinclient-proxy-resource-type": "docs",
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",
    "Connection": "keep-alive",
}


def test_what_the_python_sdk_sends_is_fast(filled: Api) -> None:
    """A header of an SDK that is in no list would switch its fast path off, silently."""
    data = raw(ORDINARY, filled.signed("GET", ORDINARY) | ACTIVITY | OF_K1 | SDK)
    assert short(filled, data) is not None


@pytest.mark.parametrize("name", ["x-ms-not-known-yet", "prefer", "if-match", "range"])
def test_a_header_that_is_in_no_list_takes_the_general_path(filled: Api, name: str) -> None:
    """It may decide something: a fast path that does not know it would answer another question."""
    data = raw(ORDINARY, filled.signed("GET", ORDINARY) | ACTIVITY | OF_K1)
    assert short(filled, data) is not None
    more = raw(ORDINARY, filled.signed("GET", ORDINARY) | ACTIVITY | OF_K1 | {name: "a"})
    assert short(filled, more) is None
    assert short(filled, more, data) is None


def test_a_signature_that_was_right_once_is_computed_again(filled: Api) -> None:
    """Nothing is remembered about signatures: another path under the same one is refused."""
    headers = filled.signed("GET", ORDINARY) | OF_K1
    assert short(filled, raw(ORDINARY, headers)) is not None
    assert short(filled, raw("/dbs/d/colls/c/docs/i8", headers)) is None


def test_faults_are_for_the_general_path(filled: Api) -> None:
    data = raw(ORDINARY, filled.signed("GET", ORDINARY) | OF_K1)
    assert short(filled, data) is not None
    filled.gateway.shared.cells[0] = 1
    try:
        assert short(filled, data) is None
    finally:
        filled.gateway.shared.cells[0] = 0


def test_what_a_range_says_of_itself_goes_on_with_its_writes(filled: Api) -> None:
    """The form of an answer is kept until the next write: LSN and session token are those of now,
    and a token is compared with them."""
    body = {"id": "far", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    assert filled.ask("POST", "/dbs/d/colls", body).status == 201
    filled.item({"id": "i", "pk": "k1"}, "/dbs/d/colls/far/docs")
    target = "/dbs/d/colls/far/docs/i"
    headers = filled.signed("GET", target) | ACTIVITY | OF_K1
    tokens = []
    for number in range(3):
        data = raw(target, headers)
        request = parsed(data)
        assert request is not None
        for _ in range(2):
            quick = short(filled, data)
            assert quick is not None
            assert parse_answer(quick) == parse_answer(long(filled, request))
        token = filled.ask("GET", target, headers=OF_K1).headers["x-ms-session-token"]
        tokens.append(token)
        later = token[: token.index("#") + 1] + "99"
        assert short(filled, raw(target, headers | {"x-ms-session-token": token})) is not None
        assert short(filled, raw(target, headers | {"x-ms-session-token": later})) is None
        filled.item({"id": f"n{number}", "pk": "k1"}, "/dbs/d/colls/far/docs")
    assert len(set(tokens)) == 3
    assert filled.ask("DELETE", "/dbs/d/colls/far").status == 204


def test_a_container_that_was_made_again_is_another(filled: Api) -> None:
    """Templates and places go with the state they were made of."""
    body = {"id": "again", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    target = "/dbs/d/colls/again/docs/i"
    for text in ("first", "second"):
        assert filled.ask("POST", "/dbs/d/colls", body).status == 201
        filled.item({"id": "i", "pk": "k1", "text": text}, "/dbs/d/colls/again/docs")
        quick = short(filled, raw(target, filled.signed("GET", target) | OF_K1))
        assert quick is not None
        assert text.encode() in quick
        assert filled.ask("DELETE", "/dbs/d/colls/again").status == 204
        assert short(filled, raw(target, filled.signed("GET", target) | OF_K1)) is None
