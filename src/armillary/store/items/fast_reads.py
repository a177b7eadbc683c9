"""The short way to one item: a text key under hash V2, no time to live.

    key → hash → range → id → item        one flat function

It either finds the item or knows nothing: every doubt (a miss, a moved range, an odd key or id)
answers None, and the caller goes the long way, which says what is wrong. Being admitted twice then
costs nothing; only what is found here is charged here.

HOT: once per point read in process; numbers in bench/store.py; the long way is the reference.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import orjson

from armillary.encoding.documents import BODY_BYTES, DIGEST_SLICE, EPK_AT, EPK_LENGTH_AT
from armillary.encoding.hashing import locate
from armillary.encoding.partition_key import KeyValues
from armillary.engine.base import SpaceGone
from armillary.errors import Throttled
from armillary.partition.ranges import Range
from armillary.store.catalog.state import ContainerState, place_key
from armillary.store.items.containers import ContainerStore
from armillary.store.rows.layout import DOC, ID
from armillary.store.rows.meta import FENCE_BYTES
from armillary.store.rows.secondary import ID_CUT_BYTES
from armillary.store.throughput.charges import ReadPrices
from armillary.store.throughput.meter import Meter

_ID_WHOLE = b"\x00"
ReadVia: TypeAlias = Callable[[int, bytes, bytes], tuple[bytes, bytes | None, bytes | None]]


def read_json(store: ContainerStore, item_id: str, key: str) -> bytes | None:
    """The item's JSON, or None: ask the long way."""
    state = store.known_state
    if state is None or not state.is_plain:
        return None
    if not key.isascii() or not item_id.isascii() or len(item_id) > ID_CUT_BYTES:
        return None
    epk, digest = locate((key,), state.definition.partition_key)
    table = state.table
    owner = table.ranges[bisect_right(table.starts, epk) - 1]
    space = owner.space
    meter = store.meter
    ticket = None if meter is None else meter.admit_read(state, owner)
    try:
        meta, _, value = store.engine.read_via(space, ID + epk + _ID_WHOLE + item_id.encode(), DOC)
    except SpaceGone:
        return None
    if value is None or meta[:FENCE_BYTES] != state.fences[space] or value[DIGEST_SLICE] != digest:
        return None
    if ticket is not None:
        assert meter is not None
        size = BODY_BYTES.unpack_from(value)[0]
        meter.charge_read(state, owner, orjson.dumps([key]), store.read_prices[size], ticket)
    return value[EPK_AT + value[EPK_LENGTH_AT] :]


class Spot(NamedTuple):
    """Where the items of one key are, for as long as the state of their container is this one."""

    state: ContainerState
    owner: Range
    space: int
    prefix: bytes
    """What stands before an id."""
    digest: bytes
    key: bytes
    fence: bytes
    read_via: ReadVia
    meter: Meter | None
    prices: ReadPrices


def spot_of(store: ContainerStore, state: ContainerState, values: KeyValues) -> Spot | None:
    """None: items may expire there, which is for the long way."""
    if state.definition.default_ttl:
        return None
    place = place_key(values, state.definition.partition_key)
    owner = state.table.find(place.epk)
    fence = state.fences[owner.space]
    prefix = ID + place.row + _ID_WHOLE
    read_via, meter = store.engine.read_via, store.meter
    digest, key = place.digest, place.json
    return Spot(
        state, owner, owner.space, prefix, digest, key, fence, read_via, meter, store.read_prices
    )


def read_spot(spot: Spot, item_id: bytes) -> tuple[bytes, bytes] | None:
    """(meta row, stored value); `item_id` has ID_CUT_BYTES at most. None: ask the long way.
    HOT: once per point read over HTTP."""
    state, owner, space, prefix, digest, key, fence, read_via, meter, prices = spot
    try:
        ticket = None if meter is None else meter.admit_read(state, owner, note=False)
    except Throttled:
        return None  # the long way refuses it, and counts it
    try:
        meta, _, value = read_via(space, prefix + item_id, DOC)
    except SpaceGone:
        return None
    if value is None or meta[:FENCE_BYTES] != fence or value[DIGEST_SLICE] != digest:
        return None
    if ticket is not None:
        assert meter is not None
        meter.charge_read(state, owner, key, prices[BODY_BYTES.unpack_from(value)[0]], ticket)
    return meta, value
