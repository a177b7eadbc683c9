"""Items in, documents on disk: what is normalised, what is refused, and the bytes of the header."""

import enum
from collections import OrderedDict
from datetime import date
from types import MappingProxyType
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from armillary.encoding.documents import (
    BODY_BYTES,
    DIGEST_SLICE,
    ETAG_SLICE,
    HEADER,
    LSN,
    MOMENT,
    Header,
    body_text,
    check_id,
    check_name,
    finish_json,
    json_offset,
    pack_document,
    pack_header,
    parse_body,
    unpack_header,
)
from armillary.errors import BadInput, FormatMismatch, TooLarge
from armillary.limits import ITEM_BYTES_MAX


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("3.0", 3),
        ("-0.0", 0),
        ("1e3", 1000),
        ("9007199254740991.0", 9007199254740991),
        ("9007199254740992.0", 9007199254740992.0),
        ("9223372036854775807", 9223372036854775807),
        ("9223372036854775808", 9223372036854775808.0),
        ("18446744073709551615", 18446744073709551615.0),
        ("-9223372036854775809", -9223372036854775809.0),
        ("1.5", 1.5),
    ],
)
def test_a_number_has_one_form(sent: str, kept: float) -> None:
    body = parse_body('{"id":"1","n":N,"deep":[{"n":[N]}]}'.replace("N", sent))
    assert repr(body.item["n"]) == repr(body.item["deep"][0]["n"][0]) == repr(kept)
    assert repr(orjson.loads(body.text)) == repr(body.item)


def test_sent_system_properties_are_dropped_at_the_top_only() -> None:
    body = parse_body(
        b'{"_rid":"r","_self":"s","id":"1","_etag":"e","_attachments":"a","_ts":1,"_lsn":2,'
        b'"_other":3,"in":{"_ts":4}}'
    )
    assert body.text == b'{"id":"1","_other":3,"in":{"_ts":4}}'


def test_key_order_stays_and_the_last_duplicate_wins() -> None:
    assert parse_body(b' {"z":1, "id":"1",\n"a":2, "z":3} ').text == b'{"z":3,"id":"1","a":2}'


def test_every_kind_of_source_gives_the_same_body() -> None:
    text = '{"id":"é","n":{"a":[1,2]}}'
    expected = parse_body(text)
    raw = text.encode()
    mapping = MappingProxyType(OrderedDict(id="é", n={"a": (1.0, 2)}))
    for source in (raw, bytearray(raw), memoryview(raw), mapping):
        assert parse_body(source) == expected
    assert expected.text == raw


def test_the_callers_mapping_is_neither_changed_nor_kept() -> None:
    inner = {"n": 1.0}
    source = {"id": "1", "_ts": 5, "list": [inner], "inner": inner}
    body = parse_body(source)
    inner["n"] = 7
    assert source["_ts"] == 5
    assert body.item == {"id": "1", "list": [{"n": 1}], "inner": {"n": 1}}


def test_subclasses_of_json_types_become_plain() -> None:
    body = parse_body({"id": Colour.RED, Colour.RED: [Colour.RED]})
    assert [type(name) for name in body.item] == [str, str]
    assert (type(body.id), type(body.item["red"][0])) == (str, str)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (date(2020, 1, 1), "/a/0/b"),
        ({1, 2}, "/a/0/b"),
        (b"bytes", "/a/0/b"),
        (float("nan"), "/a/0/b"),
        (float("-inf"), "/a/0/b"),
        (10**400, "/a/0/b"),
        ({5: 1}, "/a/0/b"),
    ],
)
def test_a_python_value_without_json_form_is_refused_by_path(value: Any, path: str) -> None:
    with pytest.raises(BadInput, match=path):
        parse_body({"id": "1", "a": [{"b": value}]})


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b'"id"',
        b'{"id":"1","n":NaN}',
        b'{"id":"1","n":Infinity}',
        b'{"id":"1","n":1e400}',
        b'{"id":"1","s":"\\ud800"}',
        b'{"id":"1","\\udc00":1}',
        b'{"id":"\xff"}',
    ],
)
def test_what_is_no_json_object_is_refused(text: bytes) -> None:
    with pytest.raises(BadInput):
        parse_body(text)


def test_a_lone_surrogate_of_a_python_string_is_refused() -> None:
    for item in ({"id": "1", "s": "\ud800"}, {"id": "1", "\ud800": 1}, {"id": "\ud800"}):
        with pytest.raises(BadInput):
            parse_body(item)


def nested(depth: int, opening: str, closing: str) -> str:
    return '{"id":"1","v":' + opening * (depth - 1) + "1" + closing * (depth - 1) + "}"


@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ("[", "]")])
def test_nesting_ends_at_128(opening: str, closing: str) -> None:
    deepest, deeper = nested(128, opening, closing), nested(129, opening, closing)
    assert parse_body(parse_body(deepest).item).text == deepest.encode()
    for source in (deeper, orjson.loads(deeper), nested(100_000, opening, closing)):
        with pytest.raises(BadInput):
            parse_body(source)


def test_a_mapping_that_holds_itself_is_refused() -> None:
    item: dict[str, Any] = {"id": "1"}
    item["self"] = [item]
    with pytest.raises(BadInput, match="deeper than 128"):
        parse_body(item)


def test_the_size_is_that_of_the_compact_text() -> None:
    largest = '{"id":"1","s":"%s"}' % ("x" * (ITEM_BYTES_MAX - len('{"id":"1","s":""}')))
    assert len(parse_body(largest.replace(",", ",   ")).text) == ITEM_BYTES_MAX
    for source in (largest.replace("x", "xx", 1), " " * (5 * ITEM_BYTES_MAX)):
        with pytest.raises(TooLarge):
            parse_body(source)


def test_a_missing_id_has_the_text_clients_know() -> None:
    with pytest.raises(BadInput, match="required properties - 'id; ' - are missing"):
        parse_body(b"{}")


@pytest.mark.parametrize(
    ("item_id", "message"),
    [
        ("", "not empty"),
        (5, "must be a string"),
        (None, "must be a string"),
        (".", "names another resource"),
        ("x" * 1024, "1024 bytes; allowed are 1023"),
        ("é" * 512, "1024 bytes; allowed are 1023"),
    ],
)
def test_an_id_that_breaks_the_rules_is_refused(item_id: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_body({"id": item_id})


@pytest.mark.parametrize("item_id", ["a?b#c", " a", "x" * 1023, "é" * 511, "😀"])
def test_other_ids_are_taken(item_id: str) -> None:
    assert parse_body({"id": item_id}).id == check_id(item_id) == item_id


@pytest.mark.parametrize("name", ["a/b", "a\\b", "a?b", "a#b", "a ", "", 5, None, "x" * 256])
def test_names_of_resources_are_stricter_than_ids(name: Any) -> None:
    assert check_name("x" * 255) == "x" * 255
    with pytest.raises(BadInput):
        check_name(name)


@pytest.mark.parametrize("ttl", [-1, 1, 2147483647])
def test_a_ttl_is_taken(ttl: int) -> None:
    assert parse_body({"id": "1", "ttl": ttl}).ttl == ttl
    assert parse_body({"id": "1", "ttl": float(ttl)}).ttl == ttl
    assert parse_body({"id": "1", "in": {"ttl": "any"}}).ttl is None


@pytest.mark.parametrize("ttl", [0, -2, 2147483648, None, True, "5", 1.5, [], {}])
def test_another_ttl_is_refused(ttl: Any) -> None:
    with pytest.raises(BadInput, match="ttl"):
        parse_body({"id": "1", "ttl": ttl})


SAMPLE = Header(
    lsn=1,
    previous_lsn=2,
    ts=3,
    ttl=-1,
    policy_version=4,
    body_bytes=5,
    etag=bytes(range(16)),
    digest=b"DIGESTED",
    epk=b"\x0a\x0b",
    flags=6,
)


def test_the_header_has_these_bytes_on_disk() -> None:
    assert pack_header(SAMPLE).hex() == (
        "01" "06" "0000000000000001" "0000000000000002" "0000000000000003" "ffffffff"
        "00000004" "00000005" "000102030405060708090a0b0c0d0e0f" "4449474553544544" "02" "0a0b"
    )  # fmt: skip


def test_a_document_comes_apart_as_it_was_put_together() -> None:
    value = pack_document(SAMPLE, b'{"id":"1"}')
    header, offset = unpack_header(value)
    assert header == SAMPLE
    assert value[offset:] == b'{"id":"1"}'
    assert json_offset(value) == offset == HEADER.size + 2


def test_the_quick_readers_see_the_fields_of_the_header() -> None:
    value = pack_document(SAMPLE, b"{}")
    assert MOMENT.unpack_from(value) == (1, 3, -1)
    assert LSN.unpack_from(value) == (1,)
    assert BODY_BYTES.unpack_from(value) == (5,)
    assert value[DIGEST_SLICE] == SAMPLE.digest
    assert value[ETAG_SLICE] == SAMPLE.etag


def test_a_document_of_another_version_is_not_guessed_at() -> None:
    with pytest.raises(FormatMismatch):
        unpack_header(b"\x02" + pack_document(SAMPLE, b"{}")[1:])


def test_the_body_of_a_document_ends_before_its_system_properties() -> None:
    body = b'{"id":"1","a":",\\"_rid\\":\\""}'
    header = replace(SAMPLE, body_bytes=len(body))
    whole = finish_json(body, "RID==", "dbs/x/", "0d00-1", 1700000000)
    assert body_text(pack_document(header, whole)) == body
    # Written by hand, with them elsewhere: all of it, and the reader drops them.
    assert body_text(pack_document(header, b'{"_rid":"R","id":"1"}')) == b'{"_rid":"R","id":"1"}'


def test_system_properties_are_appended_in_the_order_of_the_service() -> None:
    text = finish_json(b'{"id":"1","a":[]}', "RID==", "dbs/x/", "0d00-1", 1700000000)
    item = orjson.loads(text)
    assert list(item) == ["id", "a", "_rid", "_self", "_etag", "_attachments", "_ts"]
    assert item["_etag"] == '"0d00-1"'
    assert (item["_rid"], item["_self"], item["_ts"]) == ("RID==", "dbs/x/", 1700000000)
    assert item["_attachments"] == "attachments/"
