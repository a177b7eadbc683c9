"""A request for an entity that is recognised by its template gets the answer that it gets by way of
the parser, and leaves the same behind. Without this, what a client gets would depend on what its
connection had sent before."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ServiceRequestError
from azure.core.pipeline.transport import RequestsTransport
from azure.data.tables import TableClient, UpdateMode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.nosql import READ_ONLY_KEY, SECONDARY_KEY, WRONG_KEY
from tests.support.raw_http import Answer, parse_answer
from tests.support.table import COSMOS, STORAGE, TableApi, entity_path, shared_key, table_api

from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.http.encoding import encode
from armillary.api.http.messages import Request, Response, Waiting
from armillary.api.table.fast.reads import FastReads
from armillary.api.table.fast.requests import HEADERS
from armillary.api.table.fast.upserts import FastUpserts
from armillary.api.table.wire.targets import parse_target
from armillary.encoding.edm.values import item_id
from armillary.errors import NotFound
from armillary.server.bounds import Bounds
from armillary.server.http.templates import Templates
from armillary.server.http.wire import Incoming, RequestReader
from armillary.store.index.entries import index_entries, walk_model

DATE_LINE = "Date: today\r\n"
CHANGES = frozenset({"x-ms-request-id", "etag"})
RANDOM = re.compile(rb"RequestI[Dd]:[^\\]*|Time:[^\"]*|datetime'[^']*'|\"Timestamp\":\"[^\"]*\"")


@pytest.fixture(scope="module")
def api() -> Iterator[TableApi]:
    with table_api() as made:
        made.engine.never_waits = True  # type: ignore[misc]
        for number in range(6):
            body = {"PartitionKey": f"p{number % 2}", "RowKey": f"r{number}", "n": number}
            assert made.ask("POST", "/t", body).status == 201
        yield made


def signed(
    api: TableApi,
    method: str,
    path: str,
    extra: dict[str, str],
    key: str,
    body: bytes,
    *,
    lite: bool = False,
) -> bytes:
    headers = {"host": "localhost:8902", "x-ms-date": api.date()}
    if body:
        headers |= {"content-type": "application/json"}
    headers |= extra
    headers["authorization"] = shared_key(key, "localhost", method, path, headers, lite=lite)
    if body:
        headers["content-length"] = str(len(body))
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body


def parsed(data: bytes, *, secure: bool = False) -> Request:
    (event,) = RequestReader(Bounds(), secure=secure).receive(data)
    assert isinstance(event, Incoming)
    return event.request


def by_template(api: TableApi, data: bytes, like: bytes, *, secure: bool = False) -> bytes | None:
    """The answer of a connection that has seen `like`; None: it went to the parser."""
    shape = Templates(api.service.fast_paths).find(like, parsed(like, secure=secure))
    found = None if shape is None else shape.match(data)
    if shape is None or found is None:
        return None
    answer = shape.answer(DATE_LINE.encode(), *found)
    if not isinstance(answer, Waiting):
        return answer
    answer.future.exception(10)
    whole = answer.finish(DATE_LINE.encode())
    if whole is None:
        response = answer.otherwise(parsed(data, secure=secure))
        assert response is None or isinstance(response, Response)
        return None if response is None else encode(response, DATE_LINE)
    return whole


def by_parser(api: TableApi, data: bytes, *, secure: bool = False) -> bytes:
    return encode(api.service.handle(parsed(data, secure=secure)), DATE_LINE, old=False)


def told(data: bytes) -> Answer:
    """Without what differs from answer to answer."""
    found = parse_answer(data)
    headers = {name: text for name, text in found.headers.items() if name not in CHANGES}
    body = RANDOM.sub(b"", found.body)
    if "content-length" in headers:
        headers["content-length"] = str(len(body))
    return Answer(found.status, headers, body)


paths = st.sampled_from(
    [
        *(entity_path("t", f"p{n % 2}", f"r{n}") for n in range(8)),
        entity_path("t", "it's", "a b"),
        entity_path("none", "p", "r"),
        "/t(RowKey='r1',PartitionKey='p1')",
        "/devstoreaccount1/t(PartitionKey='p1',RowKey='r1')",
        "/t(PartitionKey='p1')",
        "/t",
        "/t()",
        "/Tables",
        "/t(PartitionKey='p1',RowKey='r1')?$select=n",
    ]
)
extras = st.fixed_dictionaries(
    {},
    optional={
        "accept": st.sampled_from(
            ["application/json;odata=nometadata", "application/json;odata=fullmetadata", "x"]
        ),
        "if-match": st.sampled_from(["*", "W/\"datetime'2020'\"", "x"]),
        "prefer": st.sampled_from(["return-no-content", "return-content", "x"]),
        "x-http-method": st.sampled_from(["MERGE", "PATCH", "x"]),
        "x-ms-client-request-id": st.sampled_from(["abc", "y" * 100]),
        "x-ms-version": st.sampled_from(["2020-12-06", "x"]),
        "user-agent": st.sampled_from(["a", "b c"]),
        "x-forwarded-proto": st.just("https"),
        "content-type": st.sampled_from(["application/json", "text/plain"]),
        "host": st.sampled_from(["localhost", "evil.example"]),
        "date": st.sampled_from(["x", "Tue, 17 Nov 2026 03:52:05 GMT"]),
    },
)
bodies = st.sampled_from(
    [b'{"n":1}', b'{"PartitionKey":"p1","RowKey":"r9","n":1}', b"{", b'{"n":{}}', b'{"a b":1}']
)
methods = st.sampled_from(["GET", "PUT", "PATCH", "POST", "DELETE"])
shifts = st.sampled_from([0, 0, 0, 899, -899, 1000])
keys = st.sampled_from([EMULATOR_KEY] * 4 + [SECONDARY_KEY, READ_ONLY_KEY, WRONG_KEY])


def items(api: TableApi) -> list[dict[str, Any]]:
    found = [dict(one) for one in api.query("t")]
    for one in found:
        one.pop("Timestamp")
        one.pop("odata.etag")
    return sorted(found, key=lambda one: str(one["RowKey"]))


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(method=methods, path=paths, extra=extras, key=keys, body=bodies, secure=st.booleans())
def test_templates_and_parser_answer_alike(
    api: TableApi,
    method: str,
    path: str,
    extra: dict[str, str],
    key: str,
    body: bytes,
    secure: bool,
) -> None:
    sent = body if method in ("PUT", "PATCH", "POST") else b""
    data = signed(api, method, path, extra, key, sent)
    quick = by_template(api, data, data, secure=secure)
    left = items(api)
    if quick is None:
        return
    restore(api)
    assert told(quick) == told(by_parser(api, data, secure=secure))
    assert items(api) == left
    restore(api)


def restore(api: TableApi) -> None:
    for one in api.query("t"):
        path = entity_path("t", one["PartitionKey"], one["RowKey"])
        assert api.ask("DELETE", path, headers={"if-match": "*"}).status == 204
    for number in range(6):
        body = {"PartitionKey": f"p{number % 2}", "RowKey": f"r{number}", "n": number}
        assert api.ask("POST", "/t", body).status == 201


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "POST", "DELETE"])
@pytest.mark.parametrize("secure", [False, True])
def test_ordinary_requests_go_by_template(api: TableApi, method: str, secure: bool) -> None:
    body = b"" if method in ("GET", "DELETE") else b'{"PartitionKey":"p","RowKey":"x","n":1}'
    path = "/t" if method == "POST" else entity_path("t", "p1", "r1")
    extra = {"if-match": "*"} if method == "DELETE" else {}
    data = signed(api, method, path, extra, EMULATOR_KEY, body)
    like = signed(api, method, path.replace("r1", "r3"), extra, EMULATOR_KEY, body)
    answer = by_template(api, data, like, secure=secure)
    assert answer is not None
    assert parse_answer(answer).status in (200, 201, 204)
    if method == "POST":
        scheme = "https" if secure else "http"
        assert f"{scheme}://localhost:8902/".encode() in answer
    restore(api)


def test_another_host_goes_to_the_parser(api: TableApi) -> None:
    """Which asks whether it is one of ours."""
    path = entity_path("t", "p1", "r1")
    like = signed(api, "GET", path, {}, EMULATOR_KEY, b"")
    assert by_template(api, like, like) is not None
    data = signed(api, "GET", path, {"host": "other.example"}, EMULATOR_KEY, b"")
    assert by_template(api, data, like) is None


ALL_TYPES = {
    "s": 'it is "ü" and \\ }{,',
    "i": 7,
    "b": True,
    "d": 2.5,
    "whole": 3.0,
    "n": "NaN",
    "n@odata.type": "Edm.Double",
    "l": "9007199254740993",
    "l@odata.type": "Edm.Int64",
    "g": "8f7d6b5e-0000-4000-a000-000000000001",
    "g@odata.type": "Edm.Guid",
    "t": "2008-07-10T00:00:00.1234567Z",
    "t@odata.type": "Edm.DateTime",
    "x": "AAEC",
    "x@odata.type": "Edm.Binary",
    "id": "mine",
    "_etag": "mine too",
}
ROWS = ["r", "a b", "50%", "it's", "ü", "b ", "r" * 200, "a,RowKey=b", "a(b)"]
TARGETS = [entity_path("tab", key, row) for key in ("p", "p q", "ü", "it's", "p'") for row in ROWS]
READS = [
    *TARGETS,
    *("/devstoreaccount1" + one for one in TARGETS[:4]),
    entity_path("TAB", "p", "r"),
    entity_path("none", "p", "r"),
    "/other/tab(PartitionKey='p',RowKey='r')",
]


@pytest.fixture(scope="module", params=[COSMOS, STORAGE], ids=["cosmos", "storage"])
def typed(request: pytest.FixtureRequest) -> Iterator[TableApi]:
    with table_api(request.param, table="tab") as made:
        assert made.ask("POST", "/Tables", {"TableName": "other"}).status == 201
        for path in TARGETS:
            if made.service.flavour.is_storage or not path.endswith("%20')"):
                assert made.ask("PUT", path, ALL_TYPES).status == 204
        yield made


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(path=st.sampled_from(READS), extra=extras, key=keys, lite=st.booleans(), shift=shifts)
def test_fast_reads_and_the_general_path_answer_alike(
    typed: TableApi, path: str, extra: dict[str, str], key: str, lite: bool, shift: int
) -> None:
    extra = {**extra, "x-ms-date": typed.date(shift)}
    like = signed(typed, "GET", TARGETS[0], extra, EMULATOR_KEY, b"", lite=lite)
    data = signed(typed, "GET", path, extra, key, b"", lite=lite)
    quick = by_template(typed, data, like)
    if quick is not None:
        assert exact(quick) == exact(by_parser(typed, data))


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    body=st.dictionaries(
        st.sampled_from(["a", "b", "id", "_etag", "Timestamp", "x" * 300, "a b", "n@odata.type"]),
        st.one_of(
            st.text(max_size=5),
            st.text("ab\x00é", max_size=200),
            st.integers(-(2**65), 2**65),
            st.floats(allow_nan=False, allow_infinity=False),
            st.sampled_from([3.0, -0.0, 2.0**53, 1e300, True, None, {}, []]),
        ),
    ),
    path=st.sampled_from(TARGETS),
    method=st.sampled_from(["PUT", "PATCH", "POST"]),
    extra=st.sampled_from([{}, {"if-match": "*"}, {"if-match": "W/\"datetime'2020'\""}]),
    before=st.sampled_from([None, {"a": 1, "before": "x"}]),
)
def test_fast_upserts_leave_what_the_general_path_leaves(
    typed: TableApi,
    body: dict[str, Any],
    path: str,
    method: str,
    extra: dict[str, str],
    before: dict[str, Any] | None,
) -> None:
    typed.engine.never_waits = True  # type: ignore[misc]
    if method == "POST":
        extra = {**extra, "x-http-method": "MERGE"}
    sent = json.dumps({**ALL_TYPES, **body}).encode()
    data = signed(typed, method, path, extra, EMULATOR_KEY, sent)
    like = signed(typed, method, TARGETS[0], extra, EMULATOR_KEY, b"{}")
    begin_with(typed, path, before)
    quick = by_template(typed, data, like)
    left = stored(typed, path)
    begin_with(typed, path, before)
    general = by_parser(typed, data)
    if quick is not None:
        assert told(quick) == told(general)
        assert left == stored(typed, path)
    begin_with(typed, path, ALL_TYPES)


def begin_with(api: TableApi, path: str, entity: dict[str, Any] | None) -> None:
    if entity is None:
        api.ask("DELETE", path, headers={"if-match": "*"})
    else:
        api.ask("PUT", path, entity)


def stored(api: TableApi, path: str) -> Any:
    """The item without what differs between two writes, and its index entries by both walks."""
    target = parse_target(path, ())
    store = api.gateway.container("TablesDB", "tab")
    try:
        text = store.read(item_id(target.row_key), (target.partition_key,)).text
    except NotFound:
        return None
    item = {k: v for k, v in json.loads(text).items() if k not in ("_etag", "_ts", "_rid", "_self")}
    plan, slow = store.state.plan, (list[bytes](), list[bytes]())
    entries = index_entries(plan, item)
    walk_model(plan, plan.root, item, *slow)
    assert entries.ix == list(dict.fromkeys(slow[0]))
    return re.sub(rb'"(_etag|_ts|_rid|_self)":[^,}]*', b"", text)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "POST"])
@pytest.mark.parametrize("extra", [{}, {"if-match": "*"}])
def test_ordinary_upserts_are_fast(typed: TableApi, method: str, extra: dict[str, str]) -> None:
    typed.engine.never_waits = True  # type: ignore[misc]
    if method == "POST":
        extra = {**extra, "x-http-method": "MERGE"}
    for path in (TARGETS[0], TARGETS[1], "/devstoreaccount1" + TARGETS[0]):
        begin_with(typed, path, {"before": 1})
        data = signed(typed, method, path, extra, EMULATOR_KEY, json.dumps(ALL_TYPES).encode())
        assert fast_path_of(typed, data) is FastUpserts
        answer = by_template(typed, data, data)
        assert answer is not None
        assert parse_answer(answer).status == 204
        left = stored(typed, path.removeprefix("/devstoreaccount1"))
        assert (b'"before"' in left) is (method != "PUT")


def fast_path_of(api: TableApi, data: bytes) -> type | None:
    template = Templates(api.service.fast_paths).find(data, parsed(data))
    return None if template is None else type(getattr(template.answer, "__self__", None))


class Caught(RequestsTransport):  # type: ignore[misc]
    """Sends nothing: keeps what would have been sent."""

    data = b""

    def send(self, request: Any, **kwargs: Any) -> Any:
        host, _, path = request.url.removeprefix("http://").partition("/")
        lines = [f"{request.method} /{path} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in request.headers.items()]
        body = request.body or b""
        body = body if isinstance(body, bytes) else body.encode()
        self.data = "\r\n".join([*lines, "", ""]).encode() + body
        raise ServiceRequestError("kept")


@pytest.mark.parametrize("mode", list(UpdateMode))
@pytest.mark.parametrize("ask", ["get", "update", "upsert"])
def test_requests_of_the_sdk_are_fast(typed: TableApi, ask: str, mode: UpdateMode) -> None:
    """With every header that it sends, also those that have no meaning here."""
    caught = Caught()
    credential = AzureNamedKeyCredential("localhost", EMULATOR_KEY)
    with TableClient(
        "http://localhost:8902", "tab", credential=credential, transport=caught, retry_total=0
    ) as client:
        entity = {"PartitionKey": "p", "RowKey": "r", "n": 1}
        with pytest.raises(ServiceRequestError):
            if ask == "get":
                client.get_entity("p", "r")
            elif ask == "update":
                client.update_entity(entity, mode)
            else:
                client.upsert_entity(entity, mode)
    assert fast_path_of(typed, caught.data) is (FastReads if ask == "get" else FastUpserts)


def exact(data: bytes) -> Answer:
    found = parse_answer(data)
    headers = {name: text for name, text in found.headers.items() if name != "x-ms-request-id"}
    return Answer(
        found.status, headers, re.sub(rb"Request(ID|Id):[^\\]*|Time:[^\"]*", b"", found.body)
    )


@pytest.mark.parametrize("lite", [False, True])
@pytest.mark.parametrize("level", ["nometadata", "minimalmetadata", "fullmetadata"])
def test_ordinary_reads_are_fast(typed: TableApi, level: str, lite: bool) -> None:
    extra = {"accept": f"application/json;odata={level}"}
    paths = [TARGETS[0], TARGETS[1], TARGETS[2], "/devstoreaccount1" + TARGETS[0]]
    for path in paths:
        data = signed(typed, "GET", path, extra, EMULATOR_KEY, b"", lite=lite)
        assert fast_path_of(typed, data) is FastReads
        assert by_template(typed, data, data) is not None


def test_a_fast_read_sees_a_table_that_was_made_again(typed: TableApi) -> None:
    path = entity_path("again", "p", "r")
    for number in range(3):
        assert typed.ask("POST", "/Tables", {"TableName": "again"}).status == 201
        assert typed.ask("PUT", path, {"n": number}).status == 204
        data = signed(typed, "GET", path, {}, EMULATOR_KEY, b"")
        for _ in range(2):
            answer = by_template(typed, data, data) or by_parser(typed, data)
            assert json.loads(parse_answer(answer).body)["n"] == number
        assert typed.ask("DELETE", "/Tables('again')").status == 204
        assert by_template(typed, data, data) is None


class Recording(dict[str, str]):
    """Headers that remember which of them were asked for."""

    asked: set[str]

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "POST", "DELETE"])
@pytest.mark.parametrize("form", ["SharedKey", "nothing"])
def test_the_api_reads_no_header_that_a_template_leaves_out(
    api: TableApi, method: str, form: str
) -> None:
    body = b"" if method in ("GET", "DELETE") else b'{"n":1}'
    path = entity_path("t", "p1", "r1")
    request = parsed(signed(api, method, path, {"if-match": "*"}, EMULATOR_KEY, body))
    headers = Recording(request.headers)
    headers.asked = set()
    if form == "nothing":
        headers.pop("authorization")
    request.headers = headers
    api.service.handle(request)
    assert headers.asked
    assert headers.asked <= set(HEADERS)
    restore(api)


def test_errors_too_are_json(api: TableApi) -> None:
    data = signed(api, "PATCH", entity_path("t", "p1", "r1"), {}, EMULATOR_KEY, b"{")
    answer = by_template(api, data, data)
    assert answer is not None
    assert json.loads(parse_answer(answer).body)["odata.error"]["code"] == "InvalidInput"
