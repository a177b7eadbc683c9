"""Batches as .NET sends them: binary rows in RecordIO frames. Facts: nosql-rest 6.6.

    segment   81, int32 2147473648, 01, int32 10
    record    81, int32 2147473649, int32 length, uint32 crc32 │ row
    row       81, int32 schema, presence bits, fixed slots, variable fields, sparse fields

Integers are little-endian, lengths LEB128. Bytes in, entries out; results in, bytes out.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from armillary.api.nosql.items.entries import Entry, Result
from armillary.encoding.partition_key import parse_key_header
from armillary.errors import BadInput
from armillary.limits import BATCH_OPERATIONS_MAX
from armillary.partition.request_units import rounded

VERSION: Final = 0x81
SEGMENT_SCHEMA: Final = 2147473648
RECORD_SCHEMA: Final = 2147473649
OPERATION_SCHEMA: Final = 2145473648
RESULT_SCHEMA: Final = 2145473649
HEADER: Final = struct.Struct("<Bi")
SEGMENT: Final = struct.pack("<BiBi", VERSION, SEGMENT_SCHEMA, 1, 10)
RECORD: Final = struct.Struct("<BiiI")
FIXED: Final = struct.Struct("<Bii")

OPERATIONS: Final = {0: "create", 1: "patch", 2: "read", 4: "delete", 5: "replace", 20: "upsert"}
DOCUMENT: Final = 2
#: Presence bits of an operation beyond its two fixed slots, in order.
VARIABLE: Final = ("partitionKey", "effectivePartitionKey", "id", "binaryId", "resourceBody")
#: Sparse fields of an operation by path token.
SPARSE: Final = {
    8: "indexingDirective",
    9: "ifMatch",
    10: "ifNoneMatch",
    11: "timeToLiveInSeconds",
    12: "minimalReturnPreference",
}
FALSE, TRUE, INT32, UINT32, FLOAT64, UTF8 = 2, 3, 7, 11, 16, 20
RETRY_AFTER, REQUEST_CHARGE = 5, 6


def is_hybrid_row(body: bytes) -> bool:
    return body[:1] == bytes((VERSION,))


def entries_of_rows(body: bytes) -> list[Entry]:
    try:
        return [_entry(row) for row in _records(body)]
    except (struct.error, IndexError, UnicodeDecodeError, orjson.JSONDecodeError) as error:
        raise BadInput("The body of the batch is not a valid HybridRow stream.") from error


def _records(body: bytes) -> Iterator[bytes]:
    if body[: len(SEGMENT)] != SEGMENT:
        raise BadInput("The body of the batch does not begin with a HybridRow segment.")
    at = len(SEGMENT)
    for _ in range(BATCH_OPERATIONS_MAX + 1):  # one more, so that too many are noticed
        if at >= len(body):
            return
        version, schema, length, crc = RECORD.unpack_from(body, at)
        at += RECORD.size
        row = body[at : at + length]
        intact = length >= 0 and len(row) == length and zlib.crc32(row) == crc
        if (version, schema) != (VERSION, RECORD_SCHEMA) or not intact:
            raise BadInput("A record of the batch is damaged.")
        yield row
        at += length


def _entry(row: bytes) -> Entry:
    version, schema = HEADER.unpack_from(row)
    if (version, schema) != (VERSION, OPERATION_SCHEMA):
        raise BadInput("A record of the batch is not an operation.")
    present, operation, resource = FIXED.unpack_from(row, HEADER.size)
    kind = OPERATIONS.get(operation)
    if kind is None or resource != DOCUMENT:
        raise BadInput(f"Unknown item operation '{operation}' on resource '{resource}'.")
    at = HEADER.size + FIXED.size
    fields: dict[str, Any] = {}
    for bit, name in enumerate(VARIABLE, start=2):
        if present >> bit & 1:
            fields[name], at = _bytes(row, at)
    while at < len(row):
        name, value, at = _sparse(row, at)
        fields[name] = value
    key = fields.get("partitionKey")
    text = fields.get("resourceBody")
    return Entry(
        kind,
        fields["id"].decode() if "id" in fields else "",
        None if text is None else orjson.loads(text),
        None if key is None else parse_key_header(key.decode()),
        fields.get("ifMatch"),
        fields.get("ifNoneMatch"),
        fields.get("minimalReturnPreference") is True,
    )


def _sparse(row: bytes, at: int) -> tuple[str, Any, int]:
    kind = row[at]
    token, at = _varuint(row, at + 1)
    value: Any
    match kind:
        case _ if kind in (FALSE, TRUE):
            value = kind == TRUE
        case _ if kind == INT32:
            (value,) = struct.unpack_from("<i", row, at)
            at += 4
        case _ if kind == UTF8:
            raw, at = _bytes(row, at)
            value = raw.decode()
        case _:
            raise BadInput(f"A field of the batch has the unknown type {kind}.")
    return SPARSE.get(token, str(token)), value, at


def _bytes(row: bytes, at: int) -> tuple[bytes, int]:
    length, at = _varuint(row, at)
    if at + length > len(row):
        raise BadInput("A field of the batch is longer than its record.")
    return row[at : at + length], at + length


def _varuint(row: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = row[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7
        if shift > 35:
            raise BadInput("A length in the batch is too large.")


# --- results ------------------------------------------------------------------------------------


def rows_of_results(results: Sequence[Result]) -> bytes:
    return SEGMENT + b"".join(map(_record, results))


def _record(result: Result) -> bytes:
    row = _row(result)
    return RECORD.pack(VERSION, RECORD_SCHEMA, len(row), zlib.crc32(row)) + row


def _row(result: Result) -> bytes:
    present = 0b11 | (result.etag is not None) << 2 | (result.body is not None) << 3
    parts = [
        HEADER.pack(VERSION, RESULT_SCHEMA),
        FIXED.pack(present, result.status, result.sub_status),
    ]
    for field in (None if result.etag is None else result.etag.encode(), result.body):
        if field is not None:
            parts += (_packed(len(field)), field)
    if result.retry_after_ms:
        parts.append(struct.pack("<BBI", UINT32, RETRY_AFTER, result.retry_after_ms))
    parts.append(struct.pack("<BBd", FLOAT64, REQUEST_CHARGE, rounded(result.charge_ru)))
    return b"".join(parts)


def _packed(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
