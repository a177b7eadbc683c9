"""Every published EPK. One wrong bit, and clients that compute EPKs look in the wrong partition."""

from bisect import bisect_right

import mmh3
import pytest

from armillary.encoding.hashing import (
    DIGEST_BYTES,
    EPK_MAX,
    EPK_MIN,
    epk,
    epk_hex,
    epk_key,
    epk_key_bound,
    even_bounds,
    key_digest,
    key_identity,
    locate,
    parse_epk_hex,
    position,
    prefix_range,
    split_epk_key,
)
from armillary.encoding.partition_key import (
    SYSTEM_KEY,
    KeyValues,
    PartitionKeyDefinition,
    parse_definition,
)
from armillary.errors import BadInput
from armillary.values import UNDEFINED

V2 = parse_definition({"paths": ["/pk"], "kind": "Hash", "version": 2})
V1 = parse_definition({"paths": ["/pk"], "kind": "Hash"})
MULTI = parse_definition({"paths": ["/t", "/u", "/s"], "kind": "MultiHash", "version": 2})

# nosql-rest 4.4, then partitioning 5.1
VECTORS_V2: list[tuple[KeyValues, str]] = [
    (("",), "32E9366E637A71B4E710384B2F4970A0"),
    (("partitionKey",), "013AEFCF77FA271571CF665A58C933F1"),
    (("redmond",), "22E342F38A486A088463DFF7838A5963"),
    (("asdf",), "208BF1D598F5B63AD5520F04FE58C5E8"),
    (("a" * 1024,), "332BDF5512AE49615F32C7D98C2DB86C"),
    ((None,), "378867E4430E67857ACE5C908374FE16"),
    ((UNDEFINED,), "11622DAA78F835834610ABE56EFF5CB5"),
    ((True,), "0E711127C5B5A8E4726AC6DD306A3E59"),
    ((False,), "2FE1BE91E90A3439635E0E9E37361EF2"),
    ((0,), "155B95BEDAC4B1E9EC1CDC9BB0DDDE58"),
    ((1,), "20CD98B339BA78A5D0CF6953B87070B0"),
    ((-1,), "19938E7A936C1C5B9E3AE842BBC16839"),
    ((-128,), "01DAEDABF913540367FE219B2AD06148"),
    ((127,), "0C507ACAC853ECA7977BF4CEFB562A25"),
    ((2147483647,), "2D9349D64712AEB5EB1406E2F0BE2725"),
    ((5.0,), "19C08621B135968252FB34B4CF66F811"),
    ((5.12312419050912359123,), "0EF2E2D82460884AF0F6440BE4F726A8"),
    ((5.0, "redmond", True, None), "3032DECBE2AB1768D8E0AEDEA35881DF"),
    (("abc-123-2018",), "31850F1537EA6E0808815BF860BA5C6A"),
    (("2018-08-09.1",), "3D371B52F57CAE29C4D3844FE29CA73B"),
    (("LAX",), "0B2184B84784266FFC767BEE68D867A0"),
    (("AMS",), "110EDB72AFD3F01551FB9C36AE2D9FCC"),
    (("MEL",), "39FB39EC2C5BFAA47974FACDC363D10B"),
    ((2018,), "0080753213B5D91B72B0B0BC1987902F"),
    (("2018",), "1498E51DE412990F97676BFB7A348784"),
    ((5,), "19C08621B135968252FB34B4CF66F811"),
]

VECTORS_V1: list[tuple[KeyValues, str]] = [
    (("",), "05C1CF33970FF80800"),
    (("partitionKey",), "05C1E1B3D9CD2608716273756A756A706F4C667A00"),
    (("redmond",), "05C1EFE313830C087366656E706F6500"),
    (("asdf",), "05C1E7035DAF84086274656700"),
    ((None,), "05C1ED45D7475601"),
    ((UNDEFINED,), "05C1D529E345DC00"),
    ((True,), "05C1D7C5A903D803"),
    ((False,), "05C1DB857D857C02"),
    ((0,), "05C1BF6DA11560058000"),
    ((1,), "05C1ED172B6B2605BFF0"),
    ((-128,), "05C1D73349F54C053FA0"),
    ((127,), "05C1DD539DDFCC05C05FE0"),
    ((2147483647,), "05C1E1F503DFB205C1DFFFFFFFFC"),
    (
        (2, True, False, None, UNDEFINED, "Привет!"),
        "05C1D19581B37C05C0000302010008D1A0D281D1B9D1B3D1B6D2832200",
    ),
]

VECTORS_MULTI: list[tuple[KeyValues, str]] = [
    (("a", "b"), "3A5381E1114EB8D3FCC90795045B49B7195644569A78B1E22D200348AF9416CE"),
    (("x", "y"), "11E3F358618BE9AA5BAFF4C7C74F07161880C5B898FDA99DA53B2ABCC61E625C"),
    (
        ("t1", "u1", "s1"),
        "3D48BB14DA9D090D22112C96695028B6"
        "2A947C94F6E254B945CEBC3196C9897C"
        "2924A879AFFF52A411F93F1A83532751",
    ),
]


@pytest.mark.parametrize(("values", "expected"), VECTORS_V2)
def test_v2(values: KeyValues, expected: str) -> None:
    assert epk_hex(values, V2) == expected
    assert locate(values, V2) == (bytes.fromhex(expected), key_digest(values, V2))


@pytest.mark.parametrize(("values", "expected"), VECTORS_V1)
def test_v1(values: KeyValues, expected: str) -> None:
    assert epk_hex(values, V1) == expected
    assert locate(values, V1) == (bytes.fromhex(expected), key_digest(values, V1))


@pytest.mark.parametrize(("values", "expected"), VECTORS_MULTI)
def test_multi_hash(values: KeyValues, expected: str) -> None:
    assert epk_hex(values, MULTI) == expected
    assert locate(values, MULTI) == (bytes.fromhex(expected), key_digest(values, MULTI))


@pytest.mark.parametrize(("values", "expected"), [v for v in VECTORS_V2 if len(v[0]) == 1])
def test_multi_hash_is_one_v2_hash_per_level(values: KeyValues, expected: str) -> None:
    assert epk_hex(values, MULTI) == expected
    assert epk_hex((*values, "b"), MULTI) == expected + "195644569A78B1E22D200348AF9416CE"


def test_the_string_terminator_is_hashed() -> None:
    """The trap of nosql-rest 4.4: .NET's baseline file has EPKs of strings without it."""
    without = mmh3.mmh3_x64_128_uintdigest(b"\x08redmond") & (2**126 - 1)
    assert epk(("redmond",), V2) != without.to_bytes(16, "big")


@pytest.mark.parametrize(
    ("number", "tail"),
    [
        (1, "05BFF0"),
        (-1, "054010"),
        (2**32, "05C1F0"),
        (0.1, "05BFB9CD673399CD6734"),
    ],
)
def test_v1_numbers_are_full_doubles(number: float, tail: str) -> None:
    """The traps of nosql-rest 4.4: Python is wrong beyond uint32, JavaScript drops zero bytes."""
    assert epk_hex((number,), V1).endswith(tail)


@pytest.mark.parametrize("definition", [V1, V2, MULTI])
def test_every_type_has_its_own_place(definition: PartitionKeyDefinition) -> None:
    keys: list[KeyValues] = [(None,), (UNDEFINED,), (True,), (False,), (0,), (1,), ("",), ("1",)]
    for hashed in (epk, key_identity, key_digest):
        assert len({hashed(key, definition) for key in keys}) == len(keys)


@pytest.mark.parametrize("definition", [V1, V2, MULTI])
@pytest.mark.parametrize(("left", "right"), [(5, 5.0), (0, -0.0), (2**64, 2.0**64)])
def test_equal_numbers_have_one_place(
    definition: PartitionKeyDefinition, left: float, right: float
) -> None:
    assert locate((left,), definition) == locate((right,), definition)


def test_two_keys_may_share_an_epk_but_not_a_digest() -> None:
    """Design 4: routing alone would let one tenant read the other's items."""
    left, right = ("contoso-tenant10123456789abcdef",), ("GroARJywSJRpRm2eW04(For9mdyoln)",)
    assert epk(left, V2) == epk(right, V2)
    assert key_identity(left, V2) != key_identity(right, V2)
    assert key_digest(left, V2) != key_digest(right, V2)
    assert len(key_digest(left, V2)) == DIGEST_BYTES


# --- V1 cuts --------------------------------------------------------------------------------------


def test_v1_keys_equal_in_100_characters_are_one_partition() -> None:
    left, right = ("a" * 100 + "left",), ("a" * 100 + "right",)
    assert locate(left, V1) == locate(right, V1) == locate(("a" * 100,), V1)
    assert key_identity(left, V1) == key_identity(right, V1)
    assert locate(left, V2) != locate(right, V2)
    assert locate(("a" * 99 + "b",), V1) != locate(("a" * 99 + "c",), V1)


def test_v1_counts_utf16_units_and_never_cuts_a_character() -> None:
    assert locate(("😀" * 50 + "x",), V1) == locate(("😀" * 50,), V1)
    assert locate(("😀" * 49 + "xy",), V1) != locate(("😀" * 49 + "xz",), V1)
    # The emoji would be units 100 and 101: it is dropped whole.
    assert locate(("a" * 99 + "😀",), V1) == locate(("a" * 99,), V1)


def test_v1_strings_of_more_than_100_bytes_end_without_terminator() -> None:
    plus_one = bytes(min(byte + 1, 255) for byte in range(256))
    assert epk(("a" * 100,), V1).endswith(b"\x08" + b"b" * 100 + b"\x00")
    assert epk(("é" * 100,), V1).endswith(b"\x08" + ("é" * 51).encode()[:101].translate(plus_one))


# --- fixed containers, ranges ---------------------------------------------------------------------


def test_the_empty_key_lives_at_the_minimum() -> None:
    assert epk((), SYSTEM_KEY) == EPK_MIN == b""
    assert locate((), SYSTEM_KEY) == (b"", key_digest((), SYSTEM_KEY))
    assert epk_key(b"", SYSTEM_KEY) == b"\x00\x01"
    assert split_epk_key(b"\x21\x00\x01id", 1, SYSTEM_KEY) == (b"", 3)
    assert epk_hex(("a",), SYSTEM_KEY) == epk_hex(("a",), V1)


def test_even_bounds_of_the_reference() -> None:
    half = ["1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"]
    quarters = [
        "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
        "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE",
        "2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFD",
    ]
    for definition in (V2, MULTI):
        assert [b.hex().upper() for b in even_bounds(definition, 1)] == []
        assert [b.hex().upper() for b in even_bounds(definition, 2)] == half
        assert [b.hex().upper() for b in even_bounds(definition, 4)] == quarters
    assert [b.hex().upper() for b in even_bounds(V1, 2)] == ["05C1DFFFFFFFFC"]
    assert [b.hex().upper() for b in even_bounds(V1, 4)] == [
        "05C1CFFFFFFFF8",
        "05C1DFFFFFFFF8",
        "05C1E7FFFFFFFA",
    ]


def test_many_bounds_ascend_inside_the_ring() -> None:
    for definition in (V1, V2, MULTI):
        bounds = even_bounds(definition, 10_000)
        assert len(bounds) == 9_999
        assert bounds == sorted(set(bounds))
        assert EPK_MIN < bounds[0] < bounds[-1] < EPK_MAX


def test_a_prefix_covers_its_keys_and_no_others() -> None:
    start, end = prefix_range(("t1",), MULTI)
    assert (start.hex().upper(), end) == ("3D48BB14DA9D090D22112C96695028B6", start + b"\xff")
    assert start <= epk(("t1", "u1", "s1"), MULTI) < end
    assert not start <= epk(("t2", "u1", "s1"), MULTI) < end
    assert prefix_range((), MULTI) == (EPK_MIN, EPK_MAX)


def test_bounds_from_clients_come_in_either_case() -> None:
    assert parse_epk_hex("") == EPK_MIN
    assert parse_epk_hex("FF") == EPK_MAX
    assert parse_epk_hex("05c1") == parse_epk_hex("05C1") == b"\x05\xc1"
    for text in ("0", "xy", "05C"):
        with pytest.raises(BadInput, match="not hexadecimal"):
            parse_epk_hex(text)


def test_the_forms_inside_keys_byte_for_byte() -> None:
    place = epk(("redmond",), V2)
    assert epk_key(place, V2) == epk_key_bound(place, V2) == place
    assert split_epk_key(b"\x21" + place + b"id", 1, V2) == (place, 17)

    place = epk(("t1", "u1", "s1"), MULTI)
    assert split_epk_key(b"\x21" + place + b"id", 1, MULTI) == (place, 49)

    place = bytes.fromhex("05C1BF6DA11560058000")  # the number 0 under V1
    key = epk_key(place, V1)
    assert key.hex() == "05c1bf6da115600580" + "00ff" + "0001"
    assert epk_key_bound(place, V1).hex() == "05c1bf6da115600580" + "00ff"
    assert split_epk_key(b"\x21" + key + b"\x01id", 1, V1) == (place, 1 + len(key))


@pytest.mark.parametrize("definition", [V1, V2])
def test_even_bounds_lie_at_even_places_of_the_ring(definition: PartitionKeyDefinition) -> None:
    """Without it a picture shows ranges of a length that they do not have."""
    edges = [b"", *even_bounds(definition, 8), b"\xff"]
    places = [position(edge, definition) for edge in edges]
    assert places == pytest.approx([n / 8 for n in range(9)], abs=1e-6)
    at = position(epk(("ada",), definition), definition)
    owner = bisect_right(edges, epk(("ada",), definition)) - 1
    assert places[owner] <= at <= places[owner + 1]
