"""What happens to the topology, as server-sent events: splits, merges, refusals.

    event: split            data: {"status": "started" | "succeeded", "database": …, "parents": […]}
    event: merge            the same
    event: throttled        data: {"database": …, "container": …, "partition": "0", "count": 12}

Nothing is recorded for it. Each reader compares the catalog and the counters, which all workers
share, with what it saw before: so it hears of everything, also of other processes, and an absent
reader costs nothing. What happened without a listener is in the partitions themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import orjson

from armillary.api.control.call import ControlCall
from armillary.api.core.gateway import Gateway
from armillary.api.http.messages import Streaming
from armillary.engine.base import SpaceGone
from armillary.errors import DbError, NotFound
from armillary.query.run.bounds import query_budget
from armillary.store.catalog.records import ContainerRecord
from armillary.values import JSON

log = logging.getLogger("armillary.control")

MEDIA: Final = "text/event-stream"
QUIET_POLLS_MAX: Final = 30
"""Then a comment is sent, so that a reader that has gone is noticed."""


def read_events(call: ControlCall) -> Streaming:
    watch = Watch(call.gateway)
    return Streaming(
        200,
        {"Content-Type": MEDIA, "Cache-Control": "no-store"},
        b"retry: 1000\n\n",
        more=watch.poll,
    )


@dataclass(slots=True)
class _Seen:
    """A container as it was at the last look."""

    ordinals: frozenset[int]
    moving: frozenset[tuple[int, ...]]
    refused: dict[int, int] = field(default_factory=dict)


class Watch:
    """One reader's picture. Of the first look only what is under way is reported."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._seen: dict[str, _Seen] = {}
        self._quiet = 0
        self._first = True

    def poll(self) -> bytes:
        try:
            text = b"".join(self._look())
        except DbError as error:  # the engine is away for a moment; the reader waits with us
            log.debug("events: %s", error)
            return b""
        if self._first:
            self._first = False
            return b": watching\n\n" + text
        self._quiet = 0 if text else self._quiet + 1
        if self._quiet >= QUIET_POLLS_MAX:
            self._quiet = 0
            return b": still here\n\n"
        return text

    def _look(self) -> Iterator[bytes]:
        account, budget = self._gateway.account, query_budget()
        found: dict[str, _Seen] = {}
        for database in account.list_databases(budget):
            with suppress(NotFound):  # deleted since
                for record in account.list_containers(database.id, budget):
                    before = self._seen.get(record.rid)
                    seen = found[record.rid] = _Seen(
                        frozenset(one.ordinal for one in record.ranges),
                        frozenset(tuple(sorted(move.parents)) for move in record.moves),
                        self._refused(record, before),
                    )
                    yield from self._changes(record, before, seen)
        self._seen = found

    def _changes(
        self, record: ContainerRecord, before: _Seen | None, seen: _Seen
    ) -> Iterator[bytes]:
        if before is None:
            before = _Seen(seen.ordinals, frozenset(), {} if not self._first else seen.refused)
        done = _descended(record, before.ordinals)
        started = (seen.moving - before.moving) | (set(done) - before.moving)
        for parents in sorted(started):
            yield _moved(record, "started", parents, ())
        for parents, children in sorted(done.items()):
            yield _moved(record, "succeeded", parents, children)
        for ordinal, count in sorted(seen.refused.items()):
            more = count - before.refused.get(ordinal, 0)
            if more > 0:
                body: JSON = _whose(record) | {"partition": str(ordinal), "count": more}
                yield _event("throttled", body)

    def _refused(self, record: ContainerRecord, before: _Seen | None) -> dict[int, int]:
        meter = self._gateway.account.meter
        if meter is None:
            return {}
        try:
            store = self._gateway.container(record.database, record.id)
            return meter.refusals(store.refresh())
        except (NotFound, SpaceGone):
            return {} if before is None else before.refused


def _descended(
    record: ContainerRecord, before: frozenset[int]
) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Parents that were there and are no more → the ranges in their place."""
    now = {one.ordinal for one in record.ranges}
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    for one in record.ranges:
        parents = tuple(sorted((set(one.parents) & before) - now))
        if one.ordinal not in before and parents:
            found[parents] = (*found.get(parents, ()), one.ordinal)
    return found


def _whose(record: ContainerRecord) -> dict[str, JSON]:
    return {"database": record.database, "container": record.id}


def _moved(
    record: ContainerRecord, status: str, parents: tuple[int, ...], children: tuple[int, ...]
) -> bytes:
    body = _whose(record) | {
        "status": status,
        "parents": [str(one) for one in parents],
        "children": [str(one) for one in sorted(children)],
    }
    return _event("split" if len(parents) == 1 else "merge", body)


def _event(name: str, body: JSON) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(body))
