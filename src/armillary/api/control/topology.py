"""Physical partitions: looking at them, splitting and merging them, and what became of it.

An operation needs no record of its own. Range ids are never used twice, so the catalog always tells
how it went: a move that replaces the parents is under way, or there are ranges that descend from
them, or neither. That holds for every worker, and after a restart.

    split.mHkXAO9oGEw.3      ranges 3 of the container with that rid
    merge.mHkXAO9oGEw.4-5
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from armillary.api.control.call import ControlCall, answer
from armillary.api.control.schemas import SVG
from armillary.api.http.messages import Response
from armillary.encoding.hashing import parse_epk_hex
from armillary.engine.base import CATALOG_SPACE
from armillary.errors import BadInput, NotFound
from armillary.ring.model import read as read_ring
from armillary.ring.style import THEMES
from armillary.ring.svg import ring_svg
from armillary.store.catalog.records import ContainerRecord
from armillary.store.catalog.resources import find_owner
from armillary.store.items.containers import ContainerStore
from armillary.store.moves.runner import begin_merge, begin_split
from armillary.store.reports.heat import as_json, heat_report
from armillary.store.reports.partitions import partition_report
from armillary.store.reports.usage import usage_report
from armillary.store.throughput.provisioned import evenly_distribute, redistribute_throughput
from armillary.units import whole_number

SVG_HEADERS: Final = {
    "Content-Type": SVG,
    "Cache-Control": "no-store",
    # It has names in it that others chose. They are escaped; should one slip through, it is inert.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
}
ID: Final = re.compile(r"(split|merge)\.([A-Za-z0-9+-]{11})\.(\d{1,9}(?:-\d{1,9})*)")


def read_partitions(call: ControlCall) -> Response:
    return answer(200, asdict(partition_report(call.container(), call.budget)))


def read_usage(call: ControlCall) -> Response:
    return answer(200, asdict(usage_report(call.container(), call.budget)))


def read_heat(call: ControlCall) -> Response:
    options = call.options("since", "keys")
    since, keys = options.get("since", "0"), options.get("keys", "on")
    since_s = whole_number(since, digits=11)
    if since_s is None:
        raise BadInput("'since' is a time in whole seconds since 1970.")
    if keys not in ("on", "off"):
        raise BadInput("'keys' is 'on' or 'off'.")
    limits = call.gateway.account.limits
    report = heat_report(
        call.container(),
        limits,
        since_s=since_s,
        with_keys=keys == "on",
        budget=call.budget,
    )
    return answer(200, as_json(report))


def draw_ring(call: ControlCall) -> Response:
    theme = call.options("theme").get("theme", "auto")
    if theme not in THEMES:
        raise BadInput(f"'theme' is one of {', '.join(THEMES)}.")
    limits = call.gateway.account.limits
    report = heat_report(call.container(), limits, budget=call.budget)
    picture = ring_svg(read_ring(as_json(report)), theme)
    return Response(200, SVG_HEADERS.copy(), picture.encode())


def split(call: ControlCall) -> Response:
    store = call.container()
    body = call.document("id", "at")
    ordinal = _ordinal(body.get("id"))
    at = body.get("at")
    if at is not None and not (isinstance(at, str) and at):
        raise BadInput("'at' is a hash in hexadecimal digits, such as 1FFFFFFF.")
    move = begin_split(store, ordinal, None if at is None else parse_epk_hex(at))
    call.controls.run_later(move)
    return _accepted(store, "split", [ordinal])


def merge(call: ControlCall) -> Response:
    store = call.container()
    ids = call.document("ids").get("ids")
    if not isinstance(ids, list) or len(ids) < 2:
        raise BadInput("'ids' is a list of two or more physical partitions to merge.")
    ordinals = [_ordinal(one) for one in ids]
    if len(set(ordinals)) != len(ordinals):
        raise BadInput("'ids' names a physical partition twice.")
    move = begin_merge(store, ordinals)
    call.controls.run_later(move)
    return _accepted(store, "merge", sorted(ordinals))


def redistribute(call: ControlCall) -> Response:
    """Throughput partition by partition; without shares, in equal parts again."""
    store = call.container()
    shares = call.document("shares").get("shares")
    if not isinstance(shares, dict):
        raise BadInput("'shares' gives physical partitions RU/s, such as {\"0\": 5000}.")
    if shares:
        wanted = {_ordinal(one): _ru(ru) for one, ru in shares.items()}
        offer = redistribute_throughput(store, wanted, of=call.gateway.account.limits)
    else:
        offer = evenly_distribute(store)
    if call.gateway.account.meter is not None:
        call.gateway.account.meter.forget(store.state)
    if offer.pending is not None:
        call.gateway.scale_later(store)
    found = offer.distribution([one.ordinal for one in store.state.table.ranges])
    return answer(
        200,
        {
            "throughput": offer.ru,
            "shares": {str(ordinal): ru for ordinal, ru in found.shares},
            "pending": offer.pending is not None,
        },
    )


def _ru(given: object) -> int:
    if type(given) is int and given > 0:
        return given
    raise BadInput(f"RU/s are a positive whole number, not {given!r}.")


def read_operation(call: ControlCall) -> Response:
    parts = ID.fullmatch(call.names["id"])
    if parts is None:
        raise NotFound(f"There is no operation {call.names['id']!r}.")
    parents = [int(one) for one in parts[3].split("-")]
    with call.gateway.engine.read(CATALOG_SPACE) as reader:
        record = find_owner(reader, f"{parts[2]}=")
    if not isinstance(record, ContainerRecord) or not set(parents) <= set(range(record.ordinals)):
        raise NotFound(f"There is no operation {call.names['id']!r}, or its container has gone.")
    status, children = _became(record, parents)
    return answer(
        200,
        {
            "operation": call.names["id"],
            "kind": parts[1],
            "status": status,
            "database": record.database,
            "container": record.id,
            "parents": [str(one) for one in parents],
            "children": [str(one) for one in children],
        },
    )


def _became(record: ContainerRecord, parents: list[int]) -> tuple[str, list[int]]:
    for move in record.moves:
        if sorted(move.parents) == parents:
            return "running", [one.ordinal for one in move.children]
    heirs = [one for one in record.ranges if set(parents) <= set(one.parents)]
    if heirs:
        return "succeeded", sorted(one.ordinal for one in heirs)
    return "failed", []


def _ordinal(given: object) -> int:
    ordinal = whole_number(given, digits=9) if isinstance(given, str) else None
    if ordinal is not None:
        return ordinal
    raise BadInput(f'A physical partition is named by its id, a string such as "0"; not {given!r}.')


def _accepted(store: ContainerStore, kind: str, parents: Sequence[int]) -> Response:
    rid = store.state.record.rid.removesuffix("=")
    name = f"{kind}.{rid}.{'-'.join(map(str, parents))}"
    headers = {"Location": f"/_armillary/operations/{name}"}
    return answer(202, {"operation": name, "status": "running"}, headers)
