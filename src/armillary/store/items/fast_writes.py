"""The short way to begin one create or upsert: a text key at one plain path, known from before.

    body → item → index entries → command to the owner's space        one flat function

As `short_reads.py` it knows the usual case only. Every doubt (a body that is refused, another key
than the caller said, a range that has nothing left in this second) answers None before anything has
happened, and the caller goes the long way, which says what is wrong.

HOT: once per create over HTTP; numbers in bench/http_cost.py; the reference is
`ContainerStore.start`, and tests/property/test_hot_creates.py compares.
"""

from typing import Final, NamedTuple

from armillary.encoding.documents import parse_body
from armillary.encoding.json_model import JSON_MODEL
from armillary.encoding.partition_key import KeyValues
from armillary.engine.base import Command
from armillary.errors import DbError
from armillary.partition.ranges import Range
from armillary.store.catalog.state import ContainerState
from armillary.store.index.entries import index_entries
from armillary.store.items.containers import ContainerStore, Sent, key_in
from armillary.store.items.requests import Key, Op
from armillary.store.rows.secondary import id_part
from armillary.store.throughput.gate import Gate

WRITE: Final = "items.write"


class WriteSpot(NamedTuple):
    """Where the items of one key go, for as long as the state of their container is this one."""

    store: ContainerStore
    state: ContainerState
    owner: Range
    key: Key
    path: str
    """The property that holds the key, and what has to stand there."""
    value: str
    values: KeyValues


def write_spot_of(
    store: ContainerStore, state: ContainerState, values: KeyValues
) -> WriteSpot | None:
    """None: a key that is computed, in several parts, deeper inside, or no text; or values that
    are not JSON."""
    definition = state.definition
    paths = definition.partition_key.paths
    if (
        definition.synthetic_key is not None
        or definition.partition_key.system_key
        or len(paths) != 1
        or len(paths[0]) != 1
        or len(values) != 1
        or type(values[0]) is not str
        or state.model is not JSON_MODEL
    ):
        return None
    epk, key = key_in(state, values)
    owner = state.table.find(epk)
    return WriteSpot(store, state, owner, key, paths[0][0], values[0], values)


def start_write(spot: WriteSpot, kind: str, source: bytes) -> Sent | None:
    """A create or upsert on its way. None: ask the long way."""
    store, state, owner, key, path, value, _ = spot
    try:
        body = parse_body(source)
        item = body.item
        if item.get(path) != value:
            return None
        entries = index_entries(state.plan, item)
        meter = store.meter
        ticket = None if meter is None else meter.admit_read(state, owner, kind, note=False)
        item_id = body.id
        part = id_part(item_id)
        op = Op(kind, item_id, part, body.text, item_id, part, body.ttl or 0, entries)
        command = Command(WRITE, (store.context(state, owner), key, [op]))
        future = store.submit_soon(owner.space, command)
    except DbError:
        return None  # the long way refuses it, and counts that
    return Sent(future, owner, Gate(meter, state, owner, key.json, kind, store.profile, ticket))
