"""People who already run the original have its logs and nothing else. Without this they could not
replay what they know."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from armillary.advisor.keys.candidates import parse_candidates
from armillary.advisor.replay.comparison import replay_candidates
from armillary.advisor.workload.diagnostics import Logs, is_log, read_logs
from armillary.errors import BadInput

TENANT = [("tenant",)]
AT = "2026-04-09T13:05:59.1234567Z"


def consumption(number: int, operation: str = "Create", **more: Any) -> dict[str, Any]:
    return {
        "TimeGenerated": AT,
        "DatabaseName": "shop",
        "CollectionName": "orders",
        "PartitionKey": f'["t{number % 3}"]',
        "PartitionKeyRangeId": "0",
        "OperationName": operation,
        "RequestCharge": 7.5,
        "ActivityId": f"a{number}",
        **more,
    }


def request(number: int, operation: str = "Create", status: int = 201) -> dict[str, Any]:
    return {
        "TimeGenerated": AT,
        "ActivityId": f"a{number}",
        "OperationName": operation,
        "StatusCode": status,
        "RequestCharge": 7.5,
        "DurationMs": 3,
        "RequestLength": 640,
        "ResponseLength": 900,
    }


def logs(tmp_path: Path, content: str, paths: Any = TENANT) -> Logs:
    file = tmp_path / "log"
    file.write_text(content)
    return read_logs([file], paths)


def as_csv(*rows: dict[str, Any]) -> str:
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(out, names)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def as_tables(*rows: dict[str, Any]) -> str:
    names = list(rows[0])
    table = {"columns": [{"name": n} for n in names], "rows": [[r[n] for n in names] for r in rows]}
    return json.dumps({"tables": [table]})


def as_storage(*rows: dict[str, Any]) -> str:
    lines = [
        {"time": row["TimeGenerated"], "category": "PartitionKeyRUConsumption", "properties": row}
        for row in rows
    ]
    return "\n".join(map(json.dumps, lines))


@pytest.mark.parametrize(
    "form", [as_csv, as_tables, as_storage, lambda *rows: json.dumps(rows)], ids=range(4)
)
def test_every_form_of_export_is_read(tmp_path: Path, form: Any) -> None:
    found = logs(tmp_path, form(*(consumption(n) for n in range(6))))
    assert [one.fields for one in found.trace.operations[:2]] == [
        {("tenant",): "t0"},
        {("tenant",): "t1"},
    ]
    assert {one.charge_ru for one in found.trace.operations} == {7.5}
    assert found.trace.skipped == {}


def test_tables_are_joined_by_the_activity(tmp_path: Path) -> None:
    text = {"ActivityId": "a1", "QueryText": "SELECT * FROM c WHERE c.n = 1"}
    rows = [consumption(1, "Query"), request(1, "Query", 200), text, consumption(2), request(2)]
    query, create = logs(tmp_path, as_csv(*rows)).trace.operations
    assert query.kind == "query"
    assert query.body_bytes == 900
    assert query.template is not None
    assert query.template.text == text["QueryText"]
    assert create.body_bytes == 640


def test_sizes_of_keys_are_what_the_container_holds(tmp_path: Path) -> None:
    rows = [{"PartitionKey": '["t1"]', "SizeKb": 2_000_000}, consumption(1)]
    found = logs(tmp_path, json.dumps(rows))
    sample = found.sample()
    assert sample is not None
    assert sample.items == [{("tenant",): "t1"}]
    comparison = replay_candidates(parse_candidates(["/tenant"]), found.trace.played(), sample)
    assert comparison.replays[0].large_keys[0].key == '["t1"]'


def test_what_cannot_be_used_is_counted(tmp_path: Path) -> None:
    rows = [
        consumption(0),
        consumption(1, "ExecuteJavaScript"),
        request(9, "Create"),
        {**consumption(2), "StatusCode": 429},
        {**consumption(3), "TimeGenerated": "yesterday"},
        {"Hello": "world"},
        {**consumption(4), "PartitionKey": "bare"},
    ]
    found = logs(tmp_path, "\n".join([*map(json.dumps, rows), "{broken"]))
    assert len(found.trace.operations) == 2
    assert found.trace.operations[1].fields == {("tenant",): "bare"}
    assert sum(found.trace.skipped.values()) == 6
    reasons = " ".join(found.trace.skipped)
    for word in ("ExecuteJavaScript", "no key", "429", "time", "tables", "not a row"):
        assert word in reasons


def test_the_present_key_has_to_be_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--key"):
        logs(tmp_path, json.dumps([consumption(1)]), ())


def test_a_log_is_told_from_a_trace(tmp_path: Path) -> None:
    for text, wanted in (
        (as_csv(consumption(1)), True),
        (json.dumps([consumption(1)]), True),
        (as_storage(consumption(1)), True),
        (as_tables(consumption(1)), True),
        ('{"ts": 1, "op": "read"}', False),
        ('{"op": "create", "operationName": "x"}', False),
    ):
        file = tmp_path / "x"
        file.write_text(text)
        assert is_log(file) is wanted, text
