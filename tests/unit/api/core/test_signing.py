"""Signatures are HMAC-SHA256 whatever the key and the payload, though the module is not asked."""

import base64
import hashlib
import hmac
import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.api.core.signing import Signer, parse_authorization
from armillary.errors import Unauthorized


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


@pytest.mark.parametrize("signature", ["a+b/c=", "ab==", "+", "%", "a&b", "", "=", "a=b=", "é"])
def test_the_usual_form_of_a_header_is_read_like_any_other(signature: str) -> None:
    """It has a shorter way of its own; one that escapes in small letters has not."""
    text = quote(f"type=master&ver=1.0&sig={signature}", safe="")
    small = re.sub("%..", lambda found: found[0].lower(), text)
    assert _read(text) == _read(small)


def _read(text: str) -> object:
    try:
        return parse_authorization(text)
    except Unauthorized as error:
        return error.message
