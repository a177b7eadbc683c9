"""Where a request about items belongs: its container, its key, its range, and the headers that say
so. Facts: nosql-rest 3.2, 4.1, 4.6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from urllib.parse import quote

import orjson

from armillary.api.nosql.call import Call
from armillary.api.nosql.items.sessions import Seen, check_barrier, format_token, parse_token
from armillary.encoding.hashing import epk as epk_of
from armillary.encoding.hashing import parse_epk_hex, prefix_range
from armillary.encoding.partition_key import KeyValues, check_key, key_of
from armillary.engine.base import Reader, SpaceGone
from armillary.errors import BadInput, DbError, RangeGone, Throttled, WrongContainer
from armillary.limits import SESSION_PARTS_MAX
from armillary.partition.ranges import EPK_MAX, EPK_MIN, Range
from armillary.partition.request_units import miss_ru
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.items.requests import Done
from armillary.store.rows.meta import Meta, unpack_meta
from armillary.values import UNDEFINED

SESSION: Final = "Session"
NEVER_MERGED: Final = -1  # the session version of a range; merges raise it

STRONG: Final = frozenset({"Strong", "BoundedStaleness"})


@dataclass(frozen=True, slots=True)
class Place:
    """A range and how far it is."""

    owner: Range
    version: int
    lsn: int

    def check(self, seen: dict[int, Seen] | None, meta: Meta) -> None:
        if seen is not None:
            check_barrier(seen, self.owner, meta)


class Where(NamedTuple):
    owner: Range
    epk: bytes


class Slice(NamedTuple):
    """A part of the hashes that a feed or query is about."""

    start: bytes
    end: bytes
    owner: Range | None
    """The range the client named, if it did."""


def store_of(call: Call) -> ContainerStore:
    store = call.gateway.container(call.names[0], call.names[1])
    wanted = call.options.container_rid
    if wanted is None or wanted == store.state.record.rid:
        return store
    if wanted != store.refresh().record.rid:
        raise WrongContainer
    return store


def read_store_of(call: Call) -> ContainerStore:
    """The same, for what reads: at the prices of the level that it reads at."""
    store = store_of(call)
    level = call.options.level(call.gateway.settings.consistency)
    return store.strong if level in STRONG else store


def required_key(call: Call) -> KeyValues:
    key = call.options.key
    if key is None:
        raise BadInput("PartitionKey value must be supplied for this operation.")
    return key


def place_of_key(store: ContainerStore, key: KeyValues) -> Where:
    state = store.state
    definition = state.definition.partition_key
    epk = epk_of(check_key(key, definition), definition)
    return Where(state.table.find(epk), epk)


def is_left_to_server(store: ContainerStore, key: KeyValues | None) -> bool:
    """Whether the key header says nothing about where the item is: there is none, or it says
    "undefined" for a synthetic key that the server fills in."""
    if key is None:
        return True
    return key == (UNDEFINED,) and store.state.definition.synthetic_key is not None


def key_of_done(store: ContainerStore, done: Done, given: KeyValues | None) -> KeyValues | None:
    """The key of what was written; None when neither the request nor the item says it."""
    if not is_left_to_server(store, given):
        return given
    if not done.text:
        return None
    state = store.state
    return key_of(orjson.loads(done.text), state.definition.partition_key, state.model.key)


# --- headers ------------------------------------------------------------------------------------


def item_headers(store: ContainerStore, place: Place) -> dict[str, str | None]:
    """What every answer about items carries; without them clients stop keeping their session."""
    return {
        "x-ms-session-token": format_token(place.owner.ordinal, place.version, place.lsn),
        "x-ms-documentdb-partitionkeyrangeid": str(place.owner.ordinal),
        "lsn": str(place.lsn),
        **container_headers(store),
    }


def container_headers(store: ContainerStore) -> dict[str, str | None]:
    database, name = quote(store.database, safe=""), quote(store.name, safe="")
    return {
        "x-ms-alt-content-path": f"dbs/{database}/colls/{name}",
        "x-ms-content-path": store.state.record.rid,
    }


def item_headers_at(call: Call, store: ContainerStore, key: KeyValues) -> dict[str, str | None]:
    return item_headers(store, current_place(call, store, key))


def current_place(call: Call, store: ContainerStore, key: KeyValues) -> Place:
    """The range of a key, as far as it is now."""

    def read(state: ContainerState, owner: Range, reader: Reader) -> Place:
        meta = unpack_meta(reader.meta)
        return Place(owner, meta.session, meta.lsn)

    return store.look(place_of_key(store, key).epk, read)


def session_headers(
    call: Call, store: ContainerStore, owners: Sequence[Range]
) -> dict[str, str | None]:
    """The token has a part for each range, so that a session goes on behind an operation over all
    of them; no more parts than a header can hold."""
    headers = container_headers(store)
    if len(owners) > SESSION_PARTS_MAX:
        return headers
    try:
        places = _places(call, owners)
    except RangeGone:  # split since; nothing depends on this token
        return headers
    tokens = [format_token(one.owner.ordinal, one.version, one.lsn) for one in places]
    return headers | {"x-ms-session-token": ",".join(tokens)}


def _places(call: Call, owners: Sequence[Range]) -> list[Place]:
    """How far these ranges are now: one statement where each look would be a round trip."""
    fences = getattr(call.gateway.engine, "fences", None)
    if fences is None or len(owners) < 2:
        return [session_of(call, one) for one in owners]
    rows = fences([one.space for one in owners])
    if len(rows) < len(owners):
        raise RangeGone
    metas = [(one, unpack_meta(rows[one.space])) for one in owners]
    return [Place(one, meta.session, meta.lsn) for one, meta in metas]


@contextmanager
def placed(call: Call, store: ContainerStore, key: KeyValues | None) -> Iterator[None]:
    """What fails inside is answered with the headers of its range all the same."""
    try:
        yield
    except DbError as error:
        error.facts.setdefault("headers", _failure_headers(call, store, key))
        if not isinstance(error, Throttled):
            error.facts.setdefault("charge_ru", miss_ru(profile=store.profile))
        raise


def _failure_headers(
    call: Call, store: ContainerStore, key: KeyValues | None
) -> dict[str, str | None]:
    try:
        if key is None or is_left_to_server(store, key):
            return container_headers(store)
        return item_headers_at(call, store, key)
    except DbError:  # the key itself is wrong, or the container is gone: the first error says so
        return {}


def barrier_of(call: Call) -> dict[int, Seen] | None:
    """What a read must not go back behind. Only sessions have such a thing: whoever reads at a
    weaker level did not ask for it, and a stronger one sees everything anyway."""
    token = call.options.session_token
    seen = None if token is None else parse_token(token)
    level = call.options.level(call.gateway.settings.consistency)
    return seen if level == SESSION else None


def check_barrier_at(call: Call, store: ContainerStore, key: KeyValues) -> None:
    """Before saying "not found": perhaps we are only behind."""
    seen = barrier_of(call)
    if seen is None:
        return

    def read(state: ContainerState, owner: Range, reader: Reader) -> None:
        check_barrier(seen, owner, unpack_meta(reader.meta))

    store.look(place_of_key(store, key).epk, read)


# --- parts of a container -----------------------------------------------------------------------


def slice_of(call: Call, store: ContainerStore) -> Slice:
    """What the headers leave of the container: a range, a part of it, a key, or everything."""
    options = call.options
    owner = None if options.range_id is None else _named_range(call, store, options.range_id)
    start, end = (EPK_MIN, EPK_MAX) if owner is None else (owner.start, owner.end)
    if options.epk_bounds is not None:
        low, high = map(parse_epk_hex, options.epk_bounds)
        if owner is not None and not (owner.start <= low and high <= owner.end):
            raise RangeGone  # it was split; the client looks again and asks both children
        start, end = low, high
    if (key := options.key) is not None:
        # Beside bounds too: a token may be good for this key only.
        definition = store.state.definition.partition_key
        low, high = prefix_range(check_key(key, definition, prefix_allowed=True), definition)
        start, end = max(start, low), min(end, high)
    if not start < end:
        raise BadInput("The range of effective partition keys is empty or runs backwards.")
    return Slice(start, end, owner)


def _named_range(call: Call, store: ContainerStore, text: str) -> Range:
    """The range of this id. One that was split is still served to who is in the middle of it: our
    continuation tokens are good on any part of the hash space, while the JavaScript SDK and the
    asynchronous Python SDK lose their place in an ordered query at a 410 (the original has the
    same trouble with them). What begins now, and every change feed, hears 410."""
    try:
        return range_of(store, text)
    except RangeGone:
        if call.options.continuation is None or call.options.feed_mode is not None:
            raise
        former = _former_range(call, store, int(text))
        if former is None:
            raise
        return former


def _former_range(call: Call, store: ContainerStore, ordinal: int) -> Range | None:
    """What a range was before it was split: its descendants lie side by side. None when one of
    them comes from a merge, and so may reach beyond it."""
    heirs = [one for one in store.state.table.ranges if ordinal in one.parents]
    if not heirs or any(call.gateway.session_version(one.space) != NEVER_MERGED for one in heirs):
        return None
    return replace(heirs[0], ordinal=ordinal, end=heirs[-1].end)


def range_of(store: ContainerStore, text: str) -> Range:
    if not (text.isascii() and text.isdigit()):
        raise BadInput(
            f"x-ms-documentdb-partitionkeyrangeid header contains invalid value '{text}'."
        )
    owner = store.state.table.by_ordinal(int(text))
    if owner is None:
        owner = store.refresh().table.by_ordinal(int(text))
    if owner is None:
        raise RangeGone(
            f"PartitionKeyRange with id '{text}' in collection '{store.state.record.rid}' "
            "doesn't exist."
        )
    return owner


def session_of(call: Call, owner: Range) -> Place:
    """How far a range is now."""
    try:
        with call.gateway.engine.read(owner.space) as reader:
            meta = unpack_meta(reader.meta)
    except SpaceGone as error:
        raise RangeGone from error
    return Place(owner, meta.session, meta.lsn)
