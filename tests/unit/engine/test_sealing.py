"""Checksums on rows: what was written comes back, and every changed bit is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.engine.sealing import MARK, SUM_BYTES, are_sealed, seal, unseal
from armillary.errors import DataDamaged

values = st.builds(
    lambda head, rest: bytes(head) + rest,
    st.tuples(st.integers(0, MARK - 1), st.integers(0, MARK - 1)),
    st.binary(max_size=100),
)


@given(values)
def test_unsealed_is_what_was_sealed(value: bytes) -> None:
    stored = seal(value)
    assert unseal(stored, b"key") == value
    assert are_sealed([stored, stored])
    assert stored[2:-SUM_BYTES] == value[2:], "readers may cut it instead"


@given(values, st.data())
def test_a_changed_bit_is_noticed(value: bytes, data: st.DataObject) -> None:
    stored = bytearray(seal(value))
    at = data.draw(st.integers(0, len(stored) - 1))
    stored[at] ^= 1 << data.draw(st.integers(0, 7))
    assert not are_sealed([seal(value), bytes(stored)])
    with pytest.raises(DataDamaged, match="6b6579"):
        unseal(bytes(stored), b"key")


@given(values)
def test_rows_of_format_1_are_read_as_they_are(value: bytes) -> None:
    assert unseal(value, b"key") == value
    assert not are_sealed([value]), "these need `unseal`"


def test_the_sum_of_a_known_row() -> None:
    """The format on disk: docs/formats.md."""
    assert seal(b"\x01\x00123456789").hex() == "8180" + b"123456789".hex() + "3a7f1016"
