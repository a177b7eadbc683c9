"""Entity group transactions: forms of requests and answers, rules, and all or nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.table import STORAGE, TableApi, entity_path, error_of, table_api

from armillary.api.http.messages import Response
from armillary.api.table.wire.multipart import Answer, boundary_of, format_batch, parse_batch
from armillary.errors import DbError

QUIET = {"PartitionKey": "p", "RowKey": "quiet"}
TYPE = "multipart/mixed; boundary=batch_1"


@pytest.fixture
def api() -> Iterator[TableApi]:
    with table_api() as made:
        yield made


Operation = tuple[str, str, Any, dict[str, str]]


def batch_body(operations: list[Operation], *, lower: bool = False, end: str = "\r\n") -> bytes:
    """As the Python SDK writes it, or (`lower`) more like the JavaScript one."""
    lines = ["--batch_1", "Content-Type: multipart/mixed; boundary=changeset_1", ""]
    for number, (method, target, body, headers) in enumerate(operations):
        text = "" if body is None else json.dumps(body)
        outer = {"Content-Type": "application/http", "Content-Transfer-Encoding": "binary"}
        inner = {"Content-Type": "application/json", **headers}
        if not lower:
            outer["Content-ID"] = str(number)
            inner["Content-Length"] = str(len(text.encode()))
        lines.append("--changeset_1")
        for head, first in ((outer, None), (inner, f"{method} http://h{target} HTTP/1.1")):
            lines += [first] if first else []
            lines += [f"{name.lower() if lower else name}: {head[name]}" for name in head]
            lines.append("")
        lines.append(text)
    lines += ["--changeset_1--", "", "--batch_1--", ""]
    return end.join(lines).encode()


def send(api: TableApi, operations: list[Operation], **form: Any) -> Response:
    return api.ask("POST", "/$batch", batch_body(operations, **form), {"content-type": TYPE})


def parts_of(response: Response) -> list[tuple[int, str]]:
    """Status and the rest of each part."""
    assert response.status == 202
    assert response.headers["Content-Type"].startswith("multipart/mixed; boundary=batchresponse_")
    texts = re.split(r"--changesetresponse_\S+\r\n", response.body.decode())[1:]
    found = []
    for text in texts:
        if match := re.search(r"HTTP/1.1 (\d+) [\w ]+\r\n(.*)", text, re.DOTALL):
            found.append((int(match[1]), match[2]))
    return found


def insert(row: str, partition: str = "p", **more: Any) -> Operation:
    return "POST", "/t", {"PartitionKey": partition, "RowKey": row, **more}, {}


def at(method: str, row: str, body: Any = None, **headers: str) -> Operation:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return method, entity_path("t", "p", row), body, named


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_every_kind_of_operation(api: TableApi, lower: bool, end: str) -> None:
    for row in ("old", "merged", "gone", "put"):
        api.ask("POST", "/t", {"PartitionKey": "p", "RowKey": row, "a": 1, "b": 1})
    response = send(
        api,
        [
            insert("new's", a=1),
            (
                "POST",
                "/t",
                {"PartitionKey": "p", "RowKey": "quiet"},
                {"Prefer": "return-no-content"},
            ),
            at("PUT", "old", {"a": 2}, if_match="*"),
            at("PATCH", "merged", {"a": 2}, if_match="*"),
            at("POST", "fresh", {"a": 3}, x_http_method="MERGE"),
            at("MERGE", "put", {"c": 3}),
            at("DELETE", "gone", if_match="*"),
        ],
        lower=lower,
        end=end,
    )
    parts = parts_of(response)
    assert [status for status, _ in parts] == [201, 204, 204, 204, 204, 204, 204]
    for number, (status, text) in enumerate(parts):
        assert f"Content-ID: {number + 1}\r\n" in text
        assert ("ETag: W/" in text) == (number != 6)
        assert ("{" in text) == (status == 201)
    assert "RowKey='new''s'" in parts[0][1]
    assert "Preference-Applied: return-no-content" in parts[1][1]
    rows = {row["RowKey"]: (row.get("a"), row.get("b"), row.get("c")) for row in api.query("t")}
    assert rows == {
        "new's": (1, None, None),
        "quiet": (None, None, None),
        "old": (2, None, None),
        "merged": (2, 1, None),
        "fresh": (3, None, None),
        "put": (1, 1, 3),
    }


@pytest.mark.parametrize(
    ("bad", "status", "code"),
    [
        (insert("old"), 409, "EntityAlreadyExists"),
        (at("PUT", "x", {}, if_match="*"), 404, "ResourceNotFound"),
        (at("PUT", "old", {}, if_match="W/\"datetime'2000-01-01T00%3A00%3A00.0000000Z'\""), 412,
         "UpdateConditionNotSatisfied"),
        (at("DELETE", "old"), 400, "InvalidInput"),
        (insert("x", "other"), 400, "CommandsInBatchActOnDifferentPartitions"),
        (insert("first"), 400, "InvalidDuplicateRow"),
        (insert("x", bad=[1]), 400, "InvalidInput"),
        (("POST", "/t", {"PartitionKey": "p"}, {}), 400, "PropertiesNeedValue"),
        (("POST", "/u", {"PartitionKey": "p", "RowKey": "x"}, {}), 400,
         "CommandsInBatchActOnDifferentPartitions"),
    ],
)  # fmt: skip
def test_one_failure_undoes_all_and_says_which(
    api: TableApi, bad: Operation, status: int, code: str
) -> None:
    for row in ("old", "kept"):
        api.ask("POST", "/t", {"PartitionKey": "p", "RowKey": row, "a": 1})
    parts = parts_of(
        send(api, [insert("first"), at("MERGE", "kept", {"a": 2}), bad, insert("last")])
    )
    ((found, text),) = parts
    assert found == status
    error = json.loads(text.partition("\r\n\r\n")[2].strip().partition("\r\n")[0])["odata.error"]
    assert error["code"] == code
    assert error["message"]["value"].startswith("2:")
    assert [(row["RowKey"], row["a"]) for row in api.query("t")] == [("old", 1), ("kept", 1)]


def test_a_missing_table_has_no_index(api: TableApi) -> None:
    body = {"PartitionKey": "p", "RowKey": "x"}
    ((status, text),) = parts_of(send(api, [("POST", "/nowhere", body, {})]))
    assert status == 404
    assert '"value":"The specified resource' in text


def test_bounds(api: TableApi) -> None:
    parts = parts_of(send(api, [insert(str(n)) for n in range(100)]))
    assert [status for status, _ in parts] == [201] * 100
    ((status, text),) = parts_of(send(api, [insert(f"n{n}") for n in range(101)]))
    assert status == 400
    assert "0:The batch request operation exceeds the maximum 100 changes" in text
    large = [insert(f"x{n}", data="x" * 300_000) for n in range(10)]
    assert error_of(send(api, large)) == (413, "RequestBodyTooLarge")
    assert len(api.query("t")) == 100


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b"{}"),
        ("multipart/mixed", b"--x"),
        (TYPE, b""),
        (TYPE, b"--batch_1--"),
        (TYPE, b"--batch_1\r\nContent-Type: text/plain\r\n\r\nhello\r\n--batch_1--"),
        (TYPE, b"--batch_1\r\nContent-Type: application/http\r\n\r\nnonsense\r\n--batch_1--"),
        (TYPE, batch_body([("GET", "/t", None, {})])),
        (TYPE, batch_body([("POST", "/Tables", {"TableName": "u"}, {})])),
        (TYPE, batch_body([("POST", "/t/x/y", {}, {})])),
    ],
)
def test_bad_batches_are_refused(api: TableApi, content_type: str, body: bytes) -> None:
    response = api.ask("POST", "/$batch", body, {"content-type": content_type})
    assert error_of(response) == (400, "InvalidInput")


def test_a_query_may_be_alone(api: TableApi) -> None:
    api.ask("POST", "/t", {"PartitionKey": "p", "RowKey": "r", "a": 7})
    lines = [
        "--batch_1", "Content-Type: application/http", "",
        f"GET http://h{entity_path('t', 'p', 'r')} HTTP/1.1",
        "Accept: application/json;odata=nometadata", "", "", "--batch_1--", "",
    ]  # fmt: skip
    response = api.ask("POST", "/$batch", "\r\n".join(lines).encode(), {"content-type": TYPE})
    assert response.status == 202
    assert b"HTTP/1.1 200 OK" in response.body
    assert b'"a":7' in response.body


def test_the_flavour_of_storage_speaks_its_own_words() -> None:
    with table_api(STORAGE, table="ttt") as api:
        body = {"PartitionKey": "", "RowKey": ""}
        ((status, _),) = parts_of(send(api, [("POST", "/TTT", body, {})]))
        assert status == 201
        ((status, text),) = parts_of(send(api, [("POST", "/ttt", body, {})]))
        assert (status, "RequestId" in text, "0:The specified entity" in text) == (409, True, True)


# --- forms --------------------------------------------------------------------------------------

VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=5)


@given(
    bodies=st.lists(st.dictionaries(st.text("ab", max_size=2), VALUES, max_size=3), max_size=5),
    lower=st.booleans(),
    end=st.sampled_from(["\r\n", "\n"]),
)
def test_what_is_put_together_comes_apart(
    bodies: list[dict[str, str]], lower: bool, end: str
) -> None:
    operations: list[Operation] = [("POST", "/t", body, {"X-Number": "1"}) for body in bodies]
    parts = parse_batch(TYPE, batch_body(operations, lower=lower, end=end))
    assert [json.loads(part.body) for part in parts] == bodies
    assert all(part.in_changeset and part.headers["x-number"] == "1" for part in parts)


@given(noise=st.binary(max_size=200), cut=st.integers(0, 400))
def test_noise_is_refused_or_read_but_never_a_crash(noise: bytes, cut: int) -> None:
    whole = batch_body([insert("a"), at("DELETE", "b", if_match="*")])
    for body in (noise, whole[:cut] + noise + whole[cut:], b"--batch_1\r\n" + noise):
        try:
            parse_batch(TYPE, body)
        except DbError as error:
            problem = error.facts["problem"]
        else:
            problem = "input"
        assert problem in ("input", "url")


def test_boundaries_may_be_quoted() -> None:
    assert boundary_of('multipart/mixed; charset=utf-8; Boundary="a b"') == b"a b"
    assert format_batch([Answer(204, {})], "x").count(b"--changesetresponse_x") == 2
