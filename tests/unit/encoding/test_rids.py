"""Resource ids: SDKs decode them to find parents and to order items."""

import pytest

from armillary.encoding import rids
from armillary.encoding.rids import Rid, parse_rid
from armillary.errors import BadInput

DATABASE = "0UFmAA=="
CONTAINER = "0UFmAMBvPOg="


@pytest.mark.parametrize(
    ("text", "rid"),
    [
        (DATABASE, Rid("database", "", 0x006641D1)),
        (CONTAINER, Rid("container", DATABASE, 0x406F3CE8)),
        ("Sl8fAG8cXgA=", Rid("user", "Sl8fAA==", 0x6F1C5E00)),
        (
            "Sl8fAG8cXgBn6Ju2GqNsAA==",
            Rid("permission", "Sl8fAG8cXgA=", 0x006CA31AB69BE867),
        ),
        ("0UFmAMBvPOiIhB4AAAAAAA==", Rid("item", CONTAINER, 2_000_008)),
        ("0UFmAMBvPOgCAAAAAAAAUA==", Rid("pkrange", CONTAINER, 2)),
        ("hLEEAI1YjgcBAAAAAAAAgA==", Rid("sproc", "hLEEAI1Yjgc=", 1)),
        ("Hu+t", Rid("offer", "", 0xADEF1E)),
    ],
)
def test_the_examples_of_the_reference(text: str, rid: Rid) -> None:
    assert parse_rid(text) == rid


def test_each_function_makes_the_example() -> None:
    assert rids.database_rid(0x006641D1) == DATABASE
    assert rids.container_rid(DATABASE, 0x406F3CE8) == CONTAINER
    assert rids.user_rid("Sl8fAA==", 0x6F1C5E00) == "Sl8fAG8cXgA="
    permission = rids.permission_rid("Sl8fAG8cXgA=", 0x006CA31AB69BE867)
    assert permission == "Sl8fAG8cXgBn6Ju2GqNsAA=="
    assert rids.item_rid(CONTAINER, 2_000_008) == "0UFmAMBvPOiIhB4AAAAAAA=="
    assert rids.pkrange_rid(CONTAINER, 2) == "0UFmAMBvPOgCAAAAAAAAUA=="
    assert rids.sproc_rid("hLEEAI1Yjgc=", 1) == "hLEEAI1YjgcBAAAAAAAAgA=="
    assert rids.offer_rid(0xADEF1E) == "Hu+t"


def test_the_type_is_the_high_nibble_of_byte_15() -> None:
    made = {
        0x0: rids.item_rid(CONTAINER, 9),
        0x4: rids.conflict_rid(CONTAINER, 9),
        0x5: rids.pkrange_rid(CONTAINER, 9),
        0x6: rids.udf_rid(CONTAINER, 9),
        0x7: rids.trigger_rid(CONTAINER, 9),
        0x8: rids.sproc_rid(CONTAINER, 9),
    }
    for nibble, text in made.items():
        data = rids.rid_bytes(text)
        assert (len(data), data[15] >> 4, data[8]) == (16, nibble, 9)


def test_the_top_bit_of_byte_4_tells_containers_from_users() -> None:
    assert rids.rid_bytes(rids.container_rid(DATABASE, 1))[4] & 0x80
    assert not rids.rid_bytes(rids.user_rid(DATABASE, 2**31 - 1))[4] & 0x80


def test_what_was_made_reads_back() -> None:
    item = rids.item_rid(CONTAINER, 2**60 - 1)
    assert parse_rid(item) == Rid("item", CONTAINER, 2**60 - 1)
    assert parse_rid(rids.attachment_rid(item, 3)) == Rid("attachment", item, 3)
    key = rids.client_encryption_key_rid(DATABASE, 7)
    assert parse_rid(key) == Rid("clientencryptionkey", DATABASE, 7)
    made: list[tuple[str, rids.Kind]] = [
        (rids.conflict_rid(CONTAINER, 2**60 - 1), "conflict"),
        (rids.udf_rid(CONTAINER, 2**60 - 1), "udf"),
        (rids.trigger_rid(CONTAINER, 2**60 - 1), "trigger"),
    ]
    for text, kind in made:
        assert parse_rid(text) == Rid(kind, CONTAINER, 2**60 - 1)


def test_rids_are_safe_in_a_path() -> None:
    container = rids.container_rid(rids.database_rid(2**32 - 1), 2**31 - 1)
    assert container == "----------8="
    assert parse_rid(container).number == 2**31 - 1


def test_an_item_rid_from_bytes_and_from_text_agree() -> None:
    assert rids.item_rid(rids.rid_bytes(CONTAINER), 5) == rids.item_rid(CONTAINER, 5)


def test_item_ordinals_ascend_as_clients_read_them() -> None:
    """.NET breaks ORDER BY ties by the little-endian ordinal in bytes 8 to 15."""
    ordinals = [0, 1, 255, 256, 2**32, 2**60 - 1]
    read = [
        int.from_bytes(rids.rid_bytes(rids.item_rid(CONTAINER, o))[8:], "little") for o in ordinals
    ]
    assert read == ordinals


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A",
        "AAAA=",
        "0UFmAB==",  # spare bits set: the bytes of 0UFmAA==
        "////////-/8=",
        "mydatabase",
        "0UFmAA",
        "0UFmAA==x",
        "0UFm AA==",
        "ü",
        "AAAAAAAAAAAA",  # nine bytes
        "0UFmAMBvPOgCAAAAAAAA8A==",  # type F
    ],
)
def test_other_texts_are_no_rids(text: str) -> None:
    with pytest.raises(BadInput, match="The resource id"):
        parse_rid(text)


def test_a_parent_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(BadInput):
        rids.container_rid(CONTAINER, 1)
    with pytest.raises(BadInput):
        rids.item_rid(DATABASE, 1)


def test_numbers_that_do_not_fit_are_bugs_not_wrapped() -> None:
    with pytest.raises(ValueError, match="more than 60 bits"):
        rids.item_rid(CONTAINER, 2**60)
    with pytest.raises(ValueError, match="31 bits"):
        rids.container_rid(DATABASE, 2**31)
    with pytest.raises(ValueError, match="24 bits"):
        rids.offer_rid(2**24)
    with pytest.raises(ValueError, match="32 bits"):
        rids.database_rid(-1)
    with pytest.raises(ValueError, match="more than 60 bits"):
        rids.item_rid(CONTAINER, -1)
    with pytest.raises(ValueError, match="from 1"):
        rids.user_rid(DATABASE, 0)
