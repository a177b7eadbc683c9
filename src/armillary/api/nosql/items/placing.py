"""Where a request about items belongs: its container, its key, its range, and the headers that say
so. Facts: nosql-rest 3.2, 4.1, 4.6."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from urllib.parse import quote

import orjson

from armillary.api.http.messages import Response
from armillary.api.nosql.call import Call
from armillary.api.nosql.items.sessions import (
    Seen,
    check_barrier,
    format_token,
    parse_token,
    seen_of,
)
from armillary.api.nosql.options import RANGE_ID
from armillary.encoding.hashing import epk as epk_of
from armillary.encoding.hashing import parse_epk_hex, prefix_range
from armillary.encoding.partition_key import KeyValues, check_key, key_of
from armillary.engine.base import Reader, SpaceGone
from armillary.engine.replicas import Behind
from armillary.errors import (
    BadInput,
    DbError,
    OwnerNotFound,
    RangeGone,
    SessionNotAvailable,
    Throttled,
    Unavailable,
    WrongContainer,
)
from armillary.limits import SESSION_PARTS_MAX
from armillary.partition.ranges import EPK_MAX, EPK_MIN, Range
from armillary.partition.request_units import miss_ru
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.items.requests import Done
from armillary.store.rows.meta import unpack_meta
from armillary.units import whole_number
from armillary.values import UNDEFINED

SESSION: Final = "Session"

NO_KEY: Final[KeyValues] = ()
STRONG: Final = frozenset({"Strong", "BoundedStaleness"})


@dataclass(frozen=True, slots=True)
class Place:
    """A range and how far it is."""

    owner: Range
    version: int
    lsn: int

    def check(self, seen: dict[int, Seen] | None) -> None:
        if seen is not None:
            check_barrier(seen, self.owner, Seen(self.version, self.lsn))


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
    """The same, for what reads from the primary: at the prices of the level that it reads at."""
    return _priced(store_of(call), _level(call))


def at_level(call: Call, read: Callable[[ContainerStore], Response]) -> Response:
    """`read` where the level of the request allows it: on the replica of the client's region, if
    there is one and it has what the client has seen, else on the primary."""
    store, level = store_of(call), _level(call)
    engine = call.gateway.regions.reading(level, call.host)
    if engine is not None:
        try:
            copy = store.at(engine)
            if level == SESSION:
                _check_known(call, copy)
            return read(_priced(copy, level))
        except (Behind, SpaceGone, SessionNotAvailable, RangeGone, OwnerNotFound, Unavailable):
            pass  # nothing was charged that was not read
    return read(_priced(store, level))


def _check_known(call: Call, store: ContainerStore) -> None:
    """A token may name a range that a replica has not heard of: a split is on its way there. Range
    ids only grow."""
    token = call.options.session_token
    newest = -1 if token is None else max(parse_token(token))
    if newest > max(one.ordinal for one in store.state.table.ranges) and newest > max(
        one.ordinal for one in store.refresh().table.ranges
    ):
        raise Behind


def _level(call: Call) -> str:
    return call.options.level(call.gateway.settings.consistency)


def _priced(store: ContainerStore, level: str) -> ContainerStore:
    return store.strong if level in STRONG else store


def required_key(call: Call, store: ContainerStore) -> KeyValues:
    """The key that the request names. In a container without one it need not: clients of 2018 had
    no header for it."""
    key = call.options.key
    if key is None and store.state.definition.partition_key.system_key:
        return NO_KEY
    if key is None:
        raise BadInput("PartitionKey value must be supplied for this operation.")
    return key


def place_of_key(store: ContainerStore, key: KeyValues) -> Where:
    state = store.state
    definition = state.definition.partition_key
    epk = epk_of(check_key(key, definition), definition)
    return Where(state.table.find(epk), epk)


def is_left_to_server(store: ContainerStore, key: KeyValues | None) -> bool:
    """Whether the key header does not say where an item goes: there is none, or it says "undefined"
    for a synthetic key that the server fills in, or null for a level of a hierarchical one."""
    if key is None:
        return True
    definition = store.state.definition
    if len(definition.partition_key.paths) > 1:
        return None in key  # which may stand for a level that the item lacks
    return key == (UNDEFINED,) and definition.synthetic_key is not None


def key_of_done(store: ContainerStore, done: Done, given: KeyValues | None) -> KeyValues | None:
    """The key of what was written; None when neither the request nor the item says it."""
    if not is_left_to_server(store, given):
        return given
    if not done.text:
        return given
    state = store.state
    return key_of(orjson.loads(done.text), state.definition.partition_key, state.model.key)


# --- headers ------------------------------------------------------------------------------------


def item_headers(
    store: ContainerStore, ordinal: int | str, version: int | str, lsn: int | str
) -> dict[str, str | None]:
    """What every answer about items carries; without them clients stop keeping their session.
    Texts: marks of a form."""
    return {
        "x-ms-session-token": format_token(ordinal, version, lsn),
        RANGE_ID: f"{ordinal}",
        "lsn": f"{lsn}",
        **container_headers(store),
    }


def place_headers(store: ContainerStore, place: Place) -> dict[str, str | None]:
    return item_headers(store, place.owner.ordinal, place.version, place.lsn)


def container_headers(store: ContainerStore) -> dict[str, str | None]:
    database, name = quote(store.database, safe=""), quote(store.name, safe="")
    return {
        "x-ms-alt-content-path": f"dbs/{database}/colls/{name}",
        "x-ms-content-path": store.state.record.rid,
    }


def item_headers_at(call: Call, store: ContainerStore, key: KeyValues) -> dict[str, str | None]:
    return place_headers(store, current_place(call, store, key))


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
        places = _places(store, owners)
    except RangeGone:  # split since; nothing depends on this token
        return headers
    tokens = [format_token(one.owner.ordinal, one.version, one.lsn) for one in places]
    return headers | {"x-ms-session-token": ",".join(tokens)}


def _places(store: ContainerStore, owners: Sequence[Range]) -> list[Place]:
    """How far these ranges are now: one statement where each look would be a round trip."""
    if not store.engine.fences_together or len(owners) < 2:
        return [session_of(store, one) for one in owners]
    rows = store.engine.fences([one.space for one in owners])
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
        place = current_place(call, store, key)
        headers = place_headers(store, place)
        # Of a range without any write the token says nothing, but a client would add it to its
        # session (session.spec of the JavaScript SDK holds that it does not grow). Where there is
        # no other range it can't grow (response_metadata_on_missing_read of the Rust SDK has one).
        if place.lsn or len(store.state.table.ranges) == 1:
            return headers
        return headers | {"x-ms-session-token": None}
    except DbError:  # the key itself is wrong, or the container is gone: the first error says so
        return {}


def barrier_of(call: Call) -> dict[int, Seen] | None:
    """What a read must not go back behind. Only sessions have such a thing: a read at a
    weaker level did not ask for it, and a stronger one sees everything anyway."""
    token = call.options.session_token
    seen = None if token is None else parse_token(token)
    return seen if _level(call) == SESSION else None


def check_barrier_at(call: Call, store: ContainerStore, key: KeyValues) -> None:
    """Before saying "not found": perhaps we are only behind."""
    seen = barrier_of(call)
    if seen is None:
        return

    def read(state: ContainerState, owner: Range, reader: Reader) -> None:
        check_barrier(seen, owner, seen_of(unpack_meta(reader.meta)))

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
        # Alongside bounds too: a token may be good for this key only.
        definition = store.state.definition.partition_key
        low, high = prefix_range(check_key(key, definition, prefix_allowed=True), definition)
        start, end = max(start, low), min(end, high)
    if not start < end:
        raise BadInput("The range of effective partition keys is empty or runs backwards.")
    return Slice(start, end, owner)


def _named_range(call: Call, store: ContainerStore, text: str) -> Range:
    """The range of this id. One that was split or merged is still served to who is in the middle of
    it: our continuation tokens are good on any part of the hash space, while the JavaScript SDK and
    the asynchronous Python SDK lose their place in an ordered query at a 410 (the original has the
    same trouble with them). What begins now is served so for `api.former_ranges_s`; then it, and
    every change feed, hears 410."""
    try:
        return range_of(store, text)
    except RangeGone:
        options, settings = call.options, call.gateway.settings
        begins = options.continuation is None
        if options.feed_mode is not None or (begins and not settings.former_ranges_s):
            raise
        oldest_ms = store.engine.now_ms() - 1000 * settings.former_ranges_s if begins else 0
        former = _former_range(store, int(text), oldest_ms)
        if former is None:
            raise
        return former


def _former_range(store: ContainerStore, ordinal: int, oldest_ms: int) -> Range | None:
    """A range as it was before it was split or merged, in the space of the first that took its
    place. None when it is not remembered, or went before `oldest_ms`."""
    state = store.state
    for one in state.record.former:
        if one.ordinal == ordinal and one.end and one.at_ms >= oldest_ms:
            start, end = parse_epk_hex(one.start), parse_epk_hex(one.end)
            return replace(state.table.find(start), ordinal=ordinal, start=start, end=end)
    return None


def range_of(store: ContainerStore, text: str) -> Range:
    ordinal = whole_number(text)
    if ordinal is None:
        raise BadInput(
            f"x-ms-documentdb-partitionkeyrangeid header contains invalid value '{text}'."
        )
    owner = store.state.table.by_ordinal(ordinal)
    if owner is None:
        owner = store.refresh().table.by_ordinal(ordinal)
    if owner is None:
        raise RangeGone(
            f"PartitionKeyRange with id '{text}' in collection '{store.state.record.rid}' "
            "doesn't exist."
        )
    return owner


def session_of(store: ContainerStore, owner: Range) -> Place:
    """How far a range is now."""
    try:
        with store.engine.read(owner.space) as reader:
            meta = unpack_meta(reader.meta)
    except SpaceGone as error:
        raise RangeGone from error
    return Place(owner, meta.session, meta.lsn)
