"""Master keys and dates: did one of our keys sign this request, and lately?

    authorization: type%3Dmaster%26ver%3D1.0%26sig%3D…   sig = HMAC-SHA256(key, five lines)

    get ⏎ docs ⏎ dbs/db/colls/c ⏎ thu, 27 apr 2017 00:51:12 gmt ⏎ ⏎

Signatures are compared in constant time. The texts are the original's; the one for a wrong
signature shows what we expected to be signed, because that is how people find their mistake.
Facts: nosql-rest 1.1, 9.3.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Sequence
from email.utils import formatdate, mktime_tz, parsedate_tz
from typing import Final, NamedTuple
from urllib.parse import unquote

from armillary.api.core.paths import Signed
from armillary.errors import Forbidden, Unauthorized

HEADER_BYTES_MAX: Final = {"master": 1024, "resource": 8 * 1024, "aad": 16 * 1024}
SKEW_SECONDS: Final = 15 * 60
DATES_KEPT_MAX: Final = 256
SHA256_BLOCK_BYTES: Final = 64
FIRST_SECOND: Final = -62_135_596_800  # of the year 1
LAST_SECOND: Final = 253_402_300_799  # of the year 9999

#: As a number: bytes are looked for in bytes in four times the time.
PERCENT: Final = ord("%")
#: What SDKs send: percent-encoded, in capitals. Read by itself, because `unquote` takes its time.
USUAL: Final = "type%3Dmaster%26ver%3D1.0%26sig%3D"

FORMAT_TEXT: Final = (
    "Authorization header doesn't confirm to the required format. Please verify and try again."
)
DATE_TEXT: Final = (
    "Authorization token mandates Date headers. Please pass in RFC 1123 style date format."
)
BAD_DATE_TEXT: Final = (
    "The input date header is invalid format. Please pass in RFC 1123 style date format."
)
SIGNATURE_TEXT: Final = (
    "The input authorization token can't serve the request. The wrong key is being used or the "
    "expected payload is not built as per the protocol. For more info: "
    "https://aka.ms/cosmosdb-tsg-unauthorized. Server used the following payload to sign: '{0}'"
)
CLOCK_TEXT: Final = (
    "The authorization token is not valid at the current time. Please create another token and "
    "retry (token start time: {0}, token expiry time: {1}, current server time: {2})."
)


class Credential(NamedTuple):
    """An authorization header, taken apart."""

    type: str
    signature: str


def parse_authorization(text: str | None) -> Credential:
    if not text:
        raise Unauthorized
    if text.startswith(USUAL) and len(text) <= HEADER_BYTES_MAX["master"]:
        signature = text[len(USUAL) :].replace("%2B", "+").replace("%2F", "/").replace("%3D", "=")
        if signature and "%" not in signature and "&" not in signature:
            return Credential("master", signature)
    parts = dict(
        pair.partition("=")[::2] for pair in (unquote(text) if "%" in text else text).split("&", 2)
    )
    kind, signature = parts.get("type", ""), parts.get("sig", "")
    most = HEADER_BYTES_MAX.get(kind)
    if most is None or parts.get("ver") != "1.0" or not signature or len(text) > most:
        raise Unauthorized(FORMAT_TEXT)
    return Credential(kind, signature)


class Signer:
    """One key, with the first block of both hashes done: HMAC-SHA256 (RFC 2104) written out takes
    half the time of the module, which makes an object of its own for each."""

    def __init__(self, key: str) -> None:
        self._secret = decode_key(key)
        block = self._secret
        if len(block) > SHA256_BLOCK_BYTES:
            block = hashlib.sha256(block).digest()
        block = block.ljust(SHA256_BLOCK_BYTES, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def sign(self, payload: bytes) -> bytes:
        # HOT: once per request. hmac.digest is the reference; test_signing.py compares.
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(payload)
        outer.update(inner.digest())
        return outer.digest()


def decode_key(key: str) -> bytes:
    """ValueError unless it is base64 of something."""
    try:
        secret = base64.b64decode(key, validate=True)
    except binascii.Error as error:
        raise ValueError("an account key is base64") from error
    if not secret:
        raise ValueError("an account key is not empty")
    return secret


class Keyring:
    def __init__(self, keys: Iterable[str], read_only: Iterable[str] = ()) -> None:
        self._full = [Signer(key) for key in keys]
        self._read_only = [Signer(key) for key in read_only]
        if not self._full:
            raise ValueError("an account needs a key")
        self._dates: dict[bytes, tuple[int, bytes]] = {}

    @property
    def token_signer(self) -> Signer:
        """Makes resource tokens: they end when the first key is changed."""
        return self._full[0]

    def verify(
        self, method: str, forms: Sequence[Signed], headers: dict[str, str], sig: str, now_s: int
    ) -> bool:
        """Whether the key that signed may also write. Raises when none of ours did."""
        dates = self._check_date(headers, now_s)
        given = _decoded(sig)
        for form in forms:
            payload = payload_of(method, form, dates).encode()
            if any(hmac.compare_digest(one.sign(payload), given) for one in self._full):
                return True
            if any(hmac.compare_digest(one.sign(payload), given) for one in self._read_only):
                return False
        shown = payload_of(method, forms[0], dates).replace("\n", "\\n")
        raise Unauthorized(SIGNATURE_TEXT.format(shown))

    def is_first(self, asked: bytes, link: bytes, date: bytes, given: bytes, now_s: int) -> bool:
        """Whether the first key signed these lines, as NoSQL does. `asked`: method and type of the
        resource, two lines; `given`: base64 without its `=`, as a header has it. Raises as
        `check_date` does. HOT: once per request that is answered from bytes to bytes."""
        if PERCENT in given:
            given = given.replace(b"%2B", b"+").replace(b"%2F", b"/")
            if PERCENT in given:
                given = given.replace(b"%2b", b"+").replace(b"%2f", b"/")
        made = self._full[0].sign(asked + link + b"\n" + self.check_date(date, now_s) + b"\n\n")
        return hmac.compare_digest(binascii.b2a_base64(made, newline=False)[:-1], given)

    def signer_may_write(self, payload: bytes, signature: bytes) -> bool | None:
        """Whether the key that signed `payload` may also write. None: it is none of ours."""
        if any(hmac.compare_digest(one.sign(payload), signature) for one in self._full):
            return True
        if any(hmac.compare_digest(one.sign(payload), signature) for one in self._read_only):
            return False
        return None

    def is_key(self, text: str) -> bool:
        """For people with curl: the key itself, where only our own pages live."""
        try:
            given = base64.b64decode(text, validate=True)
        except ValueError:
            return False
        return any(hmac.compare_digest(one._secret, given) for one in self._full)

    def _check_date(self, headers: dict[str, str], now_s: int) -> str:
        """The fourth and fifth line."""
        text, lines = headers.get("x-ms-date"), "{0}\n\n"
        if text is None:
            text, lines = headers.get("date"), "\n{0}\n"
        if text is None:
            raise Unauthorized(DATE_TEXT)
        return lines.format(self.check_date(text.encode("latin-1"), now_s).decode("latin-1"))

    def check_date(self, date: bytes, now_s: int) -> bytes:
        """As NoSQL signs it. Unauthorized: it is none; Forbidden: it is not of now. HOT: once per
        request; clients repeat it for a second."""
        moment, lower = self._dates.get(date) or self._keep_date(date)
        if not -SKEW_SECONDS <= now_s - moment <= SKEW_SECONDS:
            check_time(moment - SKEW_SECONDS, moment + SKEW_SECONDS, now_s)
        return lower

    def _keep_date(self, date: bytes) -> tuple[int, bytes]:
        if len(self._dates) >= DATES_KEPT_MAX:
            self._dates.clear()
        known = self._dates[date] = (_moment(date.decode("latin-1")), date.lower())
        return known


def payload_of(method: str, form: Signed, dates: str) -> str:
    return f"{method.lower()}\n{form.type}\n{form.link}\n{dates}"


def check_time(start_s: int, end_s: int, now_s: int) -> None:
    if not start_s <= now_s <= end_s:
        raise Forbidden(CLOCK_TEXT.format(*map(_shown, (start_s, end_s, now_s))))


def _shown(moment_s: int) -> str:
    """A client may say any time; a calendar has an end."""
    return formatdate(min(max(moment_s, FIRST_SECOND), LAST_SECOND), usegmt=True)


def _moment(text: str) -> int:
    parsed = parsedate_tz(text)
    if parsed is None or not text.rstrip().upper().endswith("GMT"):
        raise Unauthorized(BAD_DATE_TEXT)
    try:
        return int(mktime_tz(parsed))
    except (ValueError, OverflowError) as error:
        raise Unauthorized(BAD_DATE_TEXT) from error


def _decoded(signature: str) -> bytes:
    try:
        return base64.b64decode(signature, validate=True)
    except ValueError as error:
        raise Unauthorized(FORMAT_TEXT) from error
