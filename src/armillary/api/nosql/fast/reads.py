"""Point reads from bytes to bytes: what `items.read_item` answers, and what the server makes of it,
in one flat function.

    groups of a shape ──▶ date, signature ──▶ key header ──▶ store/short_reads ──▶ one bytes object

HOT: once per point read; numbers in bench/http_cost.py; the reference is the long way, and
tests/property/test_hot_reads.py holds that both answer alike. Whatever is unusual (a miss, a moved
range, a token from the future, a signature that is not the first key's) returns None, and the
request goes the long way, which says what is wrong.

Texts that clients repeat are looked up instead of read again: dates, key headers, session tokens,
names. The signature of every request is computed; nothing is remembered about those seen before.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from armillary.api.core.gateway import Gateway
from armillary.api.http.messages import Request
from armillary.api.nosql.call import ACTIVITY, CHARGE, COMMON, format_charge
from armillary.api.nosql.fast.containers import header_lines, known_state, known_store
from armillary.api.nosql.fast.signing import AUTHORIZATION, DATE, HotSigning, keep
from armillary.api.nosql.items.placing import STRONG, container_headers
from armillary.api.nosql.items.sessions import Seen, parse_token
from armillary.api.nosql.options import KEY
from armillary.encoding.documents import BODY_BYTES, EPK_AT, EPK_LENGTH_AT, ETAG_SLICE, LSN
from armillary.encoding.partition_key import parse_key_header
from armillary.errors import DbError
from armillary.store.catalog.controls import FAULTS
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.items.fast_reads import Spot, read_spot, spot_of
from armillary.store.rows.meta import FENCE_BYTES
from armillary.store.throughput.charges import ReadPrices

CONTAINER_RID: Final = "x-ms-cosmos-intended-collection-rid"
CONDITIONS: Final = frozenset({"if-none-match", "if-match", "a-im"})
NAME: Final = rb"[A-Za-z0-9_.~!$&'()*+,;=:@-]"  # nothing that is escaped, cut or special in a path
PROGRESS: Final = Struct(">Qi")  # LSN and session version, the first counters of a meta row
PROGRESS_SLICE: Final = slice(FENCE_BYTES, FENCE_BYTES + PROGRESS.size)


class _Template(NamedTuple):
    """What answers of one container have in common, for as long as its state is this one."""

    state: ContainerState
    store: ContainerStore
    rid: bytes
    head: bytes
    spots: dict[bytes, Spot]
    """By the text of the key header: 1 and true are equal, their texts are not."""


class HotReads:
    """A `Shortcut`."""

    method = "GET"
    has_body = False
    waits = False
    target = rb"/((dbs/%b+/colls/%b+)/docs/(%b{1,128}))" % (NAME, NAME, NAME)
    captured: Final = {
        "x-ms-date": DATE,
        "authorization": AUTHORIZATION,
        KEY: rb"\[[ -~]*\]",
        ACTIVITY: rb"[!-~]{1,64}",
        "x-ms-session-token": rb"[0-9:#=,-]+",
        CONTAINER_RID: rb"[!-~]+",
    }
    fixed: Final = frozenset({"x-ms-consistency-level"})

    def __init__(self, gateway: Gateway, faults: Sequence[int]) -> None:
        """`faults`: the cells of `store/catalog/controls.py`, which every request looks at."""
        self._gateway = gateway
        self._faults = faults
        self._is_ours = HotSigning(gateway).is_ours
        self._level = gateway.settings.consistency
        self._is_strong = self._level in STRONG
        self._tokens: dict[bytes, dict[int, Seen]] = {}
        self._charges: dict[int, bytes] = {}
        self._ends: dict[tuple[int, bytes], bytes] = {}
        self._templates: dict[bytes, _Template] = {}

    def accepts(self, request: Request) -> bool:
        headers = request.headers
        return (
            KEY in headers
            and not CONDITIONS & headers.keys()  # these make it something else
            and headers.get("x-ms-consistency-level", self._level) == self._level
        )

    def answer(
        self,
        date_line: bytes,
        path: bytes,
        names: bytes,
        item_id: bytes,
        date: bytes,
        authorization: bytes,
        key: bytes,
        activity: bytes,
        token: bytes,
        rid: bytes,
    ) -> bytes | None:
        if self._faults[FAULTS]:
            return None
        if not self._is_ours(b"get\ndocs", path, date, authorization):
            return None
        template = self._templates.get(names)
        if template is None or template.store.known_state is not template.state:
            template = self._keep_template(names)
            if template is None:
                return None
        if rid and rid != template.rid:
            return None
        spot = template.spots.get(key)
        if spot is None:
            spot = self._keep_spot(template, key)
            if spot is None:
                return None
        seen = None
        if token:
            seen = self._tokens.get(token) or self._keep_token(token)
            if seen is None:
                return None
        found = read_spot(spot, item_id)
        if found is None:
            self._doubt(names, template)
            return None
        meta, value = found
        progress = meta[PROGRESS_SLICE]
        owner = spot.owner
        if seen is not None:
            lsn, version = PROGRESS.unpack(progress)
            now = (version, lsn)
            for one in (owner.ordinal, *owner.parents):
                if seen.get(one, now) > now:
                    return None
        end = self._ends.get((owner.ordinal, progress))
        if end is None:
            end = self._keep_end(owner.ordinal, progress)
        (size,) = BODY_BYTES.unpack_from(value)
        tag = value[ETAG_SLICE].hex()
        text = value[EPK_AT + value[EPK_LENGTH_AT] :]
        (lsn,) = LSN.unpack_from(value)
        line = (
            f'"{tag[:8]}-{tag[8:12]}-{tag[12:16]}-{tag[16:20]}-{tag[20:]}"\r\n'
            f"x-ms-item-lsn: {lsn}\r\n"
        )
        return b"".join(
            (
                template.head,
                activity or str(uuid.uuid4()).encode(),
                self._charges.get(size) or self._keep_charge(size, spot.prices),
                line.encode(),
                end,
                date_line,
                b"Content-Length: %d\r\n\r\n" % len(text),
                text,
            )
        )

    def _doubt(self, names: bytes, template: _Template) -> None:
        """It may have been deleted and made again, and then lives in another store."""
        if known_store(self._gateway, names) is not template.store:
            self._templates.pop(names, None)

    # --- what is kept ---------------------------------------------------------------------------

    def _keep_template(self, names: bytes) -> _Template | None:
        known = known_state(self._gateway, names)
        if known is None:
            return None
        store, state = known
        rid = state.record.rid.encode()
        lines = header_lines({**COMMON, **container_headers(store)})
        head = f"HTTP/1.1 200 OK\r\n{lines}{ACTIVITY}: ".encode()
        return keep(self._templates, names, _Template(state, store, rid, head, {}))

    def _keep_spot(self, template: _Template, key: bytes) -> Spot | None:
        try:
            store = template.store.strong if self._is_strong else template.store
            spot = spot_of(store, template.state, parse_key_header(key.decode()))
        except DbError:
            return None
        return None if spot is None else keep(template.spots, key, spot)

    def _keep_token(self, token: bytes) -> dict[int, Seen] | None:
        try:
            return keep(self._tokens, token, parse_token(token.decode()))
        except DbError:
            return None

    def _keep_charge(self, size: int, prices: ReadPrices) -> bytes:
        charge = format_charge(prices[size])
        return keep(self._charges, size, f"\r\n{CHARGE}: {charge}\r\netag: ".encode())

    def _keep_end(self, ordinal: int, progress: bytes) -> bytes:
        lsn, version = PROGRESS.unpack(progress)
        text = (
            f"x-ms-session-token: {ordinal}:{version}#{lsn}\r\n"
            f"x-ms-documentdb-partitionkeyrangeid: {ordinal}\r\nlsn: {lsn}\r\n"
        )
        return keep(self._ends, (ordinal, progress), text.encode())
