"""Every control, in one table: method, path, who answers, and what goes in and out.

The table drives dispatch, authorization and the OpenAPI description. A pattern stands for
`/_armillary/` and what follows; a name in braces is one segment of the path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from armillary.api.control import (
    events,
    faults,
    overview,
    regions,
    resetting,
    snapshots,
    timing,
)
from armillary.api.control.call import ControlCall, answer
from armillary.api.control.openapi import describe
from armillary.api.control.schemas import (
    ACCEPTED,
    ACCOUNT,
    ADVANCE,
    CLOCK,
    DESCRIPTION,
    DISTRIBUTION,
    FAILED_OVER,
    FAILOVER,
    FAULTS,
    GRAPH,
    HEAT,
    KEY_SPEC,
    KEY_SPEC_SET,
    MERGE,
    OPERATION,
    PARTITIONS,
    PROMETHEUS,
    QUERY,
    QUERY_PAGE,
    REKEY,
    REKEY_PROGRESS,
    REMOVED,
    RESET,
    SHARES,
    SNAPSHOT,
    SNAPSHOTS,
    SPLIT,
    SVG,
    TOPOLOGY,
    TRAVERSAL,
    USAGE,
    Schema,
)
from armillary.api.http.messages import Response
from armillary.api.later import later
from armillary.errors import NotFound, UnknownMethod

Handler = Callable[[ControlCall], Response]


@dataclass(frozen=True, slots=True)
class ControlRoute:
    method: str
    pattern: str
    handler: Handler
    name: str
    summary: str
    answer: Schema | None = None
    """None: not JSON; see `media`."""
    body: Schema | None = None
    status: int = 200
    errors: tuple[int, ...] = ()
    """Refusals alongside 400, 401 and 403, which all have."""
    media: str = "application/json"
    options: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """What may stand behind the question mark: name → type, meaning."""
    reads: bool = False
    """A POST that changes nothing: for read-only keys too."""
    segments: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.pattern.split("/")))

    @property
    def writes(self) -> bool:
        return self.method != "GET" and not self.reads


COLL: Final = "dbs/{db}/colls/{coll}"

# What reports and drawings need is imported with the first of them, not with each start.
topology = partial(later, "armillary.api.control.topology")
rekeying = partial(later, "armillary.api.control.rekeying")

ROUTES: Final[tuple[ControlRoute, ...]] = (
    ControlRoute(
        "GET",
        "account",
        overview.read_account,
        "readAccount",
        "Databases and containers, with their keys, throughput and size.",
        ACCOUNT,
    ),
    ControlRoute(
        "GET",
        f"{COLL}/partitions",
        topology("read_partitions"),
        "readPartitions",
        "The physical partitions of a container: ranges, bytes, request units, refusals, top keys.",
        PARTITIONS,
        errors=(404,),
    ),
    ControlRoute(
        "GET",
        f"{COLL}/usage",
        topology("read_usage"),
        "readUsage",
        "What a build may insist on: heaviest keys, what queries ask, refusals, dearest requests.",
        USAGE,
        errors=(404,),
    ),
    ControlRoute(
        "GET",
        f"{COLL}/heat",
        topology("read_heat"),
        "readHeat",
        "What a picture of a container shows: places on the ring, consumption, moves, keys.",
        HEAT,
        options={
            "since": ("integer", "Only bins that begin at this second since 1970 or later."),
            "keys": ("string", "'off' leaves out the keys, which are found by looking."),
        },
        errors=(404,),
    ),
    ControlRoute(
        "GET",
        f"{COLL}/ring.svg",
        topology("draw_ring"),
        "drawRing",
        "The ring of a container as a picture.",
        media=SVG,
        options={"theme": ("string", "'light', 'dark', or 'auto': as the viewer likes it.")},
        errors=(404,),
    ),
    ControlRoute(
        "POST",
        f"{COLL}/split",
        topology("split"),
        "split",
        "Split a physical partition in two: at half of its bytes, or at a given hash.",
        ACCEPTED,
        SPLIT,
        status=202,
        errors=(404, 423),
    ),
    ControlRoute(
        "POST",
        f"{COLL}/merge",
        topology("merge"),
        "merge",
        "Merge neighbouring physical partitions into one.",
        ACCEPTED,
        MERGE,
        status=202,
        errors=(404, 423),
    ),
    ControlRoute(
        "POST",
        f"{COLL}/query",
        later("armillary.api.control.asking", "query"),
        "query",
        "A page of a query over the whole container, with its plan, its charge and its indexes.",
        QUERY_PAGE,
        QUERY,
        errors=(404, 429),
        reads=True,
    ),
    ControlRoute(
        "PUT",
        f"{COLL}/shares",
        topology("redistribute"),
        "redistribute",
        "RU/s for single physical partitions; without any, equal parts again.",
        DISTRIBUTION,
        SHARES,
        errors=(404, 423),
    ),
    ControlRoute(
        "POST",
        f"{COLL}/rekey",
        rekeying("rekey"),
        "rekey",
        "Some steps of a copy into a new container under another partition key; ask again until "
        "there is a report.",
        REKEY_PROGRESS,
        REKEY,
        errors=(404, 409),
    ),
    ControlRoute(
        "GET",
        "operations/{id}",
        topology("read_operation"),
        "readOperation",
        "What became of a split or merge.",
        OPERATION,
        errors=(404,),
    ),
    ControlRoute(
        "GET", "faults", faults.read_faults, "readFaults", "The faults that are set.", FAULTS
    ),
    ControlRoute(
        "PUT",
        "faults",
        faults.replace_faults,
        "replaceFaults",
        "Set the faults that requests of the NoSQL API meet, in the place of those before.",
        FAULTS,
        FAULTS,
    ),
    ControlRoute(
        "GET", "clock", timing.read_clock, "readClock", "The time that the server lives by.", CLOCK
    ),
    ControlRoute(
        "POST",
        "clock",
        timing.advance_clock,
        "advanceClock",
        "Put the clock of all workers ahead, stop it, or let it go on.",
        CLOCK,
        ADVANCE,
    ),
    ControlRoute(
        "GET",
        "topology",
        regions.read_topology,
        "readTopology",
        "Regions, replicas, and which node holds which range.",
        TOPOLOGY,
    ),
    ControlRoute(
        "POST",
        "failover",
        regions.fail_over,
        "failOver",
        "Move the writes to a region, by default to the next by priority.",
        FAILED_OVER,
        FAILOVER,
        errors=(503,),
    ),
    ControlRoute(
        "GET",
        f"{COLL}/key-spec",
        rekeying("read_key_spec"),
        "readKeySpec",
        "The synthetic key of a container, or null.",
        KEY_SPEC_SET,
        errors=(404,),
    ),
    ControlRoute(
        "PUT",
        f"{COLL}/key-spec",
        rekeying("write_key_spec"),
        "writeKeySpec",
        "Give an empty container a synthetic key, or take it away with null.",
        KEY_SPEC_SET,
        KEY_SPEC,
        errors=(404,),
    ),
    ControlRoute(
        "POST",
        "reset",
        resetting.reset,
        "reset",
        "Delete every database, remove all faults, and set the clock right.",
        RESET,
    ),
    ControlRoute(
        "GET",
        "snapshots",
        snapshots.list_snapshots,
        "listSnapshots",
        "The snapshots there are.",
        SNAPSHOTS,
    ),
    ControlRoute(
        "PUT",
        "snapshots/{name}",
        snapshots.take_snapshot,
        "takeSnapshot",
        "Copy the whole account, in the place of a snapshot of that name.",
        SNAPSHOT,
        errors=(409,),
    ),
    ControlRoute(
        "POST",
        "snapshots/{name}/restore",
        snapshots.restore_snapshot,
        "restoreSnapshot",
        "Make the account what it was; all that came later is lost.",
        SNAPSHOT,
        errors=(404,),
    ),
    ControlRoute(
        "DELETE",
        "snapshots/{name}",
        snapshots.delete_snapshot,
        "deleteSnapshot",
        "Remove a snapshot.",
        REMOVED,
        errors=(404,),
    ),
    ControlRoute(
        "GET",
        "metrics",
        later("armillary.api.control.metrics", "read_metrics"),
        "readMetrics",
        "Metrics in the text format of Prometheus. Also at /metrics.",
        media=PROMETHEUS,
    ),
    ControlRoute(
        "GET",
        "events",
        events.read_events,
        "readEvents",
        "Splits, merges and refusals as they happen, as server-sent events.",
        media=events.MEDIA,
        errors=(503,),
    ),
    ControlRoute(
        "GET",
        "openapi.json",
        lambda call: answer(200, describe((*ROUTES, *ELSEWHERE))),
        "readDescription",
        "This description.",
        DESCRIPTION,
    ),
)


def _elsewhere(call: ControlCall) -> Response:
    raise NotFound("This server does not serve graphs.")


#: Under the same prefix, but answered by the service of another protocol; described with the rest.
ELSEWHERE: Final[tuple[ControlRoute, ...]] = (
    ControlRoute(
        "POST",
        f"{COLL}/gremlin",
        _elsewhere,
        "traverse",
        "Run a traversal; its elements with the physical partitions that they lie in.",
        GRAPH,
        TRAVERSAL,
        errors=(404, 429),
    ),
)

#: Other places for the same: where scrapers look by default.
ALIASES: Final[dict[str, tuple[str, ...]]] = {"/metrics": ("metrics",)}


def find_route(method: str, segments: Sequence[str]) -> tuple[ControlRoute, dict[str, str]]:
    matching = [one for one in ROUTES if _matches(one.segments, segments)]
    if not matching:
        raise NotFound(f"There is no control /_armillary/{'/'.join(segments)}.")
    for route in matching:
        if route.method == method:
            pairs = zip(route.segments, segments, strict=True)
            return route, {name[1:-1]: text for name, text in pairs if name[0] == "{"}
    raise UnknownMethod


def _matches(pattern: Sequence[str], segments: Sequence[str]) -> bool:
    return len(pattern) == len(segments) and all(
        name[0] == "{" or name == text for name, text in zip(pattern, segments, strict=True)
    )
