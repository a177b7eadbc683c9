"""The request log is also how a trace is recorded: without names and keys in it, nobody could
replay what a server saw."""

import json
from pathlib import Path

import pytest

from armillary.advisor.workload.diagnostics import is_log, read_logs
from armillary.api.http.messages import Request, Response
from armillary.api.nosql.operation_names import logged_name
from armillary.server.http.observing import facts_of

DOCS = "/dbs/d/colls/c/docs"


@pytest.mark.parametrize(
    ("method", "target", "header", "name"),
    [
        ("POST", DOCS, None, "Create"),
        ("POST", f"{DOCS}?x=1", "x-ms-documentdb-is-upsert", "Upsert"),
        ("POST", DOCS, "x-ms-documentdb-isquery", "Query"),
        ("POST", DOCS, "x-ms-cosmos-is-batch-request", "Batch"),
        ("POST", DOCS, "x-ms-cosmos-is-query-plan-request", "QueryPlan"),
        ("GET", f"{DOCS}/1", None, "Read"),
        ("PUT", f"{DOCS}/1", None, "Replace"),
        ("PATCH", f"{DOCS}/1", None, "Patch"),
        ("DELETE", f"{DOCS}/1", None, "Delete"),
        ("GET", DOCS, None, "ReadFeed"),
        ("GET", "/dbs/d/colls/c", None, None),
    ],
)
def test_operations_have_the_names_of_the_original(
    method: str, target: str, header: str | None, name: str | None
) -> None:
    headers = {} if header is None else {header: "True"}
    assert logged_name(Request(method, target, headers)) == name


def test_a_request_log_is_a_trace(tmp_path: Path) -> None:
    headers = {"x-ms-documentdb-partitionkey": '["a"]'}
    answer = Response(201, {"x-ms-request-charge": "6.2", "x-ms-activity-id": "x"}, b"{}")
    request = Request("POST", DOCS, headers, b"{}" * 100)
    facts = facts_of(request, answer, 1.0) | {"OperationName": str(logged_name(request))}
    line = {"time": "2026-11-16T02:20:00.000Z", "level": "info", **facts}
    file = tmp_path / "requests.log"
    file.write_text("\n".join(map(json.dumps, [line, {"time": line["time"], "message": "hello"}])))
    assert is_log(file)
    found = read_logs([file], [("tenant",)])
    (one,) = found.trace.operations
    assert (one.kind, one.fields, one.charge_ru) == ("create", {("tenant",): "a"}, 6.2)
    assert one.body_bytes == 200
    assert len(found.trace.problems) == 1
