"""SCRAM: a client proves that it has a key of the account without sending it.

    n,,n=localhost,r=abc  ─▶  r=abcXYZ,s=salt,i=4096
    c=biws,r=abcXYZ,p=…   ─▶  v=…

What the proofs are checked against is derived once per start, for every key. Facts: section 4.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Final, NamedTuple

from armillary.api.mongo.errors import MongoError

MECHANISMS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-1": "sha1"}


def failed() -> MongoError:
    return MongoError(18, "Authentication failed.")


class Verifier(NamedTuple):
    stored_key: bytes
    server_key: bytes
    may_write: bool


class Credentials:
    """The keys of an account, as SCRAM needs them."""

    def __init__(
        self,
        users: frozenset[str],
        keys: tuple[str, ...],
        read_only: tuple[str, ...],
        iterations: int,
    ) -> None:
        self.users = users
        self.iterations = iterations
        self._secrets = [(one, True) for one in keys] + [(one, False) for one in read_only]
        self._salt = hashlib.blake2b("\n".join(keys).encode(), digest_size=16).digest()
        self._derived: dict[tuple[str, str], list[Verifier]] = {}

    def salt(self, mechanism: str) -> bytes:
        return self._salt if mechanism == "SCRAM-SHA-256" else self._salt[:16]

    def verifiers(self, mechanism: str, user: str) -> list[Verifier]:
        known = self._derived.get((mechanism, user))
        if known is None and user in self.users:
            known = [self._derive(mechanism, user, *one) for one in self._secrets]
            self._derived[mechanism, user] = known
        return known or []

    def _derive(self, mechanism: str, user: str, key: str, may_write: bool) -> Verifier:
        digest = MECHANISMS[mechanism]
        password = key
        if digest == "sha1":  # the mechanism says so; it protects nothing here
            password = hashlib.md5(
                f"{user}:mongo:{key}".encode(), usedforsecurity=False
            ).hexdigest()
        salted = hashlib.pbkdf2_hmac(
            digest, password.encode(), self.salt(mechanism), self.iterations
        )
        client = hmac.digest(salted, b"Client Key", digest)
        return Verifier(
            hashlib.new(digest, client).digest(),
            hmac.digest(salted, b"Server Key", digest),
            may_write,
        )

    def plain(self, user: str, password: str) -> bool | None:
        """Whether a password sent as it is may write; None: it is none of ours."""
        if user not in self.users:
            return None
        found: bool | None = None
        for key, may_write in self._secrets:
            if hmac.compare_digest(key.encode(), password.encode()):
                found = may_write
        return found


@dataclass(slots=True)
class Conversation:
    """One login under way."""

    mechanism: str
    user: str
    nonce: str
    first_bare: str
    server_first: str
    skip_empty: bool
    done: bool = False
    may_write: bool = False


def begin(
    credentials: Credentials, mechanism: str, payload: bytes, skip_empty: bool
) -> Conversation:
    if mechanism not in MECHANISMS:
        raise MongoError(334, f"Unsupported mechanism: {mechanism}")
    try:
        text = payload.decode()
    except UnicodeDecodeError as error:
        raise failed() from error
    header, _, bare = text.partition(",,")
    fields = _fields(bare)
    if header not in ("n", "y") or "n" not in fields or "r" not in fields:
        raise failed()
    user = fields["n"].replace("=2C", ",").replace("=3D", "=")
    nonce = fields["r"] + base64.b64encode(secrets.token_bytes(18)).decode()
    salt = base64.b64encode(credentials.salt(mechanism)).decode()
    server_first = f"r={nonce},s={salt},i={credentials.iterations}"
    return Conversation(mechanism, user, nonce, bare, server_first, skip_empty)


def finish(credentials: Credentials, conversation: Conversation, payload: bytes) -> bytes:
    """The server's signature; raises when the proof is wrong."""
    try:
        text = payload.decode()
        fields = _fields(text)
        proof = base64.b64decode(fields["p"], validate=True)
    except (ValueError, KeyError) as error:
        raise failed() from error
    if fields.get("r") != conversation.nonce:
        raise failed()
    without_proof = text.rpartition(",p=")[0]
    message = ",".join((conversation.first_bare, conversation.server_first, without_proof)).encode()
    digest = MECHANISMS[conversation.mechanism]
    for one in credentials.verifiers(conversation.mechanism, conversation.user):
        signature = hmac.digest(one.stored_key, message, digest)
        if len(proof) != len(signature):
            continue
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if hmac.compare_digest(hashlib.new(digest, client_key).digest(), one.stored_key):
            conversation.done = True
            conversation.may_write = one.may_write
            return b"v=" + base64.b64encode(hmac.digest(one.server_key, message, digest))
    raise failed()


def _fields(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)
