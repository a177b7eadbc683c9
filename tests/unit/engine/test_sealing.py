"""Checksums on rows: what was written comes back, and every changed bit is noticed."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.engine.sealing import CRC_MARK, cut_rows, cut_sealed, seal, unseal, unseal_many
from armillary.errors import DataDamaged

heads = st.integers(0, 0x3F)
values = st.builds(
    lambda head, rest: bytes(head) + rest, st.tuples(heads, heads), st.binary(max_size=100)
)


def sealed_before(value: bytes) -> bytes:
    """As rows were sealed when their checksum was a CRC32."""
    marked = bytes((value[0] | CRC_MARK, value[1] | CRC_MARK)) + value[2:]
    return marked + crc32(marked).to_bytes(4, "little")


seals = st.sampled_from([seal, sealed_before])


@given(values)
def test_unsealed_is_what_was_sealed(value: bytes) -> None:
    stored = seal(value)
    assert unseal(stored, b"key") == value
    assert unseal_many([stored, None], [b"key", b"key"]) == [value, None]
    cut = cut_sealed([stored, stored])
    assert cut is not None
    assert [one[2:] for one in cut] == [value[2:]] * 2
    odd: dict[bytes, bytes] = {}
    assert [(key, one[2:]) for key, one in cut_rows([(b"key", stored)], odd)] == [
        (b"key", value[2:])
    ]
    assert not odd


@given(values)
def test_rows_with_a_crc_are_read(value: bytes) -> None:
    stored = sealed_before(value)
    assert unseal(stored, b"key") == value
    assert unseal_many([stored], [b"key"]) == [value]
    assert cut_sealed([stored]) is None, "these need `unseal`"
    odd: dict[bytes, bytes] = {}
    assert cut_rows([(b"key", stored)], odd) == [(b"key", stored)]
    assert odd == {b"key": stored}, "and these"


@given(values, seals, st.data())
def test_a_changed_bit_is_noticed(
    value: bytes, sealed: Callable[[bytes], bytes], data: st.DataObject
) -> None:
    stored = bytearray(sealed(value))
    at = data.draw(st.integers(0, len(stored) - 1))
    stored[at] ^= 1 << data.draw(st.integers(0, 7))
    assert cut_sealed([seal(value), bytes(stored)]) is None
    odd: dict[bytes, bytes] = {}
    assert len(cut_rows([(b"one", seal(value)), (b"other", bytes(stored))], odd)) == 2
    assert list(odd) == [b"other"]
    with pytest.raises(DataDamaged, match="6b6579"):
        unseal(bytes(stored), b"key")


@given(values)
def test_rows_of_format_1_are_read_as_they_are(value: bytes) -> None:
    assert unseal(value, b"key") == value
    assert unseal_many([value], [b"key"]) == [value]
    assert cut_sealed([value]) is None, "these need `unseal`"


def test_the_sum_of_a_known_row() -> None:
    """The format on disk: docs/formats.md."""
    known = "c1c0" + b"123456789".hex()
    assert seal(b"\x01\x00123456789").hex() == known + "623d3815ad418a31094c436114648f19"
    assert (
        unseal(bytes.fromhex("8180" + b"123456789".hex() + "3a7f1016"), b"key")[:2] == b"\x01\x00"
    )
