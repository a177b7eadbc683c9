"""Definitions and key values: what a container accepts as its key, and which keys are one."""

from enum import IntEnum, StrEnum
from typing import Any

import pytest

from armillary.encoding.partition_key import (
    FEWER,
    IMPRECISE,
    MORE,
    SUPPORTED,
    SYSTEM_KEY,
    KeyValues,
    PartitionKeyDefinition,
    check_key,
    check_unchanged,
    coerce,
    key_of,
    parse_definition,
    parse_key_header,
    same_key,
)
from armillary.errors import BadInput, DbError, NotSupported, PartitionKeyMismatch
from armillary.values import UNDEFINED


def define(*paths: str, **more: Any) -> PartitionKeyDefinition:
    return parse_definition({"paths": list(paths), **more})


V2 = define("/pk", kind="Hash", version=2)
V1 = define("/pk", kind="Hash")
MULTI = define("/t", "/u", "/s", kind="MultiHash", version=2)


# --- definitions ----------------------------------------------------------------------------------


def test_an_absent_version_is_1_and_stays_absent() -> None:
    source = {"paths": ["/pk"], "kind": "Hash"}
    assert parse_definition(source).version == 1
    assert parse_definition(source).to_json() == source


def test_paths_alone_make_a_hash_key_as_the_javascript_client_sends_it() -> None:
    definition = define("/a/b")
    assert (definition.kind, definition.version) == ("Hash", 1)
    assert definition.paths == (("a", "b"),)
    assert definition.to_json() == {"paths": ["/a/b"]}


def test_the_echo_keeps_spelling_and_unknown_properties() -> None:
    source = {"paths": ["/'a b'"], "kind": "Hash", "version": 2, "extra": 1}
    assert parse_definition(source).to_json() == source


def test_the_echo_can_not_be_changed_through_its_copies() -> None:
    source = {"paths": ["/pk"]}
    definition = parse_definition(source)
    source["paths"].append("/other")
    definition.to_json()["paths"].append("/other")
    assert definition.to_json() == {"paths": ["/pk"]}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (None, "must be an object"),
        ({}, "must have 'paths'"),
        ({"paths": []}, "must have 'paths'"),
        ({"paths": "/a"}, "must have 'paths'"),
        ({"paths": [1]}, "must have 'paths'"),
        ({"paths": ["a"]}, "path 'a' could not be accepted"),
        ({"paths": ["/a/*"]}, "The path '/a/*' is invalid"),
        ({"paths": ["/a"], "version": 3}, "version '3' is invalid; it must be 1 or 2"),
        ({"paths": ["/a"], "version": True}, "version 'True' is invalid"),
        ({"paths": ["/a"], "version": "2"}, "version '2' is invalid"),
        ({"paths": ["/a"], "version": None}, "version 'None' is invalid"),
        ({"paths": ["/a"], "kind": "Spatial"}, "kind 'Spatial' is invalid"),
        ({"paths": ["/a"], "kind": None}, "kind 'None' is invalid"),
        ({"paths": ["/a", "/b"], "kind": "Hash", "version": 2}, "Too many partition key paths"),
        ({"paths": ["/a", "/b"], "kind": "Hash", "version": 2}, "use kind 'MultiHash'"),
        (
            {"paths": ["/a", "/b", "/c", "/d"], "kind": "MultiHash", "version": 2},
            "Too many partition key paths: Subpartitioning is only supported for atmost 3 "
            "partition paths",
        ),
        (
            {"paths": ["/a", "/b"], "kind": "MultiHash", "version": 1},
            "Subpartitioning is only supported for Hash V2.",
        ),
        (
            {"paths": ["/a", "/b"], "kind": "MultiHash"},
            "Subpartitioning is only supported for Hash V2.",
        ),
        ({"paths": ["/a", "/'a'"], "kind": "MultiHash", "version": 2}, "same path twice"),
        ({"paths": ["/a"], "systemKey": 1}, "'systemKey' must be true or false"),
        ({"paths": ["/a"], "systemKey": True}, "A system partition key is"),
    ],
)
def test_wrong_definitions_are_refused(source: Any, text: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_definition(source)
    assert text in caught.value.message


def test_the_legacy_range_kind_is_not_supported() -> None:
    with pytest.raises(NotSupported, match="'Range' is a legacy form"):
        define("/a", kind="Range")


def test_the_system_key_reads_back_as_the_service_shows_it() -> None:
    shown = {"paths": ["/_partitionKey"], "kind": "Hash", "systemKey": True}
    assert SYSTEM_KEY.to_json() == shown
    assert parse_definition(shown) == SYSTEM_KEY
    assert SYSTEM_KEY.system_key
    assert SYSTEM_KEY.version == 1


def test_definitions_are_equal_when_they_mean_the_same() -> None:
    assert define("/pk") == define("/'pk'", kind="Hash", version=1)
    assert hash(define("/pk")) == hash(define("/'pk'", version=1))
    check_unchanged(define("/pk"), define("/pk", version=1))


@pytest.mark.parametrize(
    "other", [V2, define("/PK"), define("/pk/x"), define("/pk", kind="MultiHash", version=2)]
)
def test_a_definition_can_not_change(other: PartitionKeyDefinition) -> None:
    with pytest.raises(BadInput, match="partition key cannot be changed"):
        check_unchanged(V1, other)


# --- the key of an item ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "key"),
    [
        ({"pk": "a"}, ("a",)),
        ({"pk": ""}, ("",)),
        ({"pk": 5}, (5,)),
        ({"pk": 1.5}, (1.5,)),
        ({"pk": True}, (True,)),
        ({"pk": None}, (None,)),
        ({}, (UNDEFINED,)),
        ({"PK": "a"}, (UNDEFINED,)),
    ],
)
@pytest.mark.parametrize("definition", [V1, V2])
def test_the_key_of_an_item(
    item: dict[str, Any], key: KeyValues, definition: PartitionKeyDefinition
) -> None:
    assert key_of(item, definition) == key


def test_nested_and_quoted_paths_and_the_id() -> None:
    item = {"id": "7", "address": {"zip code": "8001", "x/y": {"z": 2}}}
    assert key_of(item, define("/id", version=2)) == ("7",)
    assert key_of(item, define('/address/"zip code"', version=2)) == ("8001",)
    assert key_of(item, define("/address/'x/y'/z", version=2)) == (2,)
    assert key_of(item, define("/address/missing/z", version=2)) == (UNDEFINED,)
    assert key_of(item, define("/id/deeper", version=2)) == (UNDEFINED,)


def test_a_hierarchical_key_in_path_order_with_missing_levels_undefined() -> None:
    assert key_of({"s": 1, "t": "a", "u": None}, MULTI) == ("a", None, 1)
    assert key_of({"t": "a"}, MULTI) == ("a", UNDEFINED, UNDEFINED)


@pytest.mark.parametrize("value", [[], [1]])
def test_an_array_as_key_is_refused(value: Any) -> None:
    with pytest.raises(BadInput) as caught:
        key_of({"a": {"pk": value}}, define("/a/pk"))
    assert (
        caught.value.message == f"Partition key '/a/pk' is invalid: it holds an array. {SUPPORTED}"
    )


@pytest.mark.parametrize("value", [{}, {"pk": "deeper"}])
def test_an_object_as_key_is_undefined_as_the_sdks_extract_it(value: Any) -> None:
    assert key_of({"a": {"pk": value}}, define("/a/pk")) == (UNDEFINED,)


def test_items_of_a_fixed_container_have_the_empty_key_until_they_carry_one() -> None:
    assert key_of({"id": "old"}, SYSTEM_KEY) == ()
    assert key_of({"id": "new", "_partitionKey": "a"}, SYSTEM_KEY) == ("a",)
    assert key_of({"id": "new", "_partitionKey": None}, SYSTEM_KEY) == (None,)


# --- checks ---------------------------------------------------------------------------------------


def refusal(values: KeyValues, definition: PartitionKeyDefinition, **more: bool) -> DbError:
    with pytest.raises(BadInput) as caught:
        check_key(values, definition, **more)
    return caught.value


def test_too_many_components() -> None:
    for values, definition in ((("a", "b"), V2), (("a",) * 4, MULTI), (("a", "b"), SYSTEM_KEY)):
        error = refusal(values, definition, prefix_allowed=True)
        assert (error.message, error.sub_status) == (MORE, 0)


def test_a_partial_hierarchical_key_is_a_mismatch_unless_a_prefix_will_do() -> None:
    error = refusal(("a", "b"), MULTI)
    assert type(error) is PartitionKeyMismatch
    assert (error.message, error.sub_status) == (FEWER, 1001)
    assert check_key(("a", "b"), MULTI, prefix_allowed=True) == ("a", "b")
    assert check_key((), MULTI, prefix_allowed=True) == ()


def test_the_empty_key_addresses_only_fixed_containers() -> None:
    for definition in (V1, V2, MULTI):
        error = refusal((), definition)
        assert (error.message, error.sub_status) == (FEWER, 0)
    assert check_key((), SYSTEM_KEY) == ()
    assert check_key((UNDEFINED,), SYSTEM_KEY) == ()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_must_be_finite(number: float) -> None:
    assert "numbers are finite" in refusal((number,), V2).message


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**63 - 1, 10**400])
def test_integers_that_lose_precision_are_refused(number: int) -> None:
    assert refusal((number,), V2).message == IMPRECISE
    with pytest.raises(BadInput, match="loss of precision"):
        key_of({"pk": number}, V1)


def test_large_integers_that_are_doubles_are_keys() -> None:
    assert check_key((2**53,), V2) == (2**53,)
    (value,) = check_key((2**64,), V2)
    assert value == 2.0**64
    assert type(value) is float  # 64-bit encoders could not store the integer


@pytest.mark.parametrize("value", [b"x", {"a": 1}, [], object(), {1, 2}, 1j])
def test_other_types_are_refused(value: Any) -> None:
    assert refusal((value,), V2).message.endswith(SUPPORTED)
    with pytest.raises(BadInput, match="Unsupported PartitionKey value component"):
        coerce([value])


def test_half_a_surrogate_pair_is_refused() -> None:
    assert "surrogate" in refusal(("\ud800",), V2).message
    assert "surrogate" in refusal(("\ud800",), V1).message


@pytest.mark.parametrize("text", ["a" * 2048, "é" * 1024, "€" * 682 + "ab", "😀" * 512])
def test_a_key_may_have_2048_bytes(text: str) -> None:
    assert check_key((text,), V2) == (text,)
    message = refusal((text + "a",), V2).message
    assert message == "The partition key value has 2049 bytes; at most 2048 bytes are allowed."


def test_the_levels_of_a_hierarchical_key_share_the_limit() -> None:
    assert check_key(("a" * 1024, "b" * 1000, "c" * 24), MULTI)
    assert "2049 bytes" in refusal(("a" * 1024, "b" * 1000, "c" * 25), MULTI).message


def test_v1_has_no_limit_because_it_hashes_a_prefix() -> None:
    assert check_key(("a" * 5000,), V1) == ("a" * 5000,)


# --- equality -------------------------------------------------------------------------------------

DISTINCT: list[KeyValues] = [
    (), (None,), (UNDEFINED,), (True,), (False,), (0,), (1,), ("",), ("1",), (2018,), ("2018",),
    ("a",), ("A",), ("a", "b"), ("b", "a"), ("a", None), ("a", UNDEFINED),
]  # fmt: skip


def test_keys_of_different_type_or_value_are_different() -> None:
    for i, left in enumerate(DISTINCT):
        for j, right in enumerate(DISTINCT):
            assert same_key(left, right) is (i == j), (left, right)


def test_numbers_compare_as_doubles() -> None:
    assert same_key((5,), (5.0,))
    assert same_key((0,), (-0.0,))
    assert same_key((2**64,), (2.0**64,))
    assert not same_key((5,), (5.000000000000001,))


# --- the header, and what Python callers pass -----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('["a"]', ("a",)),
        ("[1.5]", (1.5,)),
        ("[1]", (1,)),
        ("[1e300]", (1e300,)),
        ("[true]", (True,)),
        ("[null]", (None,)),
        ("[{}]", (UNDEFINED,)),
        ("[]", ()),
        (' [ "a" ] ', ("a",)),
        ('["t","u",1]', ("t", "u", 1)),
        ('["\\u041f\\u0440"]', ("Пр",)),
        ('["\\ud83d\\ude00"]', ("😀",)),
        ("[18446744073709551616]", (2**64,)),
    ],
)
def test_the_header(text: str, values: KeyValues) -> None:
    parsed = parse_key_header(text)
    assert parsed == values
    assert list(map(type, parsed)) == list(map(type, values))


@pytest.mark.parametrize(
    "text",
    ["", "a", '"a"', "1", "null", "{}", "[", '["a"', "[NaN]", "[1e999]", '["\\ud800"]', "a]"],
)
def test_a_header_that_is_no_json_array(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_key_header(text)
    assert caught.value.message == f"Cannot deserialize PartitionKey value '{text}'"


@pytest.mark.parametrize(
    ("text", "shown"), [('[{"a":1}]', '{"a": 1}'), ("[[]]", "[]"), ('["a",["b"]]', '["b"]')]
)
def test_a_header_with_objects_or_arrays(text: str, shown: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_key_header(text)
    expected = f"Unsupported PartitionKey value component '{shown}'. {SUPPORTED}"
    assert caught.value.message == expected


def test_an_integer_too_large_for_64_bits_is_still_seen_to_lose_precision() -> None:
    values = parse_key_header("[12345678901234567890123]")
    assert refusal(values, V2).message == IMPRECISE


def test_absurdly_nested_headers_are_input_errors() -> None:
    with pytest.raises(BadInput):
        parse_key_header("[1e300," + "[" * 900 + "]" * 900 + "]")
    with pytest.raises(BadInput):
        parse_key_header("[" * 100_000)


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


@pytest.mark.parametrize(
    ("value", "values"),
    [
        ("a", ("a",)),
        (5, (5,)),
        (None, (None,)),
        (False, (False,)),
        (UNDEFINED, (UNDEFINED,)),
        ({}, (UNDEFINED,)),
        (["a", 1], ("a", 1)),
        (("a",), ("a",)),
        ([], ()),
        (Colour.RED, ("red",)),
        ([Level.LOW], (1,)),
    ],
)
def test_what_python_callers_pass(value: Any, values: KeyValues) -> None:
    result = coerce(value)
    assert result == values
    assert list(map(type, result)) == list(map(type, values))
