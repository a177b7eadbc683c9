"""The demonstration on a server: the same readings under a bad and a good key, written on and on.

    telemetry/by-country   six values, one popular: hot, refused, full, and it can't be halved
    telemetry/by-device    four hundred values: even, and it splits as it grows

Both get the same readings at the same time, through the public API, at a rate that the good key
serves with ease: what is refused is refused because of the key. The readings come round: after
`READINGS_KEPT` each one replaces an older one, so that it can go on for as long as one likes. What
is shown comes from the server's own statistics. Without a server there is one of its own, in
memory, with partitions small enough to split within seconds; it ends with the demonstration.
"""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Final
from urllib.parse import urlencode

import orjson
import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from armillary.commands.demo.terminal import readings
from armillary.commands.remote import Remote, path_of
from armillary.errors import Conflict, Forbidden, Throttled
from armillary.ring.model import Ring, read
from armillary.ring.words import amount
from armillary.units import bytes_text

DATABASE: Final = "telemetry"
#: Container and its partition key: the bad one first.
KEYS: Final = (("by-country", "country"), ("by-device", "deviceId"))
THROUGHPUT: Final = 2400
READINGS_LIVE: Final = 600
READINGS_KEPT: Final = 2_000
READINGS_PER_SECOND: Final = 100
LOOK_SECONDS: Final = 1.0
PIECE: Final = 20
OPTIONS: Final = ("--partition-bytes", "250KB", "--partition-ru", "400", "--logical-bytes", "500KB")
KEY_FULL: Final = 1014  # the sub-status of 403 for a partition key at its size limit


@dataclass(slots=True)
class Tally:
    done: int = 0
    refused: int = 0
    full: int = 0
    """Refused because the partition key is at its size limit."""


@dataclass(slots=True)
class Pace:
    """So many readings a second, whatever the machine could do; behind, it does not hurry."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _due: float = 0.0

    def wait(self, readings: int) -> None:
        now = self.now()
        self._due = max(self._due, now) + readings / READINGS_PER_SECOND
        self.sleep(max(0.0, self._due - now))


def run_live(
    address: str | None,
    items: int,
    seconds: float,
    *,
    browser: bool,
    as_json: bool,
    pace: Pace | None = None,
) -> None:
    pace = pace or Pace()
    console = Console(quiet=as_json)
    with _server(address) as (connection, portal), Remote(connection) as remote:
        _create(remote)
        link = _link(portal, KEYS[0][0])
        console.print(f"Server      {remote.endpoint}")
        console.print(f"Bad key     {link}", soft_wrap=True)
        console.print(f"Good key    {_link(portal, KEYS[1][0])}", soft_wrap=True)
        console.print(
            f"{items:,} readings, then {seconds:,.0f} seconds more, "
            f"{READINGS_PER_SECOND} a second under both keys. Ctrl-C ends it.\n"
        )
        tallies = {name: Tally() for name, _ in KEYS}
        stream = _endless()
        if browser and not as_json:
            webbrowser.open(link)
        rings = {name: _look(remote, name) for name, _ in KEYS}
        try:
            with Live(console=console, auto_refresh=False) as live:
                left, end = items, pace.now() + seconds
                while left > 0 or pace.now() < end:
                    live.update(_draw(rings, tallies), refresh=True)
                    until = pace.now() + LOOK_SECONDS
                    while pace.now() < until and (left > 0 or pace.now() < end):
                        number = PIECE if left <= 0 else min(PIECE, left)
                        _write(remote, stream, number, tallies)
                        pace.wait(number)
                        left -= number
                        if left == 0:
                            end = pace.now() + seconds
                    rings = {name: _look(remote, name) for name, _ in KEYS}
                live.update(_draw(rings, tallies), refresh=True)
        except KeyboardInterrupt:
            console.print("Stopped.")
        console.print(_moral(tallies))
        if as_json:
            typer.echo(orjson.dumps({name: _facts(rings[name], tallies[name]) for name in rings}))


@contextmanager
def _server(address: str | None) -> Iterator[tuple[str, str]]:
    """(connection string, link to the portal)"""
    if address is not None:
        yield address, Remote(address).endpoint + "/_portal"
        return
    from armillary.testing.process import start_server

    with start_server(enforce=True, options=OPTIONS) as own:
        yield own.connection_string, own.portal


def _link(portal: str, container: str) -> str:
    """To the page of a container, with the token where there is one."""
    root, _, token = portal.partition("?")
    place = urlencode({"db": DATABASE, "c": container})
    return f"{root}/partitions?{place}{f'&{token}' if token else ''}"


def _create(remote: Remote) -> None:
    _unless_there(remote, "dbs", {"id": DATABASE}, {})
    for name, path in KEYS:
        key = {"paths": [f"/{path}"], "kind": "Hash", "version": 2}
        body = {"id": name, "partitionKey": key}
        headers = {"x-ms-offer-throughput": str(THROUGHPUT)}
        _unless_there(remote, path_of("dbs", DATABASE, "colls"), body, headers)


def _unless_there(remote: Remote, path: str, body: Any, headers: dict[str, str]) -> None:
    try:
        remote.rest("POST", path, body, headers)
    except Conflict:
        return  # of an earlier demonstration: it goes on


def _endless() -> Iterator[dict[str, Any]]:
    """The same readings again and again, each time with another temperature."""
    kept = [{**item, "note": "x" * 400} for item in readings(READINGS_KEPT)]
    for turn in count():
        for item in kept:
            yield {**item, "turn": turn}


def _write(
    remote: Remote, stream: Iterator[dict[str, Any]], number: int, tallies: dict[str, Tally]
) -> None:
    for _ in range(number):
        item = next(stream)
        for name, path in KEYS:
            headers = {
                "x-ms-documentdb-partitionkey": orjson.dumps([item[path]]).decode(),
                "x-ms-documentdb-is-upsert": "true",
            }
            try:
                remote.rest("POST", path_of("dbs", DATABASE, "colls", name, "docs"), item, headers)
                tallies[name].done += 1
            except Throttled:
                tallies[name].refused += 1  # that is what one came to see
            except Forbidden as error:
                if error.facts.get("sub_status") != KEY_FULL:
                    raise
                tallies[name].full += 1  # and that is how it ends for a key that is too coarse


def _look(remote: Remote, name: str) -> Ring:
    path = path_of("dbs", DATABASE, "colls", name)
    return read(remote.control("GET", f"{path}/heat"))


def _facts(ring: Ring, tally: Tally) -> dict[str, Any]:
    return {
        "items": ring.items,
        "bytes": ring.bytes,
        "partitions": len(ring.arcs),
        "fullest_by_mean": None if ring.skew is None else round(ring.skew, 2),
        "hottest_percent": ring.hottest.normalised,
        "written": tally.done,
        "refused": tally.refused,
        "refused_full": tally.full,
    }


def _draw(rings: dict[str, Ring], tallies: dict[str, Tally]) -> RenderableType:
    table = Table(box=None, padding=(0, 2), header_style="dim", pad_edge=False)
    table.add_column("")
    for name, path in KEYS:
        table.add_column(f"{name}  /{path}", justify="right")
    both = [(rings[name], tallies[name]) for name, _ in KEYS]
    rows = (
        ("written", [amount(tally.done) for _, tally in both]),
        ("refused with 429", [amount(tally.refused) for _, tally in both]),
        ("refused: key is full", [amount(tally.full) for _, tally in both]),
        ("stored", [bytes_text(ring.bytes) for ring, _ in both]),
        ("physical partitions", [f"{len(ring.arcs):,}" for ring, _ in both]),
        ("fullest ÷ mean", [f"{ring.skew or 0:.2f}" for ring, _ in both]),
        ("hottest", [f"{ring.hottest.normalised:.0f} %" for ring, _ in both]),
        ("heaviest key", [_heaviest(ring) for ring, _ in both]),
    )
    for label, cells in rows:
        table.add_row(Text(label, style="dim"), *cells)
    return Group(table)


def _moral(tallies: dict[str, Tally]) -> str:
    """What one has seen, and where to go from here."""
    lines = ["", "The same readings, refused:"]
    for name, path in KEYS:
        tally = tallies[name]
        full = f", {tally.full:,} with 403: the key is at its size limit" if tally.full else ""
        lines.append(f"  /{path:<10} {tally.refused:,} with 429{full}")
    return "\n".join(
        [
            *lines,
            "Your own data:  armillary advise items.jsonl        which key to take",
            "A server:       armillary serve                     its portal has these pages",
        ]
    )


def _heaviest(ring: Ring) -> str:
    if not ring.keys:
        return "–"
    return f"{ring.keys[0].label} {ring.keys[0].ru_share:.0%}"
