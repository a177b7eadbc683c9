"""Point reads of entities from bytes to bytes: what `entities.read_one` answers, and what the
server makes of it, in one flat function.

    groups of a template ──▶ date, signature ──▶ keys ──▶ the store ──▶ View ──▶ bytes

HOT: once per read of an entity; numbers in bench/table.py; the reference is the general path.
Whatever is unusual (a miss, a moved range, a signature that covers something else, a quote in a
key) returns None, and the request takes the general path, which says what is wrong.

What clients repeat is looked up: dates, tables, partition keys. The signature of every request is
computed; nothing is remembered about those seen before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from armillary.api.core.fast import keep
from armillary.api.http.encoding import BYTES_MARK
from armillary.api.table.call import level_of
from armillary.api.table.fast.requests import VALUE
from armillary.api.table.fast.targets import (
    CAPTURED,
    IGNORED_SIGNED,
    Door,
    Forms,
    forms_of,
    plain_key,
)
from armillary.api.table.wire.etags import etag_of
from armillary.api.table.wire.presenting import View
from armillary.encoding.documents import EPK_AT, EPK_LENGTH_AT
from armillary.engine.base import SpaceGone
from armillary.errors import DbError
from armillary.store.catalog.controls import FAULTS
from armillary.store.catalog.state import ContainerState, Spot
from armillary.store.items.containers import ContainerStore

if TYPE_CHECKING:
    from armillary.api.table.service import TableService


class _Template(NamedTuple):
    """What answers of one table have in common, for as long as its state is this one."""

    state: ContainerState
    store: ContainerStore
    forms: Forms
    view: View
    spots: dict[bytes, Spot]
    """By the text of the partition key in the path."""


class FastReads:
    """A fast path."""

    method: Final = "GET"
    has_body: Final = False
    waits: Final = False
    captured: Final = {**CAPTURED, "accept": VALUE}
    fixed: Final[frozenset[str]] = frozenset()
    ignored: Final = IGNORED_SIGNED

    def __init__(self, service: TableService, *, secure: bool) -> None:
        self._service = service
        self._secure = secure
        self._door = Door(service, self.method, secure=secure)
        self.target = self._door.target
        self.accepts = self._door.accepts
        self._may_write = self._door.may_write
        self._faults = service.gateway.shared.cells
        self._templates: dict[tuple[bytes, bytes, bytes], _Template] = {}

    def answer(self, date_line: bytes, *groups: bytes) -> bytes | None:
        path, folder, partition, row, host, date, authorization = groups[:7]
        kind, version, client, accept = groups[7:]
        if self._faults[FAULTS]:
            return None
        if self._may_write(host, path, date, authorization, kind) is None:  # any key reads
            return None
        template = self._templates.get((folder, host, accept))
        if template is None or template.store.known_state is not template.state:
            template = self._keep_template(folder, host, accept)
            if template is None:
                return None
        spot = template.spots.get(partition)
        if spot is None:
            spot = self._keep_spot(template, partition)
            if spot is None:
                return None
        key = plain_key(row)
        if key is None:
            return None
        try:
            value, _, _, ru = template.store.read_at(spot, key, final=False)
        except (DbError, SpaceGone):
            if self._door.is_gone(template.view.table, template.store):
                self._templates.pop((folder, host, accept), None)
            return None
        item = orjson.loads(value[EPK_AT + value[EPK_LENGTH_AT] :])
        body = orjson.dumps(template.view.show_alone(item))
        etag = etag_of(item["_etag"]).encode()
        return template.forms.fill(version, client, ru, etag, date_line, len(body)) + body

    # --- what is kept ---------------------------------------------------------------------------

    def _keep_template(self, folder: bytes, host: bytes, accept: bytes) -> _Template | None:
        service, found = self._service, self._door.table(folder)
        if found is None:
            return None
        target, store = found
        try:
            state, level = store.state, level_of(accept.decode())
        except DbError:
            return None
        base = f"{'https' if self._secure else 'http'}://{host.decode()}"
        if target.account:
            base += f"/{target.account}"
        flavour = service.flavour
        view = View(target.table, level, base, service.account, None, flavour.is_storage)
        headers = {"Content-Type": flavour.content_type_of(level), "ETag": BYTES_MARK}
        made = _Template(state, store, forms_of(200, headers), view, {})
        return keep(self._templates, (folder, host, accept), made)

    def _keep_spot(self, template: _Template, partition: bytes) -> Spot | None:
        plain = plain_key(partition)
        if plain is None:
            return None
        try:
            return keep(template.spots, partition, template.state.spot((plain.decode(),)))
        except DbError:
            return None
