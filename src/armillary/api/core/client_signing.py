"""The headers with which a client of ours asks: commands and portal sign as any SDK does."""

from __future__ import annotations

import base64
from email.utils import formatdate
from typing import Final
from urllib.parse import quote, unquote

from armillary.api.core.paths import Signed
from armillary.api.core.signing import Signer, payload_of

VERSION: Final = "2020-07-15"


def signed_headers(signer: Signer, method: str, path: str) -> dict[str, str]:
    """`path` as it is sent, without its first slash; the time is now."""
    date = formatdate(usegmt=True)
    payload = payload_of(method, _signed(path), f"{date.lower()}\n\n").encode()
    sig = base64.b64encode(signer.sign(payload)).decode()
    return {
        "x-ms-date": date,
        "x-ms-version": VERSION,
        "authorization": quote(f"type=master&ver=1.0&sig={sig}", safe=""),
    }


def _signed(path: str) -> Signed:
    segments = [unquote(one) for one in path.partition("?")[0].split("/")]
    if len(segments) % 2:
        return Signed(segments[-1], "/".join(segments[:-1]))
    if segments[0] == "offers":  # signed by the rid alone, in lower case
        return Signed("offers", segments[1].lower())
    return Signed(segments[-2], "/".join(segments))
