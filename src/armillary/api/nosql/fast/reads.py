"""Point reads from bytes to bytes: decodes what `items/single.py:read_item` decodes, asks the same
of the store (`ContainerStore.read_at`) and fills the form of its answer. HOT: see `decoding.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Final

from armillary.api.core.fast import keep, new_activity
from armillary.api.http.encoding import BYTES_MARK, INTEGER_MARK
from armillary.api.http.messages import Request, Waiting
from armillary.api.nosql.fast.decoding import KEYED, NAME, SESSION_TOKEN, SIGNED, Decoder, Known
from armillary.api.nosql.items.single import written_headers
from armillary.api.nosql.options import KEY
from armillary.encoding.documents import EPK_AT, EPK_LENGTH_AT, ETAG_SLICE, LSN
from armillary.encoding.etags import etag_text
from armillary.encoding.partition_key import parse_key_header
from armillary.engine.base import SpaceGone
from armillary.errors import DbError
from armillary.store.items.containers import ContainerStore
from armillary.store.items.reading import Placed
from armillary.store.rows.meta import FENCE_BYTES

PROGRESS: Final = Struct(">Qi")  # LSN and session version, the first counters of a meta row


class PointReads(Decoder):
    method = "GET"
    has_body = False
    target = rb"/((dbs/%b+/colls/%b+)/docs/(%b{1,128}))" % (NAME, NAME, NAME)
    captured: Final = {**SIGNED, **KEYED, **SESSION_TOKEN}

    def form(self, store: ContainerStore) -> bytes:
        return self.marked(
            store, 200, lambda place: written_headers(BYTES_MARK, INTEGER_MARK, place)
        )

    def accepts(self, request: Request) -> bool:
        headers = request.headers
        return KEY in headers and self.is_at_level(headers)

    def answer(
        self,
        date_line: bytes,
        path: bytes,
        names: bytes,
        item_id: bytes,
        date: bytes,
        authorization: bytes,
        activity: bytes,
        key: bytes,
        rid: bytes,
        token: bytes,
    ) -> bytes | Waiting | None:
        if not self.is_ours(b"get\ndocs", path, date, authorization):
            return None
        known = self.container(names, rid)
        if known is None:
            return None
        try:
            spot = known.kept.get(key) or keep(
                known.kept, key, known.state.spot(parse_key_header(key.decode()))
            )
            if not self.waits:
                found = known.store.read_at(spot, item_id, final=False)
                return self._filled(known, activity, token, found, date_line)
            begun = known.store.begin_read_at(spot, item_id)
        except (DbError, SpaceGone):
            self.is_another(names, known)
            return None
        if begun is None:
            return None
        end = partial(known.store.end_read_at, spot, item_id, begun)
        given = (names, known, activity, token, end)
        return Waiting(begun[0], partial(self._finish, *given), self.nothing_happened)

    def _finish(
        self,
        names: bytes,
        known: Known,
        activity: bytes,
        token: bytes,
        end: Callable[[], Placed],
        date_line: bytes,
    ) -> bytes | None:
        try:
            return self._filled(known, activity, token, end(), date_line)
        except (DbError, SpaceGone):
            self.is_another(names, known)
            return None

    def _filled(
        self, known: Known, activity: bytes, token: bytes, found: Placed, date_line: bytes
    ) -> bytes | None:
        value, owner, meta, ru = found
        ordinal = owner.ordinal
        lsn, version = PROGRESS.unpack_from(meta, FENCE_BYTES)
        if token and self.is_behind(token, owner, version, lsn):
            return None
        text = value[EPK_AT + value[EPK_LENGTH_AT] :]
        return known.form % (
            activity or new_activity().encode(),
            self.charges.get(ru) or self.charge(ru),
            etag_text(value[ETAG_SLICE]).encode(),
            LSN.unpack_from(value)[0],
            ordinal,
            version,
            lsn,
            ordinal,
            lsn,
            date_line,
            len(text),
            text,
        )
