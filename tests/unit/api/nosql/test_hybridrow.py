"""Batches as .NET sends them, byte by byte. Facts: nosql-rest 6.6."""

import json
import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.nosql import Api, pk

from armillary.api.nosql.items.entries import Entry, Result
from armillary.api.nosql.items.hybridrow import SEGMENT, entries_of_rows, rows_of_results
from armillary.errors import BadInput

BATCH = {"x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true"}
DOCS = "/dbs/d/colls/c/docs"


def varuint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def record(row: bytes) -> bytes:
    return struct.pack("<BiiI", 0x81, 2147473649, len(row), zlib.crc32(row)) + row


def operation(
    kind: int,
    *,
    key: str | None = None,
    item_id: str | None = None,
    body: object = None,
    sparse: bytes = b"",
) -> bytes:
    """A row as the schema of the reference lays it out."""
    fields = {2: key, 4: item_id, 6: None if body is None else json.dumps(body)}
    present = 3 | sum(1 << bit for bit, value in fields.items() if value is not None)
    row = struct.pack("<BiBii", 0x81, 2145473648, present, kind, 2)
    for value in fields.values():
        if value is not None:
            row += varuint(len(value.encode())) + value.encode()
    return record(row + sparse)


def text_field(token: int, value: str) -> bytes:
    return bytes([20, token]) + varuint(len(value)) + value.encode()


def test_the_segment_is_the_published_one() -> None:
    assert SEGMENT.hex() == "81f0d8ff7f010a000000"


def test_operations_are_read() -> None:
    rows = (
        operation(0, key='["x"]', body={"id": "1", "pk": "x"}),
        operation(2, item_id="1", sparse=text_field(10, '"e"') + bytes([3, 12])),
        operation(5, item_id="1", body={"id": "1"}, sparse=text_field(9, '"m"') + b"\x02\x0c"),
        operation(4, item_id="ä" * 100, sparse=bytes([7, 11, 5, 0, 0, 0])),
    )
    assert entries_of_rows(SEGMENT + b"".join(rows)) == [
        Entry("create", body={"id": "1", "pk": "x"}, key=("x",)),
        Entry("read", "1", if_none_match='"e"', minimal=True),
        Entry("replace", "1", {"id": "1"}, if_match='"m"'),
        Entry("delete", "ä" * 100),
    ]


@given(st.data())
def test_a_damaged_stream_is_refused_or_read(data: st.DataObject) -> None:
    """Never anything but BadInput: the bytes are a stranger's."""
    good = SEGMENT + operation(0, key='["x"]', body={"id": "1"}) + operation(4, item_id="1")
    at = data.draw(st.integers(0, len(good) - 1))
    broken = good[:at] + data.draw(st.binary(max_size=4)) + good[at + 1 :]
    with suppress(BadInput):
        entries_of_rows(broken)


def test_results_have_their_layout() -> None:
    made = rows_of_results(
        [Result(201, 0, 6.29, '"e"', b"{}"), Result(429, 3200, retry_after_ms=7)]
    )
    first = struct.pack("<BiBii", 0x81, 2145473649, 0b1111, 201, 0) + b'\x03"e"\x02{}'
    first += bytes([16, 6]) + struct.pack("<d", 6.29)
    second = struct.pack("<BiBii", 0x81, 2145473649, 0b11, 429, 3200)
    second += bytes([11, 5]) + struct.pack("<I", 7) + bytes([16, 6]) + struct.pack("<d", 0.0)
    assert made == SEGMENT + record(first) + record(second)


def statuses(body: bytes) -> list[tuple[int, int]]:
    assert body.startswith(SEGMENT)
    at, found = len(SEGMENT), []
    while at < len(body):
        _, _, length, crc = struct.unpack_from("<BiiI", body, at)
        row = body[at + 13 : at + 13 + length]
        assert zlib.crc32(row) == crc
        found.append(struct.unpack_from("<ii", row, 6))
        at += 13 + length
    return found


def test_a_binary_batch_is_answered_in_kind(api: Api) -> None:
    rows = [operation(0, body={"id": n, "pk": "x"}) for n in "ab"] + [operation(2, item_id="a")]
    response = api.ask("POST", DOCS, SEGMENT + b"".join(rows), BATCH | pk("x"))
    assert response.status == 200
    assert statuses(response.body) == [(201, 0), (201, 0), (200, 0)]
    again = api.ask("POST", DOCS, SEGMENT + b"".join(rows), BATCH | pk("x"))
    assert again.status == 207
    assert statuses(again.body) == [(409, 0), (424, 0), (424, 0)]


def test_a_binary_bulk_is_each_for_itself(api: Api) -> None:
    rows = [operation(0, key=f'["{n}"]', body={"id": n, "pk": n}) for n in "aab"]
    headers = {
        "x-ms-cosmos-is-batch-request": "True",
        "x-ms-cosmos-batch-continue-on-error": "True",
        "x-ms-documentdb-partitionkeyrangeid": "0",
    }
    response = api.ask("POST", DOCS, SEGMENT + b"".join(rows), headers)
    assert response.status == 207
    assert statuses(response.body) == [(201, 0), (409, 0), (201, 0)]


@pytest.mark.parametrize("body", [b"\x81", SEGMENT[:-1], SEGMENT + b"\x81", SEGMENT])
def test_no_operations_is_400(api: Api, body: bytes) -> None:
    assert api.ask("POST", DOCS, body, BATCH | pk("x")).status == 400
