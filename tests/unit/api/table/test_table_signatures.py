"""Who may: keys, dates, shared access signatures. Unsigned requests learn nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableSasPermissions,
    generate_account_sas,
    generate_table_sas,
)
from tests.support.nosql import READ_ONLY_KEY, SECONDARY_KEY, WRONG_KEY
from tests.support.table import (
    STORAGE,
    TableApi,
    entity_path,
    error_of,
    hmac_text,
    shared_key,
    table_api,
)

from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.http.messages import Request

ENTITY = {"PartitionKey": "p", "RowKey": "r"}
PATH = entity_path("t", "p", "r")
MERGE = {"x-http-method": "MERGE"}


@pytest.fixture
def api() -> Iterator[TableApi]:
    with table_api() as made:
        yield made


@pytest.fixture
def storage() -> Iterator[TableApi]:
    with table_api(STORAGE, table="ttt") as made:
        yield made


# --- keys ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("lite", [False, True])
@pytest.mark.parametrize("key", [EMULATOR_KEY, SECONDARY_KEY])
def test_both_keys_sign_in_both_schemes(api: TableApi, key: str, lite: bool) -> None:
    assert api.ask("POST", "/t", ENTITY, key=key, lite=lite).status == 201
    assert api.ask("GET", PATH, key=key, lite=lite).status == 200
    target = "/?restype=service&comp=properties"
    assert error_of(api.ask("GET", target, key=key, lite=lite))[0] == 501


@pytest.mark.parametrize("lite", [False, True])
def test_a_read_only_key_reads(api: TableApi, lite: bool) -> None:
    api.ask("POST", "/t", ENTITY)
    assert api.ask("GET", PATH, key=READ_ONLY_KEY, lite=lite).status == 200
    assert len(api.query("t")) == 1
    for method, path, headers in [
        ("POST", "/t", {}),
        ("PUT", PATH, {}),
        ("POST", PATH, MERGE),
        ("DELETE", PATH, {"if-match": "*"}),
        ("POST", "/Tables", {}),
        ("DELETE", "/Tables('t')", {}),
        ("POST", "/$batch", {}),
    ]:
        response = api.ask(method, path, ENTITY, headers, key=READ_ONLY_KEY, lite=lite)
        assert error_of(response) == (403, "Forbidden")
    assert len(api.query("t")) == 1


def test_another_key_is_refused_in_the_words_of_the_flavour(
    api: TableApi, storage: TableApi
) -> None:
    response = api.ask("GET", "/Tables", key=WRONG_KEY)
    assert error_of(response) == (401, "Unauthorized")
    assert b"The MAC signature found in the HTTP request" in response.body
    response = storage.ask("GET", "/Tables", key=WRONG_KEY)
    assert error_of(response) == (403, "AuthenticationFailed")


@pytest.mark.parametrize("shift_s", [-16 * 60, 16 * 60])
def test_old_and_future_dates_are_refused(api: TableApi, shift_s: int) -> None:
    assert error_of(api.ask("GET", "/Tables", shift_s=shift_s)) == (401, "Unauthorized")
    assert api.ask("GET", "/Tables", shift_s=shift_s // 2).status == 200


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "SharedKey",
        "SharedKey localhost",
        "SharedKey localhost:!",
        "SharedKey localhost:" + "A" * 44,
        "Basic eDp5",
        "Bearer x.y.z",
        "SharedKey " + "a" * 20_000,
    ],
)
@pytest.mark.parametrize("target", ["/", "/Tables", "/t", PATH, "/$batch", "/nowhere", "/a/b/c"])
def test_without_a_signature_all_answers_are_one(
    api: TableApi, header: str | None, target: str
) -> None:
    """Also for tables that do not exist: a stranger can't tell."""
    headers = {"x-ms-date": api.date()} | ({} if header is None else {"authorization": header})
    assert error_of(api.send("GET", target, headers)) == (401, "Unauthorized")


def test_apostrophes_may_be_signed_in_either_form(api: TableApi) -> None:
    api.ask("POST", "/t", ENTITY)
    for sent, signed in [(PATH, quote(PATH, safe="/(),=%")), (quote(PATH, safe="/(),=%"), PATH)]:
        headers = {"host": "localhost", "x-ms-date": api.date()}
        headers["authorization"] = shared_key(EMULATOR_KEY, "localhost", "GET", signed, headers)
        assert api.service.handle(Request("GET", sent, headers)).status == 200


def test_the_account_may_be_in_the_path(api: TableApi) -> None:
    name = "devstoreaccount1"
    assert api.ask("POST", f"/{name}/t", ENTITY, account=name).status == 201
    response = api.ask("GET", f"/{name}{PATH}", account=name)
    assert response.status == 200
    assert b"localhost:8902/devstoreaccount1/t/$metadata" in response.body
    assert error_of(api.ask("GET", f"/other{PATH}")) == (400, "InvalidInput")


def test_the_signature_covers_method_path_and_type(api: TableApi) -> None:
    headers = {"host": "localhost", "x-ms-date": api.date(), "content-type": "application/json"}
    headers["authorization"] = shared_key(EMULATOR_KEY, "localhost", "GET", "/Tables", headers)
    for method, path, more in [
        ("POST", "/Tables", {}),
        ("GET", "/t", {}),
        ("GET", "/Tables", {"content-type": "text/plain"}),
        ("GET", "/Tables", {"content-md5": "x"}),
        ("GET", "/Tables?comp=acl", {}),
    ]:
        request = Request(method, path, headers | more)
        assert error_of(api.service.handle(request)) == (401, "Unauthorized")
    assert api.service.handle(Request("GET", "/Tables?$top=1", headers)).status == 200


# --- shared access signatures -------------------------------------------------------------------


def moment(api: TableApi, **shift: int) -> datetime:
    return datetime.fromtimestamp(api.clock.now_ms() / 1000, UTC) + timedelta(**shift)


def table_sas(api: TableApi, permission: str, table: str = "t", **more: Any) -> str:
    return generate_table_sas(
        AzureNamedKeyCredential("localhost", more.pop("key", EMULATOR_KEY)),
        table,
        permission=TableSasPermissions.from_string(permission) if permission else None,
        expiry=more.pop("expiry", moment(api, hours=1)),
        **more,
    )


def account_sas(api: TableApi, permission: str, types: str = "sco", **more: Any) -> str:
    return generate_account_sas(
        AzureNamedKeyCredential("localhost", more.pop("key", EMULATOR_KEY)),
        ResourceTypes.from_string(types),
        AccountSasPermissions.from_string(permission),
        expiry=more.pop("expiry", moment(api, hours=1)),
        **more,
    )


#: What each operation needs: letters of a table SAS, of an account SAS, its kind of resource.
OPERATIONS: list[tuple[str, str, dict[str, str], str, str]] = [
    ("POST", "/t", {}, "a", "o"),
    ("GET", "/t()", {}, "r", "o"),
    ("GET", PATH, {}, "r", "o"),
    ("PUT", PATH, {"if-match": "*"}, "u", "o"),
    ("PUT", PATH, {}, "au", "o"),
    ("POST", PATH, {**MERGE, "if-match": "*"}, "u", "o"),
    ("PATCH", PATH, {}, "au", "o"),
    ("DELETE", PATH, {"if-match": "*"}, "d", "o"),
]


@pytest.mark.parametrize(("method", "path", "headers", "needs", "kind"), OPERATIONS)
def test_a_signature_allows_what_it_says(
    api: TableApi, method: str, path: str, headers: dict[str, str], needs: str, kind: str
) -> None:
    api.ask("POST", "/t", {"PartitionKey": "p", "RowKey": "r"})
    body = b'{"PartitionKey":"p","RowKey":"new"}'
    for sas in (table_sas(api, needs), account_sas(api, needs)):
        assert api.send(method, f"{path}?{sas}", headers, body).status < 300
        api.ask("POST", "/t", {"PartitionKey": "p", "RowKey": "r"})
        api.ask("DELETE", entity_path("t", "p", "new"), headers={"if-match": "*"})
    others = "".join(one for one in "raud" if one not in needs)
    refused = [
        table_sas(api, others),
        account_sas(api, others),
        table_sas(api, needs, "other"),
        account_sas(api, needs, "sc"),
    ]
    for letter in needs if len(needs) > 1 else "":
        refused.append(table_sas(api, others + letter))
    for sas in refused:
        response = api.send(method, f"{path}?{sas}", headers, body)
        assert error_of(response) == (403, "AuthorizationPermissionMismatch")


@pytest.mark.parametrize(
    ("method", "path", "needs"),
    [("POST", "/Tables", "c"), ("GET", "/Tables", "l"), ("DELETE", "/Tables('u')", "d")],
)
def test_tables_need_an_account_signature(
    api: TableApi, method: str, path: str, needs: str
) -> None:
    if method == "DELETE":
        api.ask("POST", "/Tables", {"TableName": "u"})
    body = b'{"TableName":"u"}'
    for sas in (table_sas(api, "raud"), account_sas(api, needs, "o"), account_sas(api, "u")):
        response = api.send(method, f"{path}?{sas}", {}, body)
        assert error_of(response) == (403, "AuthorizationPermissionMismatch")
    assert api.send(method, f"{path}?{account_sas(api, needs)}", {}, body).status < 300


def test_signatures_begin_and_end(api: TableApi) -> None:
    for sas in (
        table_sas(api, "r", expiry=moment(api, hours=-1)),
        table_sas(api, "r", start=moment(api, hours=1), expiry=moment(api, hours=2)),
        account_sas(api, "r", expiry=moment(api, hours=-1)),
        table_sas(api, "r", key=WRONG_KEY),
        account_sas(api, "r", key=WRONG_KEY),
        table_sas(api, "r", key=READ_ONLY_KEY),
        table_sas(api, "r").replace("sp=r", "sp=raud"),
        table_sas(api, "r", protocol="https"),
        table_sas(api, "r", ip_address_or_range="1.2.3.4"),
        table_sas(api, "", policy_id="nobody"),
        "sig=x",
        "sig=&sv=2019-02-02",
    ):
        assert error_of(api.send("GET", f"/t()?{sas}")) == (401, "Unauthorized"), sas
    late = table_sas(api, "r", start=moment(api, minutes=-5))
    assert api.send("GET", f"/t()?{late}").status == 200
    api.clock.advance(2 * 3600)
    assert error_of(api.send("GET", f"/t()?{late}")) == (401, "Unauthorized")


def test_newer_account_signatures_sign_one_more_line(api: TableApi) -> None:
    expiry = moment(api, hours=1).strftime("%Y-%m-%dT%H:%M:%SZ")
    fields = {"sv": "2021-06-08", "ss": "bqtf", "srt": "o", "sp": "r", "se": expiry}
    lines = ["localhost", "r", "bqtf", "o", "", expiry, "", "", "2021-06-08", "", ""]
    query = urlencode(fields | {"sig": hmac_text(EMULATOR_KEY, "\n".join(lines))})
    assert api.send("GET", f"/t()?{query}").status == 200
    for name, value in (("ss", "bqf"), ("sp", "rw")):
        other = urlencode(fields | {name: value, "sig": hmac_text(EMULATOR_KEY, "\n".join(lines))})
        assert api.send("GET", f"/t()?{other}").status in (401, 403)


def test_ranges_of_keys_are_for_storage(api: TableApi, storage: TableApi) -> None:
    keys = {"start_pk": "b", "start_rk": "2", "end_pk": "c", "end_rk": "5"}
    sas = table_sas(api, "raud", **keys)
    assert error_of(api.send("GET", f"/t()?{sas}")) == (405, "MethodNotAllowed")
    sas = table_sas(storage, "raud", "ttt", **keys)
    rows = [("a", "9"), ("b", "1"), ("b", "2"), ("b", "9"), ("c", "5"), ("c", "6"), ("d", "0")]
    allowed = [("b", "2"), ("b", "9"), ("c", "5")]
    for partition, row in rows:
        body = f'{{"PartitionKey":"{partition}","RowKey":"{row}"}}'.encode()
        status = 201 if (partition, row) in allowed else 403
        assert storage.send("POST", f"/ttt?{sas}", {}, body).status == status
        storage.ask("POST", "/ttt", {"PartitionKey": partition, "RowKey": row})
        path = entity_path("ttt", partition, row)
        status = 200 if (partition, row) in allowed else 403
        assert storage.send("GET", f"{path}?{sas}").status == status
    response = storage.send("GET", f"/ttt()?{sas}")
    assert response.status == 200
    assert response.body.count(b'"PartitionKey"') == len(allowed)


def test_stored_policies_complete_a_signature(storage: TableApi) -> None:
    expiry = moment(storage, hours=1).strftime("%Y-%m-%dT%H:%M:%SZ")
    policy = (
        "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy>"
        f"<Start>2020-01-01</Start><Expiry>{expiry}</Expiry><Permission>r</Permission>"
        "</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
    assert storage.ask("PUT", "/ttt?comp=acl", policy.encode()).status == 204
    response = storage.ask("GET", "/TTT?comp=acl")
    assert response.status == 200
    assert b"<Permission>r</Permission>" in response.body
    sas = table_sas(storage, "", "ttt", policy_id="one", expiry=None)
    assert storage.send("GET", f"/ttt()?{sas}").status == 200
    body = b'{"PartitionKey":"p","RowKey":"r"}'
    assert error_of(storage.send("POST", f"/ttt?{sas}", {}, body))[0] == 403
    assert storage.ask("PUT", "/ttt?comp=acl", policy.replace("one", "two").encode()).status == 204
    assert error_of(storage.send("GET", f"/ttt()?{sas}")) == (403, "AuthenticationFailed")
    many = "<SignedIdentifiers>" + "<SignedIdentifier><Id>x</Id></SignedIdentifier>" * 6
    answer = storage.ask("PUT", "/ttt?comp=acl", f"{many}</SignedIdentifiers>".encode())
    assert error_of(answer) == (400, "InvalidXmlDocument")
    storage.ask("DELETE", "/Tables('ttt')")
    storage.ask("POST", "/Tables", {"TableName": "ttt"})
    sas = table_sas(storage, "", "ttt", policy_id="two", expiry=None)
    assert error_of(storage.send("GET", f"/ttt()?{sas}")) == (403, "AuthenticationFailed")
