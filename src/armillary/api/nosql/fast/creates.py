"""Creates and upserts from bytes to bytes: decodes what `items/single.py:begin_create` decodes,
begins the same in the store (`ContainerStore.start`) and fills the form of its answer.

What the store or the writer refuses is answered by the general path: the request is read again by
the parser, and `items/single.py` says what is wrong. HOT: see `decoding.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from armillary.api.core.fast import keep, new_activity
from armillary.api.core.gateway import Gateway
from armillary.api.http.encoding import BYTES_MARK, INTEGER_MARK, STATUS_LINES
from armillary.api.http.messages import Request, Response, Waiting
from armillary.api.nosql.call import Call, answered
from armillary.api.nosql.fast.decoding import ITEMS, KEYED, SESSION_TOKEN, SIGNED, Decoder, Known
from armillary.api.nosql.items.placing import placed
from armillary.api.nosql.items.single import STATUS, written, written_headers
from armillary.api.nosql.options import KEY, UPSERT
from armillary.encoding.partition_key import KeyValues, parse_key_header
from armillary.errors import DbError
from armillary.store.items.containers import ContainerStore, Sent
from armillary.store.items.preparation import Operation
from armillary.store.items.requests import Done
from armillary.store.throughput.meter import Ticket

CREATED: Final = STATUS_LINES[STATUS["created"]].encode()
REPLACED: Final = STATUS_LINES[STATUS["replaced"]].encode()


class Creates(Decoder):
    method = "POST"
    has_body = True
    target = ITEMS
    captured: Final = {**SIGNED, **KEYED, UPSERT: rb"[A-Za-z]+"}
    fixed: frozenset[str] = frozenset()
    ignored = Decoder.ignored | Decoder.fixed | SESSION_TOKEN.keys()  # which only reads have

    def __init__(
        self,
        gateway: Gateway,
        faults: Sequence[int],
        call_of: Callable[[Request], Call],
        bytes_max: int,
    ) -> None:
        """`call_of`: who asks for what, for what the general path answers. `bytes_max`: of a
        body."""
        super().__init__(gateway, faults)
        self.waits = True
        self._call_of = call_of
        self._bytes_max = bytes_max

    def form(self, store: ContainerStore) -> bytes:
        """After the status line, which the outcome decides."""
        form = self.marked(
            store, 201, lambda place: written_headers(BYTES_MARK, INTEGER_MARK, place)
        )
        return form.removeprefix(CREATED)

    def accepts(self, request: Request) -> bool:
        return KEY in request.headers

    def answer(
        self,
        date_line: bytes,
        names: bytes,
        date: bytes,
        authorization: bytes,
        activity: bytes,
        key: bytes,
        rid: bytes,
        upsert: bytes,
        body: bytes,
    ) -> Waiting | None:
        if (
            len(body) > self._bytes_max
            or not self._gateway.engine.never_waits
            or not self.is_ours(b"post\ndocs", names, date, authorization)
        ):
            return None
        known = self.container(names, rid)
        if known is None:
            return None
        kind = "upsert" if upsert.lower() == b"true" else "create"
        try:
            values = known.kept.get(key) or keep(known.kept, key, parse_key_header(key.decode()))
            ticket = self._admitted(known, values, kind) if self._polls else None
        except DbError:
            return None
        if self._polls and ticket is None:
            return None
        try:
            sent = known.store.start(Operation(kind, body=body), values, ticket)
        except DbError as error:
            if self.is_another(names, known):
                return None
            refused: Future[Any] = Future()
            refused.set_exception(error)
            otherwise = partial(self._otherwise, known, values, refused.result)
            return Waiting(refused, lambda date_line: None, otherwise)
        return Waiting(
            sent.future,
            partial(self._finish, known, sent, activity),
            partial(self._otherwise, known, values, partial(known.store.finish, sent)),
        )

    def _admitted(self, known: Known, values: KeyValues, kind: str) -> Ticket | None:
        """None: a database would have to be asked."""
        store, state = known.store, known.state
        owner = state.spot(values)[1]
        if store.meter is None or state.record.closed or state.definition.synthetic_key is not None:
            return None
        if not self._gateway.knows_session(owner.space):
            return None
        return store.meter.admit_here(state, owner, kind, note=False)

    def _finish(self, known: Known, sent: Sent, activity: bytes, date_line: bytes) -> bytes | None:
        store = known.store
        if sent.future.exception() is not None or store.known_state is not known.state:
            return None  # refused, or the range may be another one now
        if self._polls and not self._gateway.knows_session(sent.owner.space):
            return None  # there was a failover, and the database would be asked
        done = store.finish(sent)
        assert done is not None
        ordinal, lsn, text = sent.owner.ordinal, done.lsn, done.text
        version = self._gateway.session_version(sent.owner.space)
        line = CREATED if done.outcome == "created" else REPLACED
        return line + known.form % (
            activity or new_activity().encode(),
            self.charges.get(done.charge_ru) or self.charge(done.charge_ru),
            done.etag.encode(),
            lsn,
            *(ordinal, version, lsn, ordinal, lsn),
            *(date_line, len(text), text),
        )

    def _otherwise(
        self, known: Known, values: KeyValues, end: Callable[[], Done | None], request: Request
    ) -> Response | None:
        """As `begin_create` ends."""
        call = self._call_of(request)

        def finish() -> Response | None:
            with placed(call, known.store, values):
                done = end()
            return None if done is None else written(call, known.store, done, values)

        return answered(call, finish)
