"""What the fast paths of entities have in common: a target with both keys, its signature, and forms
of answers."""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from armillary.api.core.activities import new_activity
from armillary.api.core.fast import DATE, keep
from armillary.api.http.encoding import BYTES_MARK, form_of
from armillary.api.http.messages import Response
from armillary.api.table.call import (
    VERSION,
    is_client_id,
    reply_headers,
    shown_charge,
    shown_version,
)
from armillary.api.table.fast.requests import IGNORED, VALUE, Hosts
from armillary.api.table.wire.targets import Target, parse_target
from armillary.errors import DbError
from armillary.store.catalog.tables import TABLES_DB

if TYPE_CHECKING:
    from armillary.api.http.messages import Request
    from armillary.api.table.service import TableService
    from armillary.store.items.containers import ContainerStore

AUTHORIZATION: Final = rb"SharedKey(?:Lite)? [a-z0-9-]{1,64}:[A-Za-z0-9+/]{43}="
SIGNATURE_CHARACTERS: Final = 44
#: A Date counts for nothing alongside the x-ms-date that `Door.accepts` asks for.
IGNORED_SIGNED: Final = IGNORED | {"date"}
#: Headers that every fast path is given, after the groups of `TARGET`.
CAPTURED: Final = {
    "host": VALUE,
    "x-ms-date": DATE,
    "authorization": AUTHORIZATION,
    "content-type": VALUE,
    "x-ms-version": VALUE,
    "x-ms-client-request-id": VALUE,
}
KEY: Final = rb"[A-Za-z0-9_.~!$&()*+,;=:@%-]"  # no quote: it would have to be doubled
TARGET: Final = (
    rb"(/(?:[a-z0-9]{1,64}/)?(?!Tables|\$)[A-Za-z0-9_.~-]{1,254})"
    rb"\(PartitionKey='(%b{1,1024})',RowKey='(%b{1,128})'\)" % (KEY, KEY)
)
_SIGNED: Final = re.compile(AUTHORIZATION)
_TARGET: Final = re.compile(TARGET)


class Door:
    """Whether a request that has a template may pass: its host, its date, its signature."""

    def __init__(self, service: TableService, method: str, *, secure: bool) -> None:
        self._service = service
        self._secure = secure
        # Links begin with the scheme, so the two have templates of their own.
        self.target = TARGET + rb"(?:)" if secure else TARGET
        self._method = method.encode()
        self._gateway = service.gateway
        self._keyring = service.gateway.keyring
        self._hosts = Hosts()
        self._schemes: dict[bytes, tuple[bool, bytes]] = {}

    def accepts(self, request: Request) -> bool:
        """It was answered well, so its host is one of ours."""
        headers = request.headers
        if request.secure is not self._secure:
            return False
        signed = headers.get("authorization", "").encode("latin-1")
        if "x-ms-date" not in headers or _SIGNED.fullmatch(signed) is None:
            return False
        if _TARGET.fullmatch(request.target.encode("latin-1")) is None:
            return False
        self._hosts.add(headers)
        return True

    def may_write(
        self, host: bytes, path: bytes, date: bytes, authorization: bytes, kind: bytes
    ) -> bool | None:
        """Whether the key that signed may also write. None: it is none of ours, or not for us.
        `kind`: the Content-Type."""
        if host not in self._hosts.known:
            return None
        scheme = authorization[:-SIGNATURE_CHARACTERS]
        known = self._schemes.get(scheme)
        if known is None:
            name, _, account = scheme[:-1].partition(b" ")
            known = keep(self._schemes, scheme, (name == b"SharedKeyLite", account))
        is_lite, account = known
        payload = b"%b\n/%b%b" % (date, account, path)
        if not is_lite:
            payload = b"%b\n\n%b\n%b" % (self._method, kind, payload)
        try:
            self._keyring.check_date(date, self._gateway.wall_s())
            given = binascii.a2b_base64(authorization[-SIGNATURE_CHARACTERS:], strict_mode=True)
        except (DbError, ValueError):
            return None
        return self._keyring.signer_may_write(payload, given)

    def table(self, folder: bytes) -> tuple[Target, ContainerStore] | None:
        """Of the path before the keys. None: the general path has not met it yet."""
        try:
            target = parse_target(folder.decode(), self._service.accounts)
        except DbError:
            return None
        store = self._service.gateway.known_container(TABLES_DB, target.table)
        return None if store is None or target.kind != "entities" else (target, store)

    def is_gone(self, table: str, store: ContainerStore) -> bool:
        """It may have been deleted and made again, and then lives in another store."""
        return self._service.gateway.known_container(TABLES_DB, table) is not store


class Forms(NamedTuple):
    """Of one answer: without and with the id that a client gave its request."""

    bare: bytes
    named: bytes

    def fill(self, version: bytes, client: bytes, ru: float, *values: Any) -> bytes:
        """`values`: of the headers that only this answer has, then as `form_of` says."""
        first = (
            new_activity().encode(),
            shown_version(version.decode() or VERSION).encode(),
            shown_charge(ru).encode(),
        )
        if client and is_client_id(client.decode()):
            return self.named % (*first, client, *values)
        return self.bare % (*first, *values)


def forms_of(status: int, headers: Mapping[str, str]) -> Forms:
    """Of what `call.reply` answers with these headers."""
    mark = BYTES_MARK
    return Forms(
        *(
            form_of(Response(status, {**reply_headers(mark, mark, mark, client), **headers}))
            for client in (None, mark)
        )
    )


def plain_key(text: bytes) -> bytes | None:
    """Of its text in a path. None: it has a quote, which the general path undoubles, an end that
    makes it another id, or characters of more than one encoding."""
    if b"%" in text:
        text = unquote_to_bytes(text)
    return text if text.isascii() and b"'" not in text and not text.endswith(b" ") else None
