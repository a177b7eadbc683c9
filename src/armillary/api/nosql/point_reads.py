"""Point reads the short way: the same answer as `items.read_item`, without what most requests need
and this one does not.

HOT: every read of an item by key and id; the long way takes three times as long. Whatever is
unusual (escapes, other tokens, conditions, rids, a wrong signature) returns None, and the request
goes the long way. The reference is `items.py`; tests/property/test_point_reads.py holds that both
answer alike.

    path, signature, key header  ──▶  ContainerStore.read_placed  ──▶  headers from a template

Texts that clients repeat are looked up instead of read again: dates, key headers, session tokens.
Signatures are computed for every request.
"""

from __future__ import annotations

import binascii
import hmac
import uuid
from struct import Struct
from typing import Final, NamedTuple, TypeVar

from armillary.api.nosql.authorization import FULL
from armillary.api.nosql.call import (
    ACTIVITY,
    CHARGE,
    COMMON,
    Call,
    format_charge,
    quoted,
    refusal,
)
from armillary.api.nosql.gateway import Gateway
from armillary.api.nosql.messages import Request, Response
from armillary.api.nosql.options import KEY, Options
from armillary.api.nosql.paths import parse_path
from armillary.api.nosql.placing import check_barrier_at, container_headers, placed
from armillary.api.nosql.sessions import Seen, parse_token
from armillary.encoding.documents import BODY_BYTES, ETAG_SLICE, LSN, json_offset
from armillary.encoding.etags import etag_text
from armillary.encoding.partition_key import KeyValues, parse_key_header
from armillary.errors import DbError, NotFound
from armillary.partition.request_units import read_ru
from armillary.store.containers import ContainerStore
from armillary.store.meta import FENCE_BYTES
from armillary.store.state import ContainerState, KeyPlace, place_key

PREFIX: Final = "type%3dmaster%26ver%3d1.0%26sig%3d"
KEPT_MAX: Final = 4096
STRONG: Final = frozenset({"Strong", "BoundedStaleness"})
PROGRESS: Final = Struct(">Qi")  # LSN and session version, the first counters of a meta row


K = TypeVar("K")
V = TypeVar("V")


class _Template(NamedTuple):
    """What answers of one container have in common, for as long as its state is this one."""

    state: ContainerState
    headers: dict[str, str]
    keys: dict[str, tuple[KeyValues, KeyPlace]]
    """By the text of the key header: 1 and true are equal, their texts are not."""


class PointReads:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._sign = gateway.keyring.token_signer.sign
        self._level = gateway.settings.consistency
        self._is_strong = self._level in STRONG
        self._tokens: dict[str, dict[int, Seen]] = {}
        self._charges: dict[int, str] = {}
        self._templates: dict[tuple[str, str], _Template] = {}

    def answer(self, request: Request) -> Response | None:
        """None: not for us."""
        parts = request.target.split("/")
        if len(parts) == 8 and not parts[7]:
            parts.pop()
        headers = request.headers
        if (
            len(parts) != 7
            or parts[0]
            or parts[1] != "dbs"
            or parts[3] != "colls"
            or parts[5] != "docs"
            or not parts[6]
            or "%" in request.target
            or "?" in request.target
            or "if-none-match" in headers  # these make it something else
            or "if-match" in headers
            or "a-im" in headers
            or headers.get("x-ms-consistency-level", self._level) != self._level
        ):
            return None
        key_text = headers.get(KEY)
        store = self._gateway.known_container(parts[2], parts[4])
        if store is None or key_text is None or not self._is_ours(request):
            return None
        template = self._template(store)
        wanted = headers.get("x-ms-cosmos-intended-collection-rid")
        if wanted is not None and wanted != template.state.record.rid:
            return None
        activity = headers.get(ACTIVITY) or str(uuid.uuid4())
        if not (len(activity) <= 64 and activity.isascii() and activity.isprintable()):
            return None
        try:
            key = template.keys.get(key_text) or _keep_key(template, key_text)
            token = headers.get("x-ms-session-token")
            seen = None if not token else self._tokens.get(token) or self._keep_token(token)
        except DbError:
            return None
        return self._read(request, store, template, key, parts[6], activity, seen)

    def _read(
        self,
        request: Request,
        store: ContainerStore,
        template: _Template,
        key: tuple[KeyValues, KeyPlace],
        item_id: str,
        activity: str,
        seen: dict[int, Seen] | None,
    ) -> Response | None:
        try:
            value, owner, meta = store.read_placed(item_id, *key)
        except DbError as error:
            return self._refused(request, store, key[0], error)
        if store.state is not template.state:
            template = self._template(store)
        lsn, version = PROGRESS.unpack_from(meta, FENCE_BYTES)
        if seen is not None:
            now = Seen(version, lsn)
            if any(seen.get(one, now) > now for one in (owner.ordinal, *owner.parents)):
                return None
        (size,) = BODY_BYTES.unpack_from(value)
        ordinal = str(owner.ordinal)
        return Response(
            200,
            {
                **template.headers,
                ACTIVITY: activity,
                CHARGE: self._charges.get(size) or self._keep_charge(size),
                "etag": quoted(etag_text(value[ETAG_SLICE])),
                "x-ms-item-lsn": str(LSN.unpack_from(value)[0]),
                "x-ms-session-token": f"{ordinal}:{version}#{lsn}",
                "x-ms-documentdb-partitionkeyrangeid": ordinal,
                "lsn": str(lsn),
            },
            value[json_offset(value) :],
        )

    def _is_ours(self, request: Request) -> bool:
        """Whether the first key signed it. What others may is found out on the long way."""
        headers = request.headers
        text, date = headers.get("authorization", ""), headers.get("x-ms-date")
        size = len(PREFIX)
        if date is None or text[:size].lower() != PREFIX:
            return False
        lower = self._gateway.keyring.fresh_date(date, self._gateway.wall_s())
        if lower is None:
            return False
        path = request.target.strip("/")
        payload = f"get\ndocs\n{path}\n{lower}\n\n".encode("latin-1")
        escaped = text[size:]
        if "%" in escaped:
            escaped = escaped.replace("%2b", "+").replace("%2B", "+").replace("%2f", "/")
            escaped = escaped.replace("%2F", "/").replace("%3d", "=").replace("%3D", "=")
        try:
            given = binascii.a2b_base64(escaped, strict_mode=True)
        except ValueError:
            return False
        return hmac.compare_digest(self._sign(payload), given)

    def _refused(
        self, request: Request, store: ContainerStore, key: KeyValues, error: DbError
    ) -> Response:
        """Here and not on the long way: the attempt has been charged already."""
        call = Call(
            self._gateway, request, parse_path(request.target), Options(request.headers), FULL
        )
        try:
            with placed(call, store, key):
                if isinstance(error, NotFound):
                    check_barrier_at(call, store, key)
                raise error
        except DbError as said:
            return refusal(call, said)

    # --- what is kept ---------------------------------------------------------------------------

    def _template(self, store: ContainerStore) -> _Template:
        name = (store.database, store.name)
        known = self._templates.get(name)
        state = store.state
        if known is None or known.state is not state:
            extra = {name: text for name, text in container_headers(store).items() if text}
            known = _Template(state, {**COMMON, **extra}, {})
            _keep(self._templates, name, known)
        return known

    def _keep_token(self, text: str) -> dict[int, Seen]:
        return _keep(self._tokens, text, parse_token(text))

    def _keep_charge(self, size: int) -> str:
        return _keep(self._charges, size, format_charge(read_ru(size, strong=self._is_strong)))


def _keep_key(template: _Template, text: str) -> tuple[KeyValues, KeyPlace]:
    values = parse_key_header(text)
    place = place_key(values, template.state.definition.partition_key)
    return _keep(template.keys, text, (values, place))


def _keep(table: dict[K, V], key: K, value: V) -> V:
    if len(table) >= KEPT_MAX:
        table.clear()
    table[key] = value
    return value
