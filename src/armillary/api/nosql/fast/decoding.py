"""What the decoders share: the signature, the container that a link names, session tokens, and the
form of an answer.

    groups of a template ──▶ signature ──▶ container ──▶ `ask`: the store ──▶ Outcome ──▶ form

HOT: once per request; numbers in bench/http_cost.py; the general path is the reference, and
tests/property/test_hot_*.py hold that both answer alike. Every doubt (a miss, a moved range, a
token from the future, a signature that is not the first key's) gives None, and the request takes
the general path, which reports what is wrong.

Texts that clients repeat are looked up instead of read again: dates, key headers, session tokens,
names. The signature of every request is computed; nothing is remembered about those seen before.
"""

from __future__ import annotations

import binascii
import hmac
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from armillary.api.core.fast import DATE, keep, new_activity
from armillary.api.core.gateway import Gateway
from armillary.api.http.encoding import BYTES_MARK, INTEGER_MARK, STATUS_LINES, form_of
from armillary.api.http.messages import Request, Response, Waiting
from armillary.api.nosql.call import ACTIVITY, format_charge, response_of
from armillary.api.nosql.items.placing import STRONG, item_headers
from armillary.api.nosql.items.sessions import Seen, check_barrier, parse_token
from armillary.api.nosql.options import CONTAINER_RID
from armillary.engine.base import SpaceGone
from armillary.errors import DbError
from armillary.partition.ranges import Range
from armillary.store.catalog.controls import FAULTS
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore

NAME: Final = rb"[A-Za-z0-9_.~!$&'()*+,;=:@-]"  # nothing that is escaped, cut or special in a path
SIGNATURE: Final = slice(len("type%3dmaster%26ver%3d1.0%26sig%3d"), -3)
LEVEL: Final = "x-ms-consistency-level"
OK: Final = STATUS_LINES[200].encode()


class Known(NamedTuple):
    """A container as its link names it, for as long as its state is this one."""

    store: ContainerStore
    """At the prices of the level that requests read at."""
    state: ContainerState
    rid: bytes
    form: bytes
    """Of an answer; the status line is its first value."""
    kept: dict[Any, Any]
    """What a decoder reads once: by the text of a key header, or of a query."""


Outcome: TypeAlias = tuple[bytes, float, tuple[Any, ...], int, int, int, bytes]
"""What an operation gave: status line, RU, values of the headers that only its answers have, range
id, session version, LSN, body."""


Own: TypeAlias = tuple[bytes, ...]


class Pending(NamedTuple):
    """An operation that waits for nothing but `future`: `end` gives what became of it, or None for
    `otherwise` to answer."""

    future: Future[Any]
    end: Callable[[], Outcome | None]
    otherwise: Callable[[Request], Response | None] = lambda request: None


class Decoder:
    """A fast path of `api/http/messages.py`; `operations.py` has the kinds."""

    method = "POST"
    has_body = True
    target = rb"/((dbs/%b+/colls/%b+))/docs/?()" % (NAME, NAME)  # link, container, no item
    signed = b"post\ndocs"  # method and type of the resource
    captured: Mapping[str, bytes] = {
        "x-ms-date": DATE,
        "authorization": rb"type%3[dD]master%26ver%3[dD]1\.0%26sig%3[dD][A-Za-z0-9+/%]+%3[dD]",
        ACTIVITY: rb"[!-~]{1,64}",
        CONTAINER_RID: rb"[!-~]+",
        "x-ms-session-token": rb"[0-9:#=,-]+",
    }
    fixed = frozenset({LEVEL})
    #: Sent by SDKs and read by nothing here, whatever they say.
    ignored = frozenset(
        {
            "cache-control",
            "content-type",
            "x-ms-client-id",
            "x-ms-cosmos-correlated-activityid",
            "x-ms-cosmos-sdk-supportedcapabilities",
            "x-ms-documentdb-query-iscontinuationexpected",
            "x-ms-thinclient-proxy-operation-type",
            "x-ms-thinclient-proxy-resource-type",
            "x-ms-version",
        }
    )

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._faults = gateway.shared.cells
        self._polls = gateway.shared.polls
        self._keyring = gateway.keyring
        self._sign = gateway.keyring.token_signer.sign
        self._level = gateway.settings.consistency
        self.waits = gateway.settings.loop_reads
        """For a database: then answers are `Waiting`."""
        self._containers: dict[bytes, Known] = {}
        self._tokens: dict[bytes, dict[int, Seen]] = {}
        self._charges: dict[float, bytes] = {}

    def headers(self, place: Mapping[str, str | None]) -> Mapping[str, str | None]:
        """Those of an answer, with marks, given those that name the range."""
        raise NotImplementedError

    def ask(self, known: Known, item: bytes, token: bytes, own: Own) -> Outcome | Pending | None:
        """The operation, asked of the store. `own`: the headers that only this kind captures, and
        the body. Raises DbError, SpaceGone: the general path answers, as for None."""
        raise NotImplementedError

    def accepts(self, request: Request) -> bool:
        """A read at another level than the account's takes the general path."""
        return request.headers.get(LEVEL, self._level) == self._level

    def answer(self, date_line: bytes, *groups: bytes) -> bytes | Waiting | None:
        link, names, item, date, authorization, activity, rid, token = groups[:8]
        try:
            if not self._is_ours(link, date, authorization):
                return None
            known = self._containers.get(names)
            if known is None or known.store.known_state is not known.state:
                known = self._keep_container(names)
            if known is None or (rid and rid != known.rid):
                return None
            found = self.ask(known, item, token, groups[8:])
        except (DbError, SpaceGone):
            return None
        if isinstance(found, Pending):
            ended = partial(self._ended, known, activity, found.end)
            return Waiting(found.future, ended, found.otherwise)
        return None if found is None else self._filled(known, activity, found, date_line)

    def _ended(
        self, known: Known, activity: bytes, end: Callable[[], Outcome | None], date_line: bytes
    ) -> bytes | None:
        try:
            found = end()
        except (DbError, SpaceGone):
            return None
        return None if found is None else self._filled(known, activity, found, date_line)

    def _filled(self, known: Known, activity: bytes, found: Outcome, date_line: bytes) -> bytes:
        status_line, ru, own, ordinal, version, lsn, body = found
        charge = self._charges.get(ru) or keep(self._charges, ru, format_charge(ru).encode())
        first = status_line, activity or new_activity().encode(), charge
        place = ordinal, version, lsn, ordinal, lsn
        return known.form % (*first, *own, *place, date_line, len(body), body)

    def _is_ours(self, link: bytes, date: bytes, authorization: bytes) -> bool:
        """Whether our first key signed it. Raises DbError if not lately."""
        gateway = self._gateway
        if self._faults[FAULTS] or (self._polls and gateway.shared.is_due):
            return False
        lower = self._keyring.check_date(date, gateway.wall_ms() // 1000)
        signature = authorization[SIGNATURE]
        if b"%" in signature:
            signature = signature.replace(b"%2B", b"+").replace(b"%2F", b"/")
            signature = signature.replace(b"%2b", b"+").replace(b"%2f", b"/")
        try:
            given = binascii.a2b_base64(signature + b"=", strict_mode=True)
        except ValueError:
            return False
        payload = b"%b\n%b\n%b\n\n" % (self.signed, link, lower)
        return hmac.compare_digest(self._sign(payload), given)

    def _keep_container(self, names: bytes) -> Known | None:
        """None: the general path has not met it yet, or a database would be asked."""
        _, database, _, name = names.decode().split("/")
        store = self._gateway.known_container(database, name)
        if store is None or (self._polls and store.known_state is None):
            return None
        store = store.strong if self._level in STRONG else store
        state, place = store.state, item_headers(store, INTEGER_MARK, INTEGER_MARK, INTEGER_MARK)
        form = form_of(response_of(200, BYTES_MARK, BYTES_MARK, self.headers(place)))
        form = b"%b" + form.removeprefix(OK)
        known = Known(store, state, state.record.rid.encode(), form, {})
        return keep(self._containers, names, known)

    def check_session(self, token: bytes, owner: Range, version: int, lsn: int) -> None:
        """As the general path: raises what it raises if the client has seen more than is here."""
        seen = self._tokens.get(token) or keep(self._tokens, token, parse_token(token.decode()))
        check_barrier(seen, owner, Seen(version, lsn))
