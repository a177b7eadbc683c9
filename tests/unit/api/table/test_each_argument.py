"""Every header, every option of a query and every property of an entity in turn, left out or of
another kind. What is wrong is said; none is a mistake of the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import pytest
from tests.support.arguments import LEFT_OUT, changed, paths
from tests.support.table import COSMOS, STORAGE, TableApi, entity_path, table_api

from armillary.api.table.flavours import Flavour

NAMES: Final = """
accept content-type dataserviceversion if-match maxdataserviceversion prefer x-forwarded-host
x-forwarded-proto x-http-method x-ms-client-request-id x-ms-cosmos-offer-autopilot-settings
x-ms-offer-throughput x-ms-return-client-request-id x-ms-version
"""
OPTIONS: Final = """
$filter $format $select $top NextPartitionKey NextRowKey NextTableName comp restype timeout $skip
$orderby $expand se si sig sip sp spk srk epk erk spr srt ss st sv tn
"""
TEXTS: Final = (
    *("", " ", "x", "*", "-1", "0", "1.5", "9" * 30, "9" * 5000, "'", '"', "[]", "{}", "\x00", "é"),
    *('{"maxThroughput":"x"}', "application/json;odata=", "application/atom+xml", "DELETE", "%zz"),
    *("RowKey eq", "RowKey eq " + "9" * 5000, "n eq 5L and", "(" * 300, "not not", "1!4!AAAA"),
    *("W/\"datetime'x'\"", "return-content", "multipart/mixed; boundary=", "https://[", "a,b,"),
)
VALUES: Final[tuple[Any, ...]] = (
    *(LEFT_OUT, None, True, -1, 2**40, 2**70, 1.5, 1e308, "", "x", "/", "\x00", "\ud800"),
    *("9" * 5000, [], {}, [1], {"a": None}, "Edm.Int32", "Edm.Guid", "Edm.Binary", "Edm.DateTime"),
    *("Edm.Int64", "Edm.Double", "Edm.Null", "edm.x", "2024-02-30T00:00:00Z", "AAE", "x" * 40_000),
)
ENTITY: Final[dict[str, Any]] = {
    "PartitionKey": "p",
    "RowKey": "r",
    "Text": "x",
    "Number": 1,
    "Long": "5",
    "Long@odata.type": "Edm.Int64",
    "When": "2024-01-02T03:04:05Z",
    "When@odata.type": "Edm.DateTime",
    "Id": "c9da6455-213d-42c9-9a79-3e9149a57833",
    "Id@odata.type": "Edm.Guid",
    "Data": "AAEC",
    "Data@odata.type": "Edm.Binary",
    "Real": 1.5,
    "Real@odata.type": "Edm.Double",
    "Flag": True,
    "odata.etag": "x",
}
PLACE: Final = entity_path("tab", "p", "r")


class Asked(NamedTuple):
    method: str
    path: str
    body: Any
    headers: dict[str, str]


def requests() -> Iterator[Asked]:
    yield Asked("POST", "/Tables", {"TableName": "other"}, {})
    yield Asked("GET", "/Tables", None, {})
    yield Asked("GET", "/Tables('tab')", None, {})
    yield Asked("GET", "/tab?comp=acl", None, {})
    yield Asked("GET", "/?restype=service&comp=properties", None, {})
    yield Asked("POST", "/tab", ENTITY, {})
    yield Asked("PUT", PLACE, ENTITY, {})
    yield Asked("PUT", PLACE, ENTITY, {"if-match": "*"})
    yield Asked("PATCH", PLACE, ENTITY, {"if-match": "*"})
    yield Asked("GET", PLACE, None, {})
    yield Asked("GET", "/tab()", None, {})
    yield Asked("DELETE", entity_path("tab", "p", "none"), None, {"if-match": "*"})


def with_something_wrong(one: Asked) -> Iterator[Asked]:
    mark = "&" if "?" in one.path else "?"
    for text in TEXTS:
        for name in NAMES.split():
            yield one._replace(headers=one.headers | {name: text})
        for name in OPTIONS.split():
            yield one._replace(path=f"{one.path}{mark}{name}={quote(text, safe='')}")
        yield one._replace(path=one.path.replace("tab", quote(text[:300], safe="")))
        yield one._replace(path=one.path.replace("'p'", f"'{quote(text[:300], safe='')}'"))
    if one.body is not None:
        for new in VALUES:
            yield one._replace(body=None if new is LEFT_OUT else new)
            for path in paths(one.body):
                yield one._replace(body=changed(one.body, path, new))


def batch(name: str, text: str) -> bytes:
    """Of one insert, with one more header of its part."""
    lines = (
        *("--b", "Content-Type: multipart/mixed; boundary=c", "", "--c"),
        *("Content-Type: application/http", "Content-Transfer-Encoding: binary", ""),
        *("POST http://localhost:8902/tab HTTP/1.1", "Content-Type: application/json"),
        *(f"{name}: {text}", "", json.dumps({"PartitionKey": "p", "RowKey": "b"})),
        *("--c--", "--b--", ""),
    )
    return "\r\n".join(lines).encode()


@pytest.mark.parametrize("flavour", [COSMOS, STORAGE], ids=["cosmos", "storage"])
def test_no_argument_is_a_mistake_of_the_server(flavour: Flavour) -> None:
    count, defects = 0, []

    def send(api: TableApi, one: Asked) -> None:
        nonlocal count
        count += 1
        api.clock.advance(2000)  # it has its request units again
        found = api.ask(one.method, one.path, one.body, one.headers)
        if found.status in (500, 502):
            defects.append(f"{found.status} {one} {found.body!r}"[:600])

    with table_api(flavour, table="tab") as api:
        assert api.ask("POST", "/tab", ENTITY).status == 201
        for base in requests():
            for one in with_something_wrong(base):
                send(api, one)
        for name in (*NAMES.split(), "content-length", "content-id"):
            for text in TEXTS:
                mixed = {"content-type": "multipart/mixed; boundary=b"}
                send(api, Asked("POST", "/$batch", batch(name, text), mixed))
    assert count > 10_000
    assert not defects, "\n".join(defects[:40])
