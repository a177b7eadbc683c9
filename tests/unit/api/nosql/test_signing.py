"""Signatures are HMAC-SHA256 whatever the key and the payload, though the module is not asked."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.api.nosql.signing import Signer


def _agrees(secret: bytes, payload: bytes) -> bool:
    signer = Signer(base64.b64encode(secret).decode())
    expected = hmac.digest(secret, payload, hashlib.sha256)
    # Twice: the states that were begun must not be used up.
    return signer.sign(payload) == expected == signer.sign(payload)


@pytest.mark.parametrize("size", [1, 32, 63, 64, 65, 200])
def test_keys_shorter_and_longer_than_a_block(size: int) -> None:
    assert _agrees(bytes(range(size)), b"get\ndocs\n\n")


@given(secret=st.binary(min_size=1, max_size=100), payload=st.binary(max_size=300))
def test_agrees_with_the_module(secret: bytes, payload: bytes) -> None:
    assert _agrees(secret, payload)
