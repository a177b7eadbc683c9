"""The signature of a request on a fast path: whether our first key made it, and lately.

HOT: once per request of `reads.py`, `queries.py` and `creates.py`. What it does not
know (other keys, other tokens, forms of escaping that nobody uses) is no refusal: the general path
decides.
"""

from __future__ import annotations

import binascii
import hmac
from typing import Final, TypeVar

from armillary.api.core.gateway import Gateway
from armillary.api.core.signing import SKEW_SECONDS
from armillary.errors import DbError

KEPT_MAX: Final = 4096
DATE: Final = rb"[A-Za-z0-9 ,:]+"
AUTHORIZATION: Final = rb"type%3[dD]master%26ver%3[dD]1\.0%26sig%3[dD][A-Za-z0-9+/%]+%3[dD]"
SIGNATURE: Final = slice(len("type%3dmaster%26ver%3d1.0%26sig%3d"), -3)

K = TypeVar("K")
V = TypeVar("V")


class HotSigning:
    def __init__(self, gateway: Gateway) -> None:
        self._keyring = gateway.keyring
        self._wall_ms = gateway.wall_ms
        self._sign = gateway.keyring.token_signer.sign
        self._dates: dict[bytes, tuple[int, bytes]] = {}

    def is_ours(self, asked: bytes, link: bytes, date: bytes, authorization: bytes) -> bool:
        """`asked`: the method and the type of the resource, as they are signed."""
        known = self._dates.get(date)
        if known is None:
            known = self._keep_date(date)
            if known is None:
                return False
        moment, lower = known
        if not -SKEW_SECONDS <= self._wall_ms() // 1000 - moment <= SKEW_SECONDS:
            return False
        signature = authorization[SIGNATURE]
        if b"%" in signature:
            signature = signature.replace(b"%2B", b"+").replace(b"%2F", b"/")
            if b"%" in signature:
                signature = signature.replace(b"%2b", b"+").replace(b"%2f", b"/")
        try:
            given = binascii.a2b_base64(signature + b"=", strict_mode=True)
        except ValueError:
            return False
        signed = self._sign(b"%b\n%b\n%b\n\n" % (asked, link, lower))
        return hmac.compare_digest(signed, given)

    def _keep_date(self, date: bytes) -> tuple[int, bytes] | None:
        try:
            moment, lower = self._keyring.read_date(date.decode())
        except DbError:
            return None
        return keep(self._dates, date, (moment, lower.encode()))


def keep(table: dict[K, V], key: K, value: V) -> V:
    if len(table) >= KEPT_MAX:
        table.clear()
    table[key] = value
    return value
