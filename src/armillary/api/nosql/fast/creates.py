"""Creates and upserts from bytes to bytes: what `items.begin_create` begins and ends, and what the
server makes of it.

    groups of a shape ──▶ signature ──▶ key header ──▶ store/short_writes ──▶ the writer ──▶ one
    bytes object

HOT: twice per create, before and after the writer; numbers in bench/http_cost.py; the reference is
the long way, and tests/property/test_hot_creates.py holds that both answer alike. What is unusual
before the writer has it goes the long way as if nothing had happened. What the writer refuses ends
the long way: the request is read again by the parser, and `items` says what is wrong.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from armillary.api.core.gateway import Gateway
from armillary.api.http.messages import Request, Response, Waiting
from armillary.api.nosql.call import ACTIVITY, CHARGE, COMMON, Call, answered, format_charge
from armillary.api.nosql.fast.containers import header_lines, known_state, known_store
from armillary.api.nosql.fast.reads import CONTAINER_RID, NAME
from armillary.api.nosql.fast.signing import AUTHORIZATION, DATE, HotSigning, keep
from armillary.api.nosql.items.placing import container_headers, placed
from armillary.api.nosql.items.single import written
from armillary.api.nosql.options import KEY
from armillary.api.nosql.scripts import TRIGGER_HEADERS
from armillary.encoding.partition_key import parse_key_header
from armillary.errors import DbError
from armillary.store.catalog.controls import FAULTS
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore, Sent
from armillary.store.items.fast_writes import WriteSpot, start_write, write_spot_of

UPSERT: Final = "x-ms-documentdb-is-upsert"
#: Whoever sends these wants something else, or more.
OTHERS: Final = frozenset(
    {
        *TRIGGER_HEADERS,
        "a-im",
        "content-encoding",
        "if-match",
        "if-none-match",
        "prefer",
        "x-ms-cosmos-is-batch-request",
        "x-ms-cosmos-is-query-plan-request",
        "x-ms-documentdb-isquery",
        "x-ms-documentdb-query",
    }
)
STATUS: Final = {"created": b"HTTP/1.1 201 Created\r\n", "replaced": b"HTTP/1.1 200 OK\r\n"}


class _Template(NamedTuple):
    """What answers of one container have in common, for as long as its state is this one."""

    state: ContainerState
    store: ContainerStore
    rid: bytes
    head: bytes
    end: str
    spots: dict[bytes, WriteSpot | None]
    """By the text of the key header."""


class HotCreates:
    """A `Shortcut`."""

    method = "POST"
    has_body = True
    waits = True
    target = rb"/(dbs/%b+/colls/%b+)/docs/?" % (NAME, NAME)
    captured: Final = {
        "x-ms-date": DATE,
        "authorization": AUTHORIZATION,
        KEY: rb"\[[ -~]*\]",
        ACTIVITY: rb"[!-~]{1,64}",
        CONTAINER_RID: rb"[!-~]+",
        UPSERT: rb"[A-Za-z]+",
    }
    fixed: Final[frozenset[str]] = frozenset()

    def __init__(
        self,
        gateway: Gateway,
        faults: Sequence[int],
        call_of: Callable[[Request], Call],
        bytes_max: int,
    ) -> None:
        """`faults`: the cells of `store/catalog/controls.py`, which every request looks at.
        `call_of`: who asks for what, for what ends the long way. `bytes_max`: of a body."""
        self._gateway = gateway
        self._engine = gateway.engine
        self._faults = faults
        self._call_of = call_of
        self._bytes_max = bytes_max
        self._is_ours = HotSigning(gateway).is_ours
        self._templates: dict[bytes, _Template] = {}

    def accepts(self, request: Request) -> bool:
        return KEY in request.headers and not OTHERS & request.headers.keys()

    def answer(
        self,
        date_line: bytes,
        names: bytes,
        date: bytes,
        authorization: bytes,
        key: bytes,
        activity: bytes,
        rid: bytes,
        upsert: bytes,
        body: bytes,
    ) -> Waiting | None:
        if (
            self._faults[FAULTS]
            or len(body) > self._bytes_max
            or not self._engine.never_waits
            or not self._is_ours(b"post\ndocs", names, date, authorization)
        ):
            return None
        template = self._templates.get(names)
        if template is None or template.store.known_state is not template.state:
            template = self._keep_template(names)
            if template is None:
                return None
        if rid and rid != template.rid:
            return None
        try:
            spot = template.spots[key]
        except KeyError:
            spot = self._keep_spot(template, key)
        if spot is None:
            return None
        sent = start_write(spot, "upsert" if upsert.lower() == b"true" else "create", body)
        if sent is None:
            self._doubt(names, template)
            return None
        return Waiting(
            sent.future,
            partial(self._finish, template, spot, sent, activity),
            partial(self._otherwise, spot, sent),
        )

    def _finish(
        self, template: _Template, spot: WriteSpot, sent: Sent, activity: bytes, date_line: bytes
    ) -> bytes | None:
        store = template.store
        if sent.future.exception() is not None or store.known_state is not template.state:
            return None  # refused, or the range may be another one now
        done = store.finish(sent)
        assert done is not None
        ordinal, space, lsn, text = spot.owner.ordinal, spot.owner.space, done.lsn, done.text
        lines = (
            f'\r\n{CHARGE}: {format_charge(done.charge_ru)}\r\netag: "{done.etag}"\r\n'
            f"x-ms-item-lsn: {lsn}\r\n"
            f"x-ms-session-token: {ordinal}:{self._gateway.session_version(space)}#{lsn}\r\n"
            f"x-ms-documentdb-partitionkeyrangeid: {ordinal}\r\nlsn: {lsn}\r\n{template.end}"
        )
        return b"".join(
            (
                STATUS[done.outcome],
                template.head,
                activity or str(uuid.uuid4()).encode(),
                lines.encode(),
                date_line,
                b"Content-Length: %d\r\n\r\n" % len(text),
                text,
            )
        )

    def _otherwise(self, spot: WriteSpot, sent: Sent, request: Request) -> Response | None:
        """As `items.begin_create` ends."""
        call = self._call_of(request)

        def finish() -> Response | None:
            with placed(call, spot.store, spot.values):
                done = spot.store.finish(sent)
            return None if done is None else written(call, spot.store, done, spot.values)

        return answered(call, finish)

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
        end = header_lines(container_headers(store))
        head = f"{header_lines(COMMON)}{ACTIVITY}: ".encode()
        rid = state.record.rid.encode()
        return keep(self._templates, names, _Template(state, store, rid, head, end, {}))

    def _keep_spot(self, template: _Template, key: bytes) -> WriteSpot | None:
        try:
            values = parse_key_header(key.decode())
            spot = write_spot_of(template.store, template.state, values)
        except DbError:
            return None
        return keep(template.spots, key, spot)
