"""Updates and upserts of one entity, by replacing or merging, from bytes to bytes: decodes what
`entities.replacement_of` and `merge_of` decode, begins the same (`changes.start`) and fills the
form of its answer.

What is refused is answered by the general path: the request is read again by the parser.

HOT: twice per write, before and after the writer; numbers in bench/table.py; the reference is the
general path.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from armillary.api.core.fast import keep
from armillary.api.http.encoding import BYTES_MARK
from armillary.api.http.messages import Request, Response, Waiting
from armillary.api.table import changes, entities
from armillary.api.table.call import refusal
from armillary.api.table.fast.requests import VALUE
from armillary.api.table.fast.targets import (
    CAPTURED,
    IGNORED_SIGNED,
    Door,
    forms_of,
    plain_key,
)
from armillary.api.table.wire.etags import etag_of
from armillary.api.table.wire.forms import read_entity
from armillary.errors import DbError
from armillary.store.catalog.controls import FAULTS
from armillary.store.items.containers import ContainerStore, Sent

if TYPE_CHECKING:
    from armillary.api.table.service import TableService

TUNNEL: Final = "x-http-method"
KINDS: Final[dict[str, changes.Kind]] = {"PUT": "replace", "PATCH": "merge", "POST": "merge"}
FORMS: Final = forms_of(204, {"ETag": BYTES_MARK})


class FastUpserts:
    """A fast path: requests of one method of `KINDS`, where POST says `X-HTTP-Method: MERGE`, as
    SDKs merge."""

    has_body: Final = True
    waits: Final = True
    captured: Final = {**CAPTURED, "if-match": VALUE}
    ignored: Final = IGNORED_SIGNED

    def __init__(self, service: TableService, method: str, bytes_max: int, *, secure: bool) -> None:
        """`bytes_max`: of a body."""
        self.method = method
        self._kind = KINDS[method]
        self.fixed = frozenset({TUNNEL}) if method == "POST" else frozenset[str]()
        self._service = service
        self._flavour = service.flavour
        self._bytes_max = bytes_max
        self._door = Door(service, method, secure=secure)
        self.target = self._door.target
        self._engine = service.gateway.engine
        self._faults = service.gateway.shared.cells
        self._tables: dict[bytes, tuple[str, ContainerStore]] = {}

    def accepts(self, request: Request) -> bool:
        if self.method == "POST" and request.headers.get(TUNNEL) != "MERGE":
            return False
        return self._door.accepts(request)

    def answer(self, date_line: bytes, *groups: bytes) -> Waiting | None:
        path, folder, partition, row, host, date, authorization = groups[:7]
        kind, version, client, if_match, body = groups[7:]
        if self._faults[FAULTS] or len(body) > self._bytes_max or not self._engine.never_waits:
            return None
        if not self._door.may_write(host, path, date, authorization, kind):
            return None
        known = self._tables.get(folder) or self._keep_table(folder)
        partition_key, row_key = plain_key(partition), plain_key(row)
        if known is None or partition_key is None or row_key is None:
            return None
        table, store = known
        keys = partition_key.decode(), row_key.decode()
        try:
            entity = read_entity(body or b"{}", self._flavour)
            condition = if_match.decode() or None
            change = changes.update(self._kind, keys, entity, condition, self._flavour)
            sent = changes.start(store, change, self._flavour)
        except DbError as error:
            if self._door.is_gone(table, store):
                self._tables.pop(folder, None)
                return None
            refused: Future[Any] = Future()
            refused.set_result(None)
            return Waiting(refused, lambda date_line: None, partial(self._refusal, error))
        return Waiting(
            sent.future,
            partial(self._finish, store, sent, version, client),
            partial(self._otherwise, store, change, sent),
        )

    def _finish(
        self, store: ContainerStore, sent: Sent, version: bytes, client: bytes, date_line: bytes
    ) -> bytes | None:
        if sent.future.exception() is not None:
            return None
        done = store.finish(sent)
        assert done is not None
        etag = etag_of(done.etag).encode()
        return FORMS.fill(version, client, done.charge_ru, etag, date_line)

    def _otherwise(
        self, store: ContainerStore, change: changes.Change, sent: Sent, request: Request
    ) -> Response | None:
        return entities.finish_one(self._service.call_of(request), store, change, sent)

    def _refusal(self, error: DbError, request: Request) -> Response:
        return refusal(self._service.call_of(request), error)

    def _keep_table(self, folder: bytes) -> tuple[str, ContainerStore] | None:
        found = self._door.table(folder)
        if found is None:
            return None
        target, store = found
        return keep(self._tables, folder, (target.table, store))
