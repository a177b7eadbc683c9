"""Entities on the wire: forms, metadata levels, preferences, ETags and conditions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.table import STORAGE, TableApi, entity_path, error_of, table_api

KEYS = {"PartitionKey": "p", "RowKey": "r"}
ALL_TYPES: dict[str, Any] = {
    **KEYS,
    "text": "größe 😀",
    "int": 42,
    "large@odata.type": "Edm.Int64",
    "large": "9223372036854775807",
    "half": 2.5,
    "whole@odata.type": "Edm.Double",
    "whole": 3.0,
    "nan@odata.type": "Edm.Double",
    "nan": "NaN",
    "below@odata.type": "Edm.Double",
    "below": "-Infinity",
    "minus@odata.type": "Edm.Double",
    "minus": -0.0,
    "flag": True,
    "at@odata.type": "Edm.DateTime",
    "at": "2013-08-22T01:12:06.2608595Z",
    "key@odata.type": "Edm.Guid",
    "key": "c9da6455-213d-42c9-9a79-3e9149a57833",
    "data@odata.type": "Edm.Binary",
    "data": "AAEC/w==",
    "nothing": None,
}
ANNOTATED = {"large", "nan", "below", "at", "key", "data"}
PATH = entity_path("t", "p", "r")


@pytest.fixture
def api() -> Iterator[TableApi]:
    with table_api() as made:
        yield made


def insert(api: TableApi, **more: Any) -> str:
    response = api.ask("POST", "/t", {**KEYS, **more})
    assert response.status == 201, response.body
    return response.headers["ETag"]


def test_every_type_comes_back_as_it_was_sent(api: TableApi) -> None:
    created = api.ask("POST", "/t", ALL_TYPES)
    assert created.status == 201
    shown = json.loads(created.body)
    read = api.ask("GET", PATH)
    assert json.loads(read.body) == shown
    for name, value in ALL_TYPES.items():
        if "@" not in name and value is not None:
            assert shown[name] == value
            assert type(shown[name]) is type(value)
    assert "nothing" not in shown
    assert {name.partition("@")[0] for name in shown if "@odata.type" in name} == ANNOTATED
    assert b'"whole":3.0' in read.body
    assert b'"minus":-0.0' in read.body
    assert list(shown)[:4] == ["odata.metadata", "odata.etag", "PartitionKey", "RowKey"]
    assert list(shown)[-1] == "Timestamp"


@pytest.mark.parametrize("level", ["nometadata", "minimalmetadata", "fullmetadata"])
def test_metadata_levels(api: TableApi, level: str) -> None:
    api.ask("POST", "/t", ALL_TYPES)
    by_accept = api.ask("GET", PATH, headers={"accept": f"application/json;odata={level}"})
    by_format = api.ask("GET", f"{PATH}?$format=application/json;odata={level}")
    assert by_accept.body == by_format.body
    assert by_accept.headers["Content-Type"] == f"application/json; odata={level}"
    shown = json.loads(by_accept.body)
    etag = by_accept.headers["ETag"]
    assert shown.get("odata.etag", etag) == etag
    assert ("odata.etag" in shown) == (level != "nometadata")
    assert any("@odata.type" in name for name in shown) == (level != "nometadata")
    assert ("odata.id" in shown) == (level == "fullmetadata")
    assert ("Timestamp@odata.type" in shown) == (level == "fullmetadata")
    if level == "fullmetadata":
        assert shown["odata.type"] == "localhost.t"
        assert shown["odata.editLink"] == PATH[1:]
        assert shown["odata.id"] == f"http://localhost:8902{PATH}"


@pytest.mark.parametrize(
    ("prefer", "status"), [(None, 201), ("return-content", 201), ("return-no-content", 204)]
)
def test_preferences_are_confirmed_only_when_asked_for(
    api: TableApi, prefer: str | None, status: int
) -> None:
    response = api.ask("POST", "/t", KEYS, {} if prefer is None else {"prefer": prefer})
    assert response.status == status
    assert bool(response.body) == (status == 201)
    assert response.headers.get("Preference-Applied") == prefer
    assert response.headers["Location"] == f"http://localhost:8902{PATH}"


def test_an_etag_is_the_timestamp_and_changes_with_every_write(api: TableApi) -> None:
    seen = [insert(api)]
    for number in range(5):
        response = api.ask("PUT", PATH, {"n": number})
        assert response.status == 204
        seen.append(response.headers["ETag"])
        stamp = api.get("t", "p", "r")["Timestamp"].replace(":", "%3A")
        assert response.headers["ETag"] == f"W/\"datetime'{stamp}'\""
    assert seen == sorted(set(seen))  # in one second of the clock


def test_a_write_by_another_api_changes_the_etag_too(api: TableApi) -> None:
    etag = insert(api, n=1)
    store = api.account.container("TablesDB", "t")
    from armillary.store.items.preparation import Operation

    item = {"id": "r", "$pk": "p", "$id": "r", "n": {"$t": 16, "$v": 2}}
    store.run(Operation("replace", "r", item), ("p",))
    assert error_of(api.ask("PUT", PATH, {"n": 3}, {"if-match": etag})) == (
        412,
        "UpdateConditionNotSatisfied",
    )
    assert api.get("t", "p", "r")["n"] == 2


STALE = "W/\"datetime'2012-06-15T22%3A51%3A44.9662825Z'\""


@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH", "POST"])
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("condition", [None, "*", "match", "stale"])
def test_conditions(api: TableApi, method: str, exists: bool, condition: str | None) -> None:
    etag = insert(api, a=1, b=1) if exists else STALE
    headers = {"x-http-method": "MERGE"} if method == "POST" else {}
    if condition is not None:
        headers["if-match"] = {"*": "*", "match": etag, "stale": STALE}[condition]
    response = api.ask(method, PATH, {"a": 2}, headers)
    if not exists and condition is not None:
        assert error_of(response) == (404, "ResourceNotFound")
        assert api.ask("GET", PATH).status == 404
    elif condition == "stale":
        assert error_of(response) == (412, "UpdateConditionNotSatisfied")
        assert api.get("t", "p", "r")["a"] == 1
    else:
        assert response.status == 204
        found = api.get("t", "p", "r")
        assert found["a"] == 2
        assert found.get("b") == (1 if exists and method != "PUT" else None)
        assert response.headers["ETag"] == found["odata.etag"]


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("condition", [None, "*", "match", "stale", "bad"])
def test_deletes(api: TableApi, exists: bool, condition: str | None) -> None:
    etag = insert(api) if exists else STALE
    known = {"*": "*", "match": etag, "stale": STALE, "bad": "abc"}
    headers = {} if condition is None else {"if-match": known[condition]}
    response = api.ask("DELETE", PATH, headers=headers)
    if condition in (None, "bad"):
        assert error_of(response) == (400, "InvalidInput")
    elif not exists:
        assert error_of(response) == (404, "ResourceNotFound")
    elif condition == "stale":
        assert error_of(response) == (412, "UpdateConditionNotSatisfied")
    else:
        assert (response.status, response.body) == (204, b"")
        assert "ETag" not in response.headers
        assert api.ask("GET", PATH).status == 404


def test_a_merge_may_change_a_type_and_drops_nothing(api: TableApi) -> None:
    insert(api, a=1, id="mine", ttl=5, _ts="x", _etag="y", _rid=True, Timestamp="no")
    assert api.ask("MERGE", PATH, {"a": "text", "c": 1.5}).status == 204
    found = api.get("t", "p", "r")
    names = ("a", "c", "id", "ttl", "_ts", "_etag", "_rid")
    assert [found[name] for name in names] == ["text", 1.5, "mine", 5, "x", "y", True]


def test_the_keys_of_the_url_win(api: TableApi) -> None:
    assert api.ask("PUT", PATH, {"PartitionKey": "x", "RowKey": "y", "a": 1}).status == 204
    assert api.get("t", "p", "r")["a"] == 1
    assert api.query("t", "PartitionKey eq 'x'") == []


def test_keys_with_quotes_and_other_signs(api: TableApi) -> None:
    for key in ["a''b", "a'b", "'", "@ %25+&=", "ü😀", '"', "a b", "(x)", "$pk"]:
        assert api.ask("POST", "/t", {"PartitionKey": key, "RowKey": key}).status == 201
        found = api.get("t", key, key)
        assert (found["PartitionKey"], found["RowKey"]) == (key, key)
        text = key.replace("'", "''")
        assert len(api.query("t", f"PartitionKey eq '{text}' and RowKey eq '{text}'")) == 1


def test_keys_may_be_in_either_order(api: TableApi) -> None:
    insert(api)
    assert api.ask("GET", "/t(RowKey='r',PartitionKey='p')").status == 200


def test_select(api: TableApi) -> None:
    insert(api, a=1, b=2)
    shown = json.loads(api.ask("GET", f"{PATH}?$select=b,unknown").body)
    assert set(shown) == {"odata.metadata", "odata.etag", "b"}
    (row,) = api.query("t", **{"$select": "b"})
    assert set(row) == {"odata.etag", "b"}
    assert "a" in api.query("t", **{"$select": "*"})[0]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "InvalidInput"),
        (b"[]", "InvalidInput"),
        (b'{"PartitionKey":"p"', "InvalidInput"),
        ({"PartitionKey": "p"}, "PropertiesNeedValue"),
        ({"RowKey": "p"}, "PropertiesNeedValue"),
        ({"PartitionKey": "", "RowKey": "r"}, "PropertiesNeedValue"),
        ({"PartitionKey": 5, "RowKey": "r"}, "InvalidInput"),
        ({"PartitionKey": "a/b", "RowKey": "r"}, "InvalidInput"),
        ({"PartitionKey": "p", "RowKey": "a\tb"}, "InvalidInput"),
        ({"PartitionKey": "p", "RowKey": "r" * 256}, "KeyValueTooLarge"),
        ({"PartitionKey": "p" * 2049, "RowKey": "r"}, "KeyValueTooLarge"),
        ({**KEYS, "123": 1}, "PropertyNameInvalid"),
        ({**KEYS, "a-b": 1}, "PropertyNameInvalid"),
        ({**KEYS, "": 1}, "PropertyNameInvalid"),
        ({**KEYS, "$t": 1}, "PropertyNameInvalid"),
        ({**KEYS, "a" * 256: 1}, "PropertyNameTooLong"),
        ({**KEYS, **{f"p{n}": n for n in range(253)}}, "TooManyProperties"),
        ({**KEYS, "a": [1]}, "InvalidInput"),
        ({**KEYS, "a": {"b": 1}}, "InvalidInput"),
        ({**KEYS, "a": 2**63}, "InvalidInput"),
        ({**KEYS, "a@odata.type": "Edm.Int32", "a": 2**31}, "InvalidInput"),
        ({**KEYS, "a@odata.type": "Edm.Int64", "a": "9223372036854775808"}, "InvalidInput"),
        ({**KEYS, "a@odata.type": "Edm.Boolean", "a": "maybe"}, "InvalidInput"),
        ({**KEYS, "a@odata.type": "Edm.DateTime", "a": "yesterday"}, "InvalidInput"),
        ({**KEYS, "a@odata.type": "Edm.DateTime", "a": "2020-13-01T00:00:00Z"}, "InvalidInput"),
        ({**KEYS, "a@odata.type": "Edm.Guid", "a": "123"}, "InvalidInput"),
        ({**KEYS, "a@odata.type": "Edm.Binary", "a": "*"}, "InvalidInput"),
        ({**KEYS, "a@odata.type": "Edm.Double", "a": "1e"}, "InvalidInput"),
        ({**KEYS, "a@odata.type": "Edm.Nonsense", "a": "1"}, "InvalidInput"),
        ({**KEYS, "a@odata.type": 5, "a": "1"}, "InvalidInput"),
        ({**KEYS, "a": "x" * (2 * 1024 * 1024)}, "EntityTooLarge"),
    ],
)
def test_bad_entities_are_refused_and_nothing_is_written(
    api: TableApi, body: Any, code: str
) -> None:
    assert error_of(api.ask("POST", "/t", body)) == (400, code)
    assert api.query("t") == []


def test_annotated_texts_are_read(api: TableApi) -> None:
    body = {**KEYS}
    for name, kind, text in [
        ("i", "Edm.Int32", "23"),
        ("d", "Edm.Double", "1e3"),
        ("b", "Edm.Boolean", "TRUE"),
        ("t", "Edm.DateTime", "2008-07-10T02:00:00+02:00"),
        ("g", "Edm.Guid", "C9DA6455-213D-42C9-9A79-3E9149A57833"),
    ]:
        body |= {f"{name}@odata.type": kind, name: text}
    assert api.ask("POST", "/t", body).status == 201
    found = api.get("t", "p", "r")
    assert [found[name] for name in "idbtg"] == [
        23,
        1000.0,
        True,
        "2008-07-10T00:00:00.0000000Z",
        "c9da6455-213d-42c9-9a79-3e9149a57833",
    ]


def test_errors_have_the_form_of_each_flavour() -> None:
    with table_api() as api:
        response = api.ask("GET", PATH)
        error = json.loads(response.body)["odata.error"]
        request = response.headers["x-ms-request-id"]
        text = f"The specified resource does not exist.\nRequestID:{request}\n"
        assert error == {
            "code": "ResourceNotFound",
            "message": {"lang": "en-us", "value": text},
        }
        assert response.headers["Content-Type"] == "application/json; odata=fullmetadata"
        assert "x-ms-error-code" not in response.headers
    with table_api(STORAGE, table="ttt") as api:
        response = api.ask("GET", "/nowhere(PartitionKey='p',RowKey='r')")
        error = json.loads(response.body)["odata.error"]
        assert error["message"]["lang"] == "en-US"
        assert response.headers["x-ms-error-code"] == error["code"] == "TableNotFound"


def test_atom_is_refused(api: TableApi) -> None:
    insert(api)
    answer = api.ask("GET", PATH, headers={"accept": "application/atom+xml"})
    assert error_of(answer) == (415, "AtomFormatNotSupported")


def test_a_client_request_id_is_echoed(api: TableApi) -> None:
    response = api.ask("GET", "/Tables", headers={"x-ms-client-request-id": "abc"})
    assert response.headers["x-ms-client-request-id"] == "abc"
