"""Tables: create, list, delete, names, throughput; both flavours; what NoSQL sees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.table import (
    STORAGE,
    TableApi,
    entity_path,
    error_of,
    shared_key,
    table_api,
)

from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.http.messages import Request
from armillary.engine.base import CATALOG_SPACE
from armillary.errors import BadInput
from armillary.query.run.sql import run_query
from armillary.store.items.preparation import Operation
from armillary.store.throughput.offers import find_offer


@pytest.fixture
def api() -> Iterator[TableApi]:
    with table_api(table=None) as made:
        yield made


@pytest.fixture
def storage() -> Iterator[TableApi]:
    with table_api(STORAGE, table=None) as made:
        yield made


def create(api: TableApi, name: Any, **headers: str) -> Any:
    named = {one.replace("_", "-"): text for one, text in headers.items()}
    return api.ask("POST", "/Tables", {"TableName": name}, named)


def names(api: TableApi, query: str = "") -> list[str]:
    response = api.ask("GET", f"/Tables{query}")
    assert response.status == 200
    return [one["TableName"] for one in json.loads(response.body)["value"]]


def test_life_of_a_table(api: TableApi) -> None:
    assert names(api) == []
    response = create(api, "t")
    assert response.status == 201
    shown = {"odata.metadata": "http://localhost:8902/$metadata#Tables/@Element", "TableName": "t"}
    assert json.loads(response.body) == shown
    assert response.headers["Location"] == "http://localhost:8902/Tables('t')"
    assert response.headers["ETag"].startswith("W/")
    assert error_of(create(api, "t")) == (409, "TableAlreadyExists")
    assert json.loads(api.ask("GET", "/Tables('t')").body) == shown
    assert create(api, "u", prefer="return-no-content").status == 204
    assert create(api, "U").status == 201
    assert names(api) == ["t", "u", "U"]
    assert api.ask("DELETE", "/Tables('t')").status == 204
    assert error_of(api.ask("DELETE", "/Tables('t')")) == (404, "ResourceNotFound")
    assert error_of(api.ask("GET", "/t()")) == (404, "ResourceNotFound")
    assert create(api, "t").status == 201  # at once
    assert api.query("t") == []


def test_lists_have_filters_and_pages(api: TableApi) -> None:
    for number in range(5):
        create(api, f"t{number}")
    assert names(api, "?$filter=TableName%20eq%20%27t3%27") == ["t3"]
    text = "?$filter=TableName%20ge%20%27t1%27%20and%20TableName%20lt%20%27t3%27"
    assert names(api, text) == ["t1", "t2"]
    seen: list[str] = []
    query = "?$top=2"
    for page in range(20):
        response = api.ask("GET", f"/Tables(){query}")
        seen += (one["TableName"] for one in json.loads(response.body)["value"])
        token = response.headers.get("x-ms-continuation-NextTableName")
        if token is None:
            break
        query = f"?$top=2&NextTableName={token}"
        create(api, f"new{page}")
    assert sorted(seen)[-5:] == [f"t{number}" for number in range(5)]
    for query in ("?$top=0", "?$top=x", "?$filter=x%20eq", "?NextTableName=*"):
        assert error_of(api.ask("GET", f"/Tables{query}")) == (400, "InvalidInput")


@pytest.mark.parametrize(
    "name", ["a", "my_table", "啊齄丂狛狜", "=-{}!@", "a" * 254, "1", "1bad", "Tables2"]
)
def test_names_of_cosmos(api: TableApi, name: str) -> None:
    assert create(api, name).status == 201
    body = {"PartitionKey": "p", "RowKey": "r"}
    path = entity_path(name, "p", "r")
    assert api.ask("POST", path.partition("(")[0], body).status == 201
    assert api.ask("GET", path).status == 200


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "BadRequest"),
        ("a" * 255, "BadRequest"),
        ("a/b", "InvalidInput"),
        ("a\\", "InvalidInput"),
        ("a#", "InvalidInput"),
        ("a?", "InvalidInput"),
        ("a ", "InvalidInput"),
        ("Tables", "InvalidInput"),  # no request could name its entities
        ("$batch", "InvalidInput"),
        ("$settings", "InvalidInput"),
        (None, "InvalidInput"),
        (5, "InvalidInput"),
    ],
)
def test_names_that_cosmos_refuses(api: TableApi, name: Any, code: str) -> None:
    assert error_of(create(api, name)) == (400, code)
    assert names(api) == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("my_table", "InvalidResourceName"),
        ("1abc", "InvalidResourceName"),
        ("tables", "InvalidResourceName"),
    ],
)
def test_names_that_storage_refuses(storage: TableApi, name: str, code: str) -> None:
    assert error_of(create(storage, name)) == (400, code)


def test_storage_does_not_tell_cases_apart(storage: TableApi) -> None:
    assert create(storage, "People").status == 201
    assert error_of(create(storage, "PEOPLE")) == (409, "TableAlreadyExists")
    body = {"PartitionKey": "", "RowKey": "", "n": 1}
    assert storage.ask("POST", "/people", body).status == 201
    assert storage.get("PEOPLE", "", "")["n"] == 1
    assert names(storage) == ["People"]
    assert storage.ask("DELETE", "/Tables('PEOPLE')").status == 204
    assert error_of(storage.ask("GET", "/people()")) == (404, "TableNotFound")


def test_storage_orders_by_keys_and_takes_other_keys(storage: TableApi) -> None:
    create(storage, "ttt", x_ms_offer_throughput="30000")
    keys = [(p, r) for p in ("b", "", "a ", "é") for r in ("2", "10", "", " ", "1 ")]
    for partition, row in keys:
        body = {"PartitionKey": partition, "RowKey": row, "Etag": "mine"}
        assert storage.ask("POST", "/ttt", body).status == 201
    found = [(row["PartitionKey"], row["RowKey"]) for row in storage.query("ttt")]
    assert found == sorted(keys)
    assert storage.query("ttt", **{"$top": "3"}) == storage.query("ttt")
    assert storage.get("ttt", "", "")["Etag"] == "mine"
    shown = storage.query("ttt", "PartitionKey eq ''", **{"$select": "RowKey,no"})[0]
    assert (shown["RowKey"], shown["no"]) == ("", None)
    assert error_of(storage.ask("GET", "/ttt()?$top=1001")) == (400, "InvalidInput")
    large = {"PartitionKey": "p", "RowKey": "r", "a": 2**40}
    assert error_of(storage.ask("POST", "/ttt", large)) == (400, "InvalidInput")
    body = {"PartitionKey": "p", "RowKey": "r", "a": "x" * (33 * 1024)}
    assert error_of(storage.ask("POST", "/ttt", body)) == (400, "PropertyValueTooLarge")


PROPERTIES = "/?restype=service&comp=properties"


def test_service_documents_are_for_storage(api: TableApi, storage: TableApi) -> None:
    create(api, "ttt")
    create(storage, "ttt")
    for path in (PROPERTIES, "/?restype=service&comp=stats", "/ttt?comp=acl"):
        assert error_of(api.ask("GET", path)) == (501, "NotImplemented")
        response = storage.ask("GET", path)
        assert response.status == 200
        assert response.body.startswith(b"<?xml")
    document = (
        b"<StorageServiceProperties><HourMetrics><Version>1.0</Version><Enabled>true</Enabled>"
        b"<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics>"
        b"</StorageServiceProperties>"
    )
    assert storage.ask("PUT", PROPERTIES, document).status == 202
    found = storage.ask("GET", PROPERTIES).body
    assert b"<Days>7</Days>" in found
    assert b"<Logging>" in found
    for bad in (
        document.replace(b"7", b"366"),
        b"<Other/>",
        b"<",
        b'<!DOCTYPE x [<!ENTITY a "b">]><StorageServiceProperties>&a;</StorageServiceProperties>',
        b"<StorageServiceProperties><Cors>"
        + b"<CorsRule/>" * 6
        + b"</Cors></StorageServiceProperties>",
    ):
        assert error_of(storage.ask("PUT", PROPERTIES, bad)) == (400, "InvalidXmlDocument")
    assert names(storage) == ["ttt"]


def test_throughput_by_headers(api: TableApi) -> None:
    create(api, "wide", x_ms_offer_throughput="30000")
    create(api, "auto", x_ms_cosmos_offer_autopilot_settings='{"maxThroughput": 40000}')
    with api.engine.read(CATALOG_SPACE) as reader:
        for name, kind, ru in (("wide", "manual", 30_000), ("auto", "autoscale", 40_000)):
            record = api.account.read_container("TablesDB", name)
            offer = find_offer(reader, record.rid)
            assert offer is not None
            assert (offer.kind, offer.ru) == (kind, ru)
            assert len(record.ranges) >= 3
    assert error_of(create(api, "bad", x_ms_offer_throughput="much"))[0] == 400
    assert error_of(create(api, "bad", x_ms_offer_throughput="5"))[0] == 400


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 400),
        ("GET", "/$metadata", 404),
        ("GET", "/t(x)", 404),  # a possible name
        ("GET", "/t(PartitionKey='a')", 400),
        ("GET", "/t(PartitionKey='a',RowKey='b'", 404),
        ("GET", "/a/b", 400),
        ("GET", "//", 400),
        ("GET", "/%ff", 400),
        ("PUT", "/t", 405),
        ("PATCH", "/Tables", 405),
        ("OPTIONS", "/t", 405),
        ("GET", "/$batch", 405),
        ("POST", "/t(PartitionKey='a',RowKey='b')", 405),
        ("GET", "/t()?$filter=%ff", 400),
        ("GET", "/t()?$top=-1", 400),
        ("GET", "/t()?$top=99999999999999999999", 400),
        ("GET", "/t()?NextPartitionKey=nonsense&NextRowKey=NA", 400),
        ("GET", "/t()?$filter=startswith(a,'b')", 501),
        ("GET", "/t()?$filter=a%20add%201%20eq%202", 400),
        ("GET", "/t()?$filter=1%20eq%201", 400),
        ("GET", "/t()?$filter=a%20eq%20'x", 400),
        ("GET", "/t()?$filter=a%20like%20'x'", 400),
        ("GET", "/t()?$filter=true", 400),
        ("GET", "/t()?$filter=(a%20eq%201", 400),
        ("GET", "/t()?$filter=a%20eq%2099999999999999999999L", 400),
        ("GET", "/t()?$filter=a%20eq%20guid'x'", 400),
        ("GET", "/t()?$filter=" + "not%20" * 200 + "a", 400),
        ("GET", "/t()?$filter=" + "%20or%20".join(["a"] * 501), 400),
    ],
)
def test_bad_requests_get_errors_of_odata(
    api: TableApi, method: str, path: str, status: int
) -> None:
    create(api, "t")
    response = api.ask(method, path)
    assert response.status == status
    assert "code" in json.loads(response.body)["odata.error"]


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "MERGE", "DELETE", "HEAD", "ODD"]),
    target=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60),
    headers=st.dictionaries(
        st.sampled_from(["if-match", "accept", "prefer", "x-http-method", "content-type"]),
        st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=20),
        max_size=3,
    ),
    body=st.binary(max_size=60) | st.just(b'{"PartitionKey":"p","RowKey":"r"}'),
)
def test_anything_signed_gets_an_answer(
    shared: TableApi, method: str, target: str, headers: dict[str, str], body: bytes
) -> None:
    for path in (f"/{target}", f"/t({target})", f"/t()?$filter={target}", f"/t()?{target}"):
        response = shared.ask(method, path, body, headers)
        assert response.status < 500 or error_of(response) == (501, "NotImplemented")


@pytest.fixture(scope="module")
def shared() -> Iterator[TableApi]:
    with table_api() as made:
        yield made


@given(text=st.binary(max_size=300))
def test_unsigned_noise_is_refused(shared: TableApi, text: bytes) -> None:
    noise = text.decode("latin-1")
    headers = {"authorization": noise, "x-ms-date": noise, "host": noise}
    assert shared.service.handle(Request("GET", f"/{noise}", headers)).status in (400, 401)
    assert shared.send("GET", f"/t()?sig={noise}&sv={noise}&tn={noise}").status in (400, 401)


# --- what other APIs see and may ----------------------------------------------------------------


def test_sql_reads_tables_with_their_types(api: TableApi) -> None:
    create(api, "t")
    for number in range(3):
        body = {
            "PartitionKey": "p",
            "RowKey": str(number),
            "n": number,
            "id": "mine",
            "big@odata.type": "Edm.Int64",
            "big": str(2**60 + number),
        }
        api.ask("POST", "/t", body)
    store = api.account.container("TablesDB", "t")
    text = (
        'SELECT c["$id"] AS row, c.n["$v"] AS n, c["$$id"]["$v"] AS id FROM c WHERE c.n["$v"] > 0'
    )
    assert sorted(run_query(store, text).rows, key=str) == [
        {"row": "1", "n": 1, "id": "mine"},
        {"row": "2", "n": 2, "id": "mine"},
    ]
    text = 'SELECT VALUE c.id FROM c WHERE c["$pk"] = "p" AND c.big = {"$t": 18, "$v": "%d"}'
    assert run_query(store, text % (2**60 + 1)).rows == ["1"]
    assert store.state.definition.document["partitionKey"]["paths"] == ['/"$pk"']


@pytest.mark.parametrize(
    "item",
    [
        {"id": "r"},
        {"id": "r", "$pk": "p", "$id": "other"},
        {"id": "r", "$pk": 5, "$id": "r"},
        {"id": "r", "$pk": "p", "$id": "r", "n": 5},
        {"id": "r", "$pk": "p", "$id": "r", "n": {"$t": 16, "$v": "x"}},
        {"id": "r", "$pk": "p", "$id": "r", "n": {"$t": 99, "$v": 1}},
        {"id": "r", "$pk": "p", "$id": "r", "$x": {"$t": 16, "$v": 1}},
    ],
)
def test_a_write_that_breaks_the_form_is_refused(api: TableApi, item: dict[str, Any]) -> None:
    create(api, "t")
    store = api.account.container("TablesDB", "t")
    with pytest.raises(BadInput):
        store.run(Operation("create", body=item), None)
    assert api.query("t") == []


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Age eqq 5", "character 5: unexpected 'eqq'; eq, ne, gt, ge, lt, le is expected"),
        ("Age = 5", "character 5: comparisons are written eq, ne, gt, ge, lt, le"),
        ("a eq 1 && b", "character 8: conditions are joined by and, or"),
        ("a eq 'x", "character 6: this text has no closing quote"),
        ("a and (b eq 1", "character 7: this parenthesis is not closed"),
        ("a eq", "character 5: a property or a value is missing"),
        ("a eq 1 b", "character 8: unexpected 'b'; and, or, or the end is expected"),
        ("a eq guid'x'", "character 6: \"guid'x'\" is not a value"),
        ("1 eq 1", "character 1: one side of a comparison is a property"),
    ],
)
def test_a_bad_filter_says_where_and_what(
    api: TableApi, storage: TableApi, text: str, hint: str
) -> None:
    for one, sentence in (
        (api, "Request url is invalid."),  # the service's whole answer; SDKs look for it
        (storage, "One of the request inputs is not valid."),
    ):
        one.ask("POST", "/Tables", {"TableName": "hints"})
        response = one.ask("GET", f"/hints()?$filter={quote(text)}")
        assert error_of(response) == (400, "InvalidInput")
        told = json.loads(response.body)["odata.error"]["message"]["value"]
        assert told.startswith(f"{sentence} $filter, {hint}.\n")


def test_a_bad_property_is_named(api: TableApi) -> None:
    create(api, "t")
    body = {"PartitionKey": "p", "RowKey": "r", "b": "!", "b@odata.type": "Edm.Binary"}
    response = api.ask("POST", "/t", body)
    told = json.loads(response.body)["odata.error"]["message"]["value"]
    assert told.startswith("One of the input values is invalid. The property 'b': base64 is exp")


def test_a_continuation_of_another_filter_is_refused(api: TableApi) -> None:
    create(api, "t")
    for number in range(4):
        body = {"PartitionKey": "p", "RowKey": str(number), "n": number}
        assert api.ask("POST", "/t", body).status == 201
    first = api.ask("GET", "/t()?$top=2&$filter=n%20ge%200")
    token = quote(first.headers["x-ms-continuation-NextPartitionKey"])
    rest = f"&NextPartitionKey={token}&NextRowKey=NA"
    assert api.ask("GET", f"/t()?$top=2&$filter=n%20ge%200{rest}").status == 200
    other = api.ask("GET", f"/t()?$top=2&$filter=n%20ge%201{rest}")
    assert error_of(other) == (400, "InvalidInput")


def test_large_bodies_of_strangers_are_not_read(api: TableApi) -> None:
    """A signature is over the headers, so the server asks before it takes the body."""
    create(api, "t")
    headers = {"host": "localhost:8902", "content-length": "1000000"}
    refusal = api.service.screen(Request("POST", "/t", headers))
    assert refusal is not None
    assert refusal.status == 401
    signed = headers | {"x-ms-date": api.date()}
    signed["authorization"] = shared_key(EMULATOR_KEY, "localhost", "POST", "/t", signed)
    assert api.service.screen(Request("POST", "/t", signed)) is None
