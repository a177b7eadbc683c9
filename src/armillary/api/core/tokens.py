"""Resource tokens: a permission in the hands of somebody who must not have a key.

    type=resource&ver=1.0&sig={nonce};{permission, expiry};{HMAC};

The token names the permission and says how long it is good; what it allows is looked up when it is
used, so that deleting or changing the permission takes effect at once. Facts: nosql-rest 1.3.
"""

import base64
import hmac
import secrets
from typing import Final

import orjson

from armillary.api.core.signing import FORMAT_TEXT, Signer, check_time
from armillary.errors import BadInput, Unauthorized
from armillary.limits import TOKEN_SECONDS_DEFAULT, TOKEN_SECONDS_MAX

EXPIRY_HEADER: Final = "x-ms-documentdb-expiry-seconds"
NONCE_BYTES: Final = 12
PURPOSE: Final = b"armillary resource token\n"  # so that no other signature of the key fits


def make_token(signer: Signer, permission_rid: str, now_s: int, seconds: int) -> str:
    nonce = secrets.token_bytes(NONCE_BYTES)
    payload = orjson.dumps([permission_rid, now_s, now_s + seconds])
    parts = (nonce, payload, signer.sign(PURPOSE + nonce + payload))
    return "type=resource&ver=1.0&sig=" + "".join(
        base64.b64encode(part).decode() + ";" for part in parts
    )


def open_token(signer: Signer, signature: str, now_s: int) -> str:
    """The rid of the permission."""
    try:
        nonce, payload, mac, rest = (
            base64.b64decode(part, validate=True) for part in signature.split(";")
        )
    except ValueError as error:
        raise Unauthorized(FORMAT_TEXT) from error
    if rest or not hmac.compare_digest(signer.sign(PURPOSE + nonce + payload), mac):
        raise Unauthorized("The resource token was not made by this account.")
    rid, start_s, end_s = orjson.loads(payload)
    check_time(start_s, end_s, now_s)
    return str(rid)


def token_seconds(asked: int | None) -> int:
    if asked is None:
        return TOKEN_SECONDS_DEFAULT
    if not 1 <= asked <= TOKEN_SECONDS_MAX:
        raise BadInput(
            f"Value '{asked}' specified for the header '{EXPIRY_HEADER}' is invalid. "
            f"It must be between 1 and {TOKEN_SECONDS_MAX}."
        )
    return asked
