"""A trace somebody recorded is never quite clean. Without this, one bad line would end a replay, or
be left out in silence."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from armillary.advisor.keys.candidates import parse_candidates
from armillary.advisor.replay.comparison import ReplayOptions, replay_candidates
from armillary.advisor.workload.traces import Trace, parse_trace, read_trace
from armillary.errors import BadInput

AT = "2026-04-09T13:05:59Z"
AT_MS = 1_775_739_959_000


def trace(*lines: Any) -> Trace:
    return parse_trace(json.dumps(line).encode() + b"\n" for line in lines)


def one(**line: Any) -> Any:
    (found,) = trace({"ts": AT, **line}).operations
    return found


def test_a_line_is_an_operation_with_what_is_known_of_its_item() -> None:
    found = one(op="create", id="7", tenant="a", at={"city": "Oslo"}, bytes=812, ru=7.4)
    assert (found.kind, found.id, found.body_bytes, found.charge_ru) == ("create", "7", 812, 7.4)
    assert found.fields == {("id",): "7", ("tenant",): "a", ("at", "city"): "Oslo"}


@pytest.mark.parametrize("ts", [AT, AT_MS, AT_MS // 1000, "2026-04-09T15:05:59+02:00"])
def test_moments_in_every_form(ts: Any) -> None:
    assert trace({"ts": ts, "op": "read", "id": "1"}).operations[0].ts_ms == AT_MS


def test_members_of_ours_may_be_fields_too() -> None:
    found = one(op="create", fields={"ts": 5, "/a/b": 1}, text="not of an item")
    assert found.fields == {("ts",): 5, ("a", "b"): 1}


def test_a_query_knows_what_its_filter_fixes() -> None:
    text = "SELECT * FROM c WHERE c.tenant = @t AND c.kind = 'x' AND c.n > 3"
    found = one(op="query", text=text, parameters=[{"name": "@t", "value": "a"}], results=3)
    assert found.fields == {("tenant",): "a", ("kind",): "x"}
    assert found.results == 3
    several = one(op="query", text="SELECT * FROM c WHERE c.t IN ('a', @b)", parameters={"b": "z"})
    assert several.items == ({("t",): "a"}, {("t",): "z"})
    unknown = one(op="query", text="SELECT * FROM c WHERE c.t = @t")
    assert unknown.fields == {}


def test_a_trace_is_sorted_and_lasts_whole_seconds() -> None:
    found = trace(
        {"ts": AT_MS + 2_500, "op": "read", "id": "b"}, {"ts": AT_MS + 700, "op": "read", "id": "a"}
    )
    assert [operation.id for operation in found.operations] == ["a", "b"]
    assert (found.start_ms, found.seconds) == (AT_MS, 3)


def test_what_cannot_be_read_is_counted_with_its_reason() -> None:
    good = json.dumps({"ts": AT, "op": "read", "id": "1"}).encode()
    bad = [
        b"{broken",
        b"[1]",
        b'{"op": "read"}',
        b'{"ts": "2026-04-09", "op": "fly"}',
        b'{"ts": "2026-04-09", "op": "read", "bytes": -1}',
        b'{"ts": "2026-04-09", "op": "query", "text": "SELEC * FROM c"}',
        b'{"ts": "2026-04-09", "op": "batch", "items": [1]}',
        b"\xff\xfe",
    ]
    found = parse_trace([*bad, b"", good])
    assert len(found.operations) == 1
    assert found.lines == len(bad) + 1
    assert sum(found.skipped.values()) == len(bad)
    reasons = " ".join(found.skipped)
    for word in ("not JSON", "no object", "'ts'", "'op'", "'bytes'", "query", "'items'"):
        assert word in reasons


def test_files_may_be_packed_or_missing(tmp_path: Path) -> None:
    line = json.dumps({"ts": AT, "op": "read", "id": "1"}).encode()
    packed = tmp_path / "t.jsonl.gz"
    packed.write_bytes(gzip.compress(line))
    assert len(read_trace(packed).operations) == 1
    with pytest.raises(BadInput, match="can't be read"):
        read_trace(tmp_path / "none.jsonl")


def test_a_trace_is_replayed_under_any_key() -> None:
    lines = [
        {"ts": AT_MS + n, "op": "create", "id": str(n), "tenant": f"t{n % 3}", "ru": 10}
        for n in range(100)
    ]
    found = replay_candidates(
        parse_candidates(["/tenant", "/id"]),
        trace(*lines).played(),
        None,
        ReplayOptions(throughput=400),
    )
    for replayed in found.replays:
        assert replayed.consumed_ru == pytest.approx(1_000)
        assert replayed.throttled > 0
