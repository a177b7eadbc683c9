"""Who may do what. Without these, a stranger could, or an SDK that signs in its own way could not.
Facts: nosql-rest 1."""

import base64
import hashlib
import hmac
import json
from typing import Any
from urllib.parse import quote

import pytest
from tests.support.nosql import (
    READ_ONLY_KEY,
    SECONDARY_KEY,
    WRONG_KEY,
    Api,
    document,
    pk,
    signature,
)
from tests.support.nosql import api as made

from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings
from armillary.api.http.messages import Request
from armillary.api.nosql.routes import ROUTES, Route

ITEM = "/dbs/d/colls/c/docs/1"


def said(response: Any) -> str:
    return str(document(response)["message"])


# --- master keys ----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [EMULATOR_KEY, SECONDARY_KEY])
def test_either_key_opens(api: Api, key: str) -> None:
    assert api.ask("GET", "/dbs", key=key).status == 200


def test_a_wrong_key_is_401_and_says_what_should_have_been_signed(api: Api) -> None:
    response = api.ask("GET", "/dbs/d", key=WRONG_KEY)
    assert response.status == 401
    assert document(response)["code"] == "Unauthorized"
    assert "payload to sign: 'get\\ndbs\\ndbs/d\\n" in said(response)


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (None, "Required Header authorization is missing"),
        ("", "Required Header authorization is missing"),
        ("hello", "doesn't confirm to the required format"),
        ("type=master&ver=2.0&sig=AAAA", "doesn't confirm to the required format"),
        ("type=master&ver=1.0&sig=", "doesn't confirm to the required format"),
        ("type=other&ver=1.0&sig=AAAA", "doesn't confirm to the required format"),
        ("type=master&ver=1.0&sig=%%%", "doesn't confirm to the required format"),
        ("type=master&ver=1.0&sig=" + "A" * 2000, "doesn't confirm to the required format"),
        ("type=master&ver=1.0&sig=AAAA", "The wrong key is being used"),
        ("type=resource&ver=1.0&sig=AAAA;", "doesn't confirm to the required format"),
        ("type=resource&ver=1.0&sig=AAAA;AAAA;AAAA;", "was not made by this account"),
        ("type=aad&ver=1.0&sig=a.b.c", "does not take tokens of Entra ID"),
        ("Bearer x", "doesn't confirm to the required format"),
    ],
)
def test_headers_that_open_nothing(api: Api, header: str | None, text: str) -> None:
    headers = {"x-ms-date": api.date()} | ({} if header is None else {"authorization": header})
    response = api.send("GET", "/dbs", headers)
    assert response.status == 401
    assert text in said(response)


@pytest.mark.parametrize(
    ("shift_s", "status"), [(0, 200), (-890, 200), (890, 200), (-910, 403), (910, 403)]
)
def test_a_date_is_good_for_a_quarter_of_an_hour(api: Api, shift_s: int, status: int) -> None:
    response = api.ask("GET", "/dbs", shift_s=shift_s)
    assert response.status == status
    if status == 403:
        assert "not valid at the current time" in said(response)


@pytest.mark.parametrize(
    ("date", "text"),
    [(None, "mandates Date headers"), ("yesterday", "invalid format"), ("1 Jan 2020", "invalid")],
)
def test_without_a_proper_date_nothing_is_signed(api: Api, date: str | None, text: str) -> None:
    headers = api.signed("GET", "/dbs")
    del headers["x-ms-date"]
    response = api.send("GET", "/dbs", headers | ({} if date is None else {"x-ms-date": date}))
    assert response.status == 401
    assert text in said(response)


def test_the_date_header_serves_as_well(api: Api) -> None:
    date = api.date()
    text = f"get\ndbs\n\n\n{date.lower()}\n"
    digest = hmac.new(base64.b64decode(EMULATOR_KEY), text.encode(), hashlib.sha256).digest()
    header = quote("type=master&ver=1.0&sig=" + base64.b64encode(digest).decode())
    assert api.send("GET", "/dbs", {"date": date, "authorization": header}).status == 200


def test_escapes_of_either_case_and_none(api: Api) -> None:
    headers = api.signed("GET", "/dbs")
    lower = headers["authorization"].replace("%3D", "%3d").replace("%2B", "%2b")
    bare = lower.replace("%3d", "=").replace("%26", "&").replace("%2b", "+").replace("%2F", "/")
    for one in (lower, bare):
        assert api.send("GET", "/dbs", headers | {"authorization": one}).status == 200


@pytest.mark.parametrize(
    ("target", "link"),
    [
        ("/dbs/d/colls/c/docs/a%20b", "dbs/d/colls/c/docs/a b"),
        ("/dbs/d/colls/c/docs/a%20b", "dbs/d/colls/c/docs/a%20b"),
        ("//dbs/d//colls/c/docs/a%20b/", "dbs/d/colls/c/docs/a b"),
    ],
)
def test_a_link_is_signed_decoded_or_as_it_was_sent(api: Api, target: str, link: str) -> None:
    api.item({"id": "a b", "pk": "x"})
    response = api.ask("GET", target, headers=pk("x"), signed_as=("docs", link))
    assert response.status == 200, response.body


def test_by_rid_the_deepest_rid_is_signed_in_lower_case(api: Api) -> None:
    item = document(api.item({"id": "1", "pk": "x"}))
    link = item["_self"]
    rids = link.strip("/").split("/")[1::2]
    read = api.ask("GET", "/" + link, headers=pk("x"), signed_as=("docs", rids[2].lower()))
    assert document(read)["id"] == "1"
    feed = f"/dbs/{rids[0]}/colls/{rids[1]}/docs"
    assert api.ask("GET", feed, signed_as=("docs", rids[1].lower())).status == 200
    database = f"/dbs/{rids[0]}"
    assert api.ask("GET", database + "/colls", signed_as=("colls", rids[0].lower())).status == 200
    assert api.ask("GET", database, signed_as=("dbs", rids[0].lower())).status == 200
    assert api.ask("GET", feed, signed_as=("docs", rids[0].lower())).status == 401


def test_a_database_may_be_named_like_a_rid(api: Api) -> None:
    api.account.create_database("AAAAAA==")
    assert document(api.ask("GET", "/dbs/AAAAAA=="))["id"] == "AAAAAA=="


# --- read-only keys -------------------------------------------------------------------------------


def target_of(route: Route) -> str:
    return "/" + route.pattern.replace("*", "x")


VARIANTS = {
    "query": {"x-ms-documentdb-isquery": "true"},
    "plan": {"x-ms-cosmos-is-query-plan-request": "true"},
    "batch": {"x-ms-cosmos-is-batch-request": "true"},
    "changes": {"a-im": "Incremental Feed"},
    "": {},
}


@pytest.mark.parametrize("route", ROUTES, ids=lambda one: f"{one.method} {one.name}")
def test_every_route_wants_a_key_and_a_read_only_key_changes_nothing(
    api: Api, route: Route
) -> None:
    target, headers = target_of(route), VARIANTS[route.variant]
    assert api.send(route.method, target, headers).status == 401
    answer = api.ask(route.method, target, {}, headers, key=READ_ONLY_KEY)
    refused = answer.status == 403 and "Insufficient permissions" in said(answer)
    assert refused == route.writes
    assert api.ask(route.method, target, {}, headers, key=WRONG_KEY).status == 401


# --- Entra ID -------------------------------------------------------------------------------------


def jwt(**claims: Any) -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"type=aad&ver=1.0&sig={part({'alg': 'none'})}.{part(claims)}.x"


def test_tokens_of_entra_only_when_switched_on() -> None:
    with made(GatewaySettings(accept_entra=True)) as api:
        now = api.clock.now_ms() // 1000
        good = {"authorization": jwt(exp=now + 60), "x-ms-date": api.date()}
        assert api.send("GET", "/dbs/d/colls/c", good).status == 200
        assert (
            api.send("GET", "/dbs/d/colls/c", {"authorization": quote(jwt(exp=now + 60))}).status
            == 200
        )
        assert api.send("GET", "/dbs", {"authorization": jwt(exp=now - 60)}).status == 403
        assert api.send("GET", "/dbs", {"authorization": jwt()}).status == 401
        refused = api.send("POST", "/dbs", good, b'{"id": "x"}')
        assert (refused.status, refused.headers["x-ms-substatus"]) == (403, "5300")
        made_item = api.send("POST", "/dbs/d/colls/c/docs", good, b'{"id": "1", "pk": "x"}')
        assert made_item.status == 201


# --- users and resource tokens --------------------------------------------------------------------


def token_for(api: Api, permission: dict[str, Any], headers: dict[str, str] | None = None) -> str:
    api.ask("POST", "/dbs/d/users", {"id": "ada"})
    response = api.ask("POST", "/dbs/d/users/ada/permissions", permission, headers)
    assert response.status == 201, response.body
    return quote(document(response)["_token"])


def ask_with(
    api: Api, token: str, method: str, target: str, body: Any = None, **headers: str
) -> int:
    given = {"authorization": token, "x-ms-date": api.date(), **headers}
    raw = b"" if body is None else json.dumps(body).encode()
    return api.send(method, target, given, raw).status


@pytest.mark.parametrize("resource", ["dbs/d/colls/c", "/dbs/d/colls/c/", "by rid"])
def test_a_token_reads_what_its_permission_is_for(api: Api, resource: str) -> None:
    api.item({"id": "1", "pk": "x"})
    api.account.create_container("d", {"id": "other", "partitionKey": {"paths": ["/pk"]}})
    if resource == "by rid":
        resource = document(api.ask("GET", "/dbs/d/colls/c"))["_self"]
    token = token_for(api, {"id": "p", "permissionMode": "Read", "resource": resource})
    key = pk("x")
    assert ask_with(api, token, "GET", "/") == 200
    assert ask_with(api, token, "GET", "/dbs/d/colls/c") == 200
    assert ask_with(api, token, "GET", "/dbs/d/colls/c/pkranges") == 200
    assert ask_with(api, token, "GET", ITEM, **key) == 200
    assert ask_with(api, token, "GET", "/dbs/d/colls/c/docs") == 200
    assert ask_with(api, token, "DELETE", ITEM, **key) == 403
    assert ask_with(api, token, "POST", "/dbs/d/colls/c/docs", {"id": "2", "pk": "x"}) == 403
    assert ask_with(api, token, "GET", "/dbs/d/colls/other") == 403
    assert ask_with(api, token, "GET", "/dbs/d/colls/other/docs") == 403
    assert ask_with(api, token, "GET", "/dbs/d") == 403
    assert ask_with(api, token, "GET", "/dbs") == 403
    assert ask_with(api, token, "GET", "/offers") == 403
    assert ask_with(api, token, "GET", "/dbs/d/users/ada/permissions") == 403
    assert ask_with(api, token, "DELETE", "/dbs/d/colls/c") == 403


def test_a_token_for_all_writes_items_but_not_the_container(api: Api) -> None:
    permission = {"id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c"}
    token = token_for(api, permission)
    assert ask_with(api, token, "POST", "/dbs/d/colls/c/docs", {"id": "2", "pk": "x"}) == 201
    assert ask_with(api, token, "DELETE", "/dbs/d/colls/c") == 403
    assert ask_with(api, token, "PUT", "/dbs/d/colls/c", {"id": "c"}) == 403


def test_a_token_for_one_item_or_one_key(api: Api) -> None:
    for item_id in ("1", "10"):
        api.item({"id": item_id, "pk": "x"})
    one = {"id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c/docs/1"}
    token = token_for(api, one)
    assert ask_with(api, token, "GET", ITEM, **pk("x")) == 200
    assert ask_with(api, token, "GET", ITEM + "0", **pk("x")) == 403
    assert ask_with(api, token, "GET", "/dbs/d/colls/c/docs") == 403
    keyed = {
        "id": "q",
        "permissionMode": "All",
        "resource": "dbs/d/colls/c",
        "resourcePartitionKey": ["x"],
    }
    token = token_for(api, keyed)
    assert ask_with(api, token, "GET", ITEM, **pk("x")) == 200
    assert ask_with(api, token, "GET", ITEM, **pk("y")) == 403
    assert ask_with(api, token, "GET", "/dbs/d/colls/c/docs") == 403
    api.item({"id": "secret", "pk": "y"})
    around = pk("x") | {"x-ms-start-epk": "", "x-ms-end-epk": "FF"}
    headers = {"authorization": token, "x-ms-date": api.date(), **around}
    for extra in ({}, {"a-im": "Incremental Feed"}, {"x-ms-documentdb-partitionkeyrangeid": "0"}):
        seen = api.send("GET", "/dbs/d/colls/c/docs", headers | extra)
        assert seen.status == 200
        assert b"secret" not in seen.body
    bulk = [{"operationType": "Read", "id": "secret", "partitionKey": '["y"]'}]
    as_bulk = {
        "x-ms-cosmos-is-batch-request": "true",
        "x-ms-documentdb-partitionkeyrangeid": "0",
    }
    assert ask_with(api, token, "POST", "/dbs/d/colls/c/docs", bulk, **pk("x"), **as_bulk) == 403


def test_a_token_ends_with_its_time_or_its_permission(api: Api) -> None:
    permission = {"id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c"}
    token = token_for(api, permission, {"x-ms-documentdb-expiry-seconds": "60"})
    target = "/dbs/d/colls/c"
    assert ask_with(api, token, "GET", target) == 200
    api.clock.advance(61)
    assert ask_with(api, token, "GET", target) == 403
    fresh = quote(document(api.ask("GET", "/dbs/d/users/ada/permissions/p"))["_token"])
    assert ask_with(api, fresh, "GET", target) == 200
    assert ask_with(api, fresh[:-8] + quote("AAA;"), "GET", target) == 401
    assert api.ask("DELETE", "/dbs/d/users/ada/permissions/p").status == 204
    assert ask_with(api, fresh, "GET", target) == 403


def test_a_permission_does_not_outlive_its_container(api: Api) -> None:
    """One that is made again under the name is another, with data of its own."""
    permission = {"id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c"}
    token = token_for(api, permission)
    shown = document(api.ask("GET", "/dbs/d/users/ada/permissions/p"))
    assert "_container" not in shown
    assert ask_with(api, token, "GET", "/dbs/d/colls/c/docs") == 200
    assert api.ask("DELETE", "/dbs/d/colls/c").status == 204
    body = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    assert api.ask("POST", "/dbs/d/colls", body).status == 201
    for target in ("/dbs/d/colls/c", "/dbs/d/colls/c/docs"):
        assert ask_with(api, token, "GET", target) == 403
    assert api.ask("PUT", "/dbs/d/users/ada/permissions/p", permission).status == 200
    assert ask_with(api, token, "GET", "/dbs/d/colls/c/docs") == 200


@pytest.mark.parametrize("seconds", ["0", "-1", "999999", "x"])
def test_a_life_that_makes_no_sense_is_refused(api: Api, seconds: str) -> None:
    api.ask("POST", "/dbs/d/users", {"id": "ada"})
    permission = {"id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c"}
    headers = {"x-ms-documentdb-expiry-seconds": seconds}
    target = "/dbs/d/users/ada/permissions"
    assert api.ask("POST", target, permission, headers).status == 400


# --- our own pages --------------------------------------------------------------------------------


def test_the_key_itself_opens_our_own_pages_only(api: Api) -> None:
    bearer = {"authorization": f"Bearer {EMULATOR_KEY}"}
    assert api.send("GET", "/dbs", bearer).status == 401
    assert api.send("GET", "/_armillary/nothing", bearer).status == 404
    for wrong in ("Bearer x", f"Bearer {WRONG_KEY}", f"Bearer {READ_ONLY_KEY}"):
        assert api.send("GET", "/_armillary/nothing", {"authorization": wrong}).status == 401


def test_signatures_agree_with_the_published_example() -> None:
    """The documents' example: get, dbs, dbs/ToDoList, with their key and date."""
    key = "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw=="
    made_here = signature(key, "GET", "dbs", "dbs/ToDoList", "Thu, 27 Apr 2017 00:51:12 GMT")
    expected = (
        "type%3Dmaster%26ver%3D1.0%26sig%3Dc09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2Bc%2Bc%3D"
    )
    assert made_here == expected


def test_a_sender_is_told_by_the_headers_alone(api: Api) -> None:
    """A body may be large; whether its sender may send it is known before."""
    headers = api.signed("POST", "/dbs/d/colls/c/docs")
    assert api.service.screen(Request("POST", "/dbs/d/colls/c/docs", headers, b"")) is None
    for wrong in ({}, headers | {"authorization": "type%3dmaster%26ver%3d1.0%26sig%3dAAAA"}):
        found = api.service.screen(Request("POST", "/dbs/d/colls/c/docs", wrong, b""))
        assert found is not None
        assert found.status == 401
