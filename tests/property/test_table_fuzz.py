"""Requests of the Table API that are nearly right: each is answered by an OData error, or as it
asks; none is a bug, and what is refused leaves nothing behind. Without this a stranger, or a
mistake in a client, would find the request that is answered 500 or half done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.table import COSMOS, STORAGE, TableApi, entity_path, table_api

from armillary.api.http.messages import Response
from armillary.api.table.routes import ROUTES

ENTITY = entity_path("tab", "p", "r")
BATCH = (
    "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"
    "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    "PUT http://h/tab(PartitionKey='p',RowKey='r') HTTP/1.1\r\nContent-Type: application/json\r\n"
    '\r\n{"n":1}\r\n'
    "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    "POST http://h/tab HTTP/1.1\r\nContent-Type: application/json\r\n\r\n"
    '{"PartitionKey":"p","RowKey":"s","d":1.5,"d@odata.type":"Edm.Double"}\r\n'
    "--changeset_1--\r\n--batch_1--\r\n"
)
PLAIN = '{"PartitionKey":"p","RowKey":"new","s":"x","l":"5","l@odata.type":"Edm.Int64"}'
POLICIES = (
    "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Start>2024-01-01T00:00:00Z"
    "</Start><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
)
#: Kind of target and method → a request that is right.
RIGHT: dict[tuple[str, str], tuple[str, str, dict[str, str]]] = {
    ("tables", "POST"): ("/Tables", '{"TableName":"other"}', {}),
    ("tables", "GET"): ("/Tables?$filter=TableName%20ge%20'a'&$top=2", "", {}),
    ("table", "GET"): ("/Tables('tab')", "", {}),
    ("table", "DELETE"): ("/Tables('other')", "", {}),
    ("entities", "POST"): ("/tab", PLAIN, {"prefer": "return-content"}),
    ("entities", "GET"): (
        "/tab()?$filter=PartitionKey%20eq%20'p'%20and%20not%20(n%20gt%205L)&$select=n&$top=3",
        "",
        {},
    ),
    ("entity", "GET"): (ENTITY + "?$select=n", "", {}),
    ("entity", "PUT"): (ENTITY, PLAIN, {"if-match": "*"}),
    ("entity", "MERGE"): (ENTITY, PLAIN, {}),
    ("entity", "DELETE"): (ENTITY, "", {"if-match": "*"}),
    ("batch", "POST"): ("/$batch", BATCH, {"content-type": "multipart/mixed; boundary=batch_1"}),
    ("service?properties", "GET"): ("/?restype=service&comp=properties", "", {}),
    ("service?properties", "PUT"): (
        "/?restype=service&comp=properties",
        "<StorageServiceProperties><Cors/></StorageServiceProperties>",
        {},
    ),
    ("service?stats", "GET"): ("/?restype=service&comp=stats", "", {}),
    ("entities?acl", "GET"): ("/tab?comp=acl", "", {}),
    ("entities?acl", "PUT"): ("/tab?comp=acl", POLICIES, {}),
}
PIECES = (
    *(
        "'",
        "''",
        '"',
        "\\",
        "(",
        ")",
        ",",
        "=",
        "%27",
        "%00",
        "%FF",
        "%2F",
        "/",
        "//",
        "?",
        "#",
        "&",
    ),
    *("\x00", "\ud800", "é", "$filter=", "$batch", "Tables", " eq ", " or ", "not ", "datetime'x'"),
    *("\r\n", "--changeset_1", "{", "}", "[", "null", "NaN", "1e999", "9" * 40, "@odata.type"),
    *(
        '"Edm.Guid"',
        '"Edm.Null"',
        "W/\"datetime'x'\"",
        "<",
        "<!DOCTYPE x>",
        "&lt;",
        "-1",
        "x" * 300,
    ),
)
HEADERS = (
    *("accept", "if-match", "prefer", "content-type", "x-http-method", "x-ms-version", "x-ms-date"),
    *("x-ms-client-request-id", "x-ms-offer-throughput", "x-ms-cosmos-offer-autopilot-settings"),
)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A text with up to three pieces put in, cut out or doubled."""
    for _ in range(draw(st.integers(0, 3))):
        at, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        end = min(end, at + 12)
        how = draw(st.sampled_from(("put", "cut", "double")))
        new = {"put": draw(st.sampled_from(PIECES)), "cut": "", "double": text[at:end] * 2}[how]
        text = text[:at] + new + text[at if how == "put" else end :]
    return text


@pytest.fixture(scope="module", params=[COSMOS, STORAGE], ids=["cosmos", "storage"])
def api(request: pytest.FixtureRequest) -> Iterator[TableApi]:
    with table_api(request.param, table="tab") as made:
        yield made


def contents(api: TableApi) -> list[Any]:
    tables = json.loads(api.ask("GET", "/Tables").body)["value"]
    return [tables, api.query("tab")]


def test_every_route_is_here_and_right(api: TableApi) -> None:
    assert set(RIGHT) == {(one.kind, one.method) for one in ROUTES}
    for (kind, method), (path, body, headers) in RIGHT.items():
        assert api.ask("PUT", ENTITY, {"n": 1}).status == 204
        answer = api.ask(method, path, body.encode() or None, headers)
        storage_only = kind.partition("?")[2] and not api.service.flavour.is_storage
        assert answer.status in ((501,) if storage_only else (200, 201, 202, 204)), (path, answer)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), which=st.sampled_from(sorted(RIGHT)))
def test_no_request_is_a_bug(api: TableApi, data: st.DataObject, which: tuple[str, str]) -> None:
    api.ask("POST", "/Tables", {"TableName": "tab"})
    api.ask("PUT", ENTITY, {"n": 1})
    path, body, headers = RIGHT[which]
    method = data.draw(st.sampled_from((which[1],) * 4 + ("GET", "PUT", "PATCH", "DELETE", "X")))
    path = "/" + data.draw(damaged(path[1:]))
    body = data.draw(damaged(body))
    extra = data.draw(st.dictionaries(st.sampled_from(HEADERS), st.sampled_from(PIECES)))
    sent = {name: text.strip() for name, text in (headers | extra).items() if text.isascii()}
    before = contents(api)
    signable = path.encode("utf-8", "replace").decode()
    answer = api.ask(method, signable, body.encode("utf-8", "surrogatepass") or None, sent)
    assert answer.status < 500 or answer.status == 501, (method, path, body, sent)
    if answer.status >= 400:
        check_error(answer)
        assert contents(api) == before


def check_error(answer: Response) -> None:
    error = json.loads(answer.body)["odata.error"]
    assert error["code"].isalpha()
    assert len(error["message"]["value"]) > 10
