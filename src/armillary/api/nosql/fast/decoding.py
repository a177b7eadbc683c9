"""What the decoders share: the signature, the container that a link names, keys and session tokens.

    groups of a template ──▶ signature ──▶ container ──▶ operation of the store ──▶ filled form

HOT: once per request; numbers in bench/http_cost.py; the general path is the reference, and
tests/property/test_hot_*.py hold that both answer alike. Every doubt (a miss, a moved range, a
token from the future, a signature that is not the first key's) gives None, and the request takes
the general path, which says what is wrong.

Texts that clients repeat are looked up instead of read again: dates, key headers, session tokens,
names. The signature of every request is computed; nothing is remembered about those seen before.
"""

from __future__ import annotations

import binascii
import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from armillary.api.core.fast import DATE, FastDates, keep
from armillary.api.core.gateway import Gateway
from armillary.api.http.encoding import BYTES_MARK, INTEGER_MARK, form_of
from armillary.api.http.messages import Request
from armillary.api.nosql.call import ACTIVITY, format_charge, response_of
from armillary.api.nosql.items.placing import STRONG, item_headers
from armillary.api.nosql.items.sessions import Seen, parse_token
from armillary.api.nosql.options import CONTAINER_RID, KEY
from armillary.errors import DbError
from armillary.partition.ranges import Range
from armillary.store.catalog.controls import FAULTS
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore

NAME: Final = rb"[A-Za-z0-9_.~!$&'()*+,;=:@-]"  # nothing that is escaped, cut or special in a path
ITEMS: Final = rb"/(dbs/%b+/colls/%b+)/docs/?" % (NAME, NAME)
SIGNATURE: Final = slice(len("type%3dmaster%26ver%3d1.0%26sig%3d"), -3)
#: Values that every decoder is given; patterns without groups.
SIGNED: Final = {
    "x-ms-date": DATE,
    "authorization": rb"type%3[dD]master%26ver%3[dD]1\.0%26sig%3[dD][A-Za-z0-9+/%]+%3[dD]",
    ACTIVITY: rb"[!-~]{1,64}",
}
SESSION_TOKEN: Final = {"x-ms-session-token": rb"[0-9:#=,-]+"}
KEYED: Final = {KEY: rb"\[[ -~]*\]", CONTAINER_RID: rb"[!-~]+"}
#: Part of a template: another value is another one.
LEVEL: Final = "x-ms-consistency-level"
#: Sent by SDKs and read by nothing here, whatever they say.
IGNORED: Final = frozenset(
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


class Known(NamedTuple):
    """A container as its link names it, for as long as its state is this one."""

    state: ContainerState
    store: ContainerStore
    """At the prices of the level that its requests read at."""
    rid: bytes
    form: bytes
    kept: dict[Any, Any]
    """What the decoder reads once: by the text of a key header, or of a query."""


class Decoder:
    """The base of the fast paths of `api/http/messages.py`."""

    ignored = IGNORED
    fixed = frozenset({LEVEL})

    def __init__(self, gateway: Gateway, faults: Sequence[int]) -> None:
        """`faults`: the cells of `store/catalog/controls.py`, which every request looks at."""
        self._gateway = gateway
        self._faults = faults
        self._polls = gateway.shared.polls
        self._sign = gateway.keyring.token_signer.sign
        self._lower_date = FastDates(gateway).lower
        self._level = gateway.settings.consistency
        self.waits = gateway.settings.loop_reads
        """For a database: then answers are `Waiting`."""
        self._containers: dict[bytes, Known] = {}
        self._tokens: dict[bytes, dict[int, Seen]] = {}
        self.charges: dict[float, bytes] = {}

    def form(self, store: ContainerStore) -> bytes:
        """Of an answer about this container."""
        raise NotImplementedError

    def is_ours(self, asked: bytes, link: bytes, date: bytes, authorization: bytes) -> bool:
        """Whether our first key signed it, and lately. `asked`: the method and the type of the
        resource, as they are signed."""
        if self._faults[FAULTS] or (self._polls and self._gateway.shared.is_due):
            return False
        lower = self._lower_date(date)
        if lower is None:
            return False
        signature = authorization[SIGNATURE]
        if b"%" in signature:
            signature = signature.replace(b"%2B", b"+").replace(b"%2F", b"/")
            signature = signature.replace(b"%2b", b"+").replace(b"%2f", b"/")
        try:
            given = binascii.a2b_base64(signature + b"=", strict_mode=True)
        except ValueError:
            return False
        return hmac.compare_digest(self._sign(b"%b\n%b\n%b\n\n" % (asked, link, lower)), given)

    def container(self, names: bytes, rid: bytes = b"") -> Known | None:
        """`names`: dbs/<database>/colls/<container>; `rid`: the one that the client means. None:
        the general path has not met it yet, or it is another one."""
        known = self._containers.get(names)
        if known is None or known.store.known_state is not known.state:
            known = self._keep_container(names)
        return None if known is None or (rid and rid != known.rid) else known

    def _keep_container(self, names: bytes) -> Known | None:
        store = self._store(names)
        try:
            if store is None or (self._gateway.settings.loop_reads and store.known_state is None):
                return None  # on the event loop no database is waited for
            store = store.strong if self._level in STRONG else store
            rid = store.state.record.rid.encode()
            return keep(
                self._containers, names, Known(store.state, store, rid, self.form(store), {})
            )
        except DbError:
            return None

    def _store(self, names: bytes) -> ContainerStore | None:
        _, database, _, name = names.decode().split("/")
        return self._gateway.known_container(database, name)

    def is_another(self, names: bytes, known: Known) -> bool:
        """After a failure: whether it was deleted and made again, and lives in another store."""
        store = self._store(names)
        if store is not None and known.store in (store, store.strong):
            return False
        self._containers.pop(names, None)
        return True

    def is_behind(self, token: bytes, owner: Range, version: int, lsn: int) -> bool:
        """Whether the client has seen more of a range than is here."""
        seen = self._tokens.get(token)
        if seen is None:
            try:
                seen = keep(self._tokens, token, parse_token(token.decode()))
            except DbError:
                return True
        now = (version, lsn)
        if seen.get(owner.ordinal, now) > now:
            return True
        return any(seen.get(one, now) > now for one in owner.parents) if owner.parents else False

    def is_at_level(self, headers: Mapping[str, str]) -> bool:
        """Whether a read asks for the level of the account, which the general path need not see."""
        return headers.get(LEVEL, self._level) == self._level

    def charge(self, ru: float) -> bytes:
        return keep(self.charges, ru, format_charge(ru).encode())

    @staticmethod
    def marked(store: ContainerStore, status: int, headers: Callable[..., Any]) -> bytes:
        """The form of an answer: `headers` makes them, given those that name the range."""
        place = item_headers(store, INTEGER_MARK, INTEGER_MARK, INTEGER_MARK)
        return form_of(response_of(status, BYTES_MARK, BYTES_MARK, headers(place)))

    @staticmethod
    def nothing_happened(request: Request) -> None:
        """A read that found nothing on a fast path is asked again, by the general path."""
