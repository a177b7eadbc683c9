"""One request from its text to its last partial response.

    compile ─▶ may they? ─▶ run ─▶ chunks of 64: 206, 206, … 200      or a failure, at any moment

What was written before a failure stays: a traversal is no transaction (gremlin reference 6).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from time import monotonic, perf_counter, thread_time
from typing import Any, Final

import orjson

from armillary.api.core.faults import strike
from armillary.api.core.gateway import Gateway
from armillary.api.core.request_log import log_request
from armillary.api.core.streams import ClientGone, Send
from armillary.api.errors import log_damage
from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.evaluation import compile_script, new_run, results
from armillary.api.gremlin.graph.costs import Costs
from armillary.api.gremlin.graph.neighbours import Kept, Neighbours
from armillary.api.gremlin.graph.small import Tape, TooLarge
from armillary.api.gremlin.graph.store import StoreGraph
from armillary.api.gremlin.length import is_short, may_be_small
from armillary.api.gremlin.login import Login
from armillary.api.gremlin.machine.values import weigh
from armillary.api.gremlin.profile import Profile
from armillary.api.gremlin.steps.building import Program, walk
from armillary.api.gremlin.steps.filters import HasStep
from armillary.api.gremlin.steps.moves import ElementsStep
from armillary.api.gremlin.wire.graphson import to_json
from armillary.api.gremlin.wire.requests import GremlinRequest
from armillary.api.gremlin.wire.responses import OK, PARTIAL, failure, response
from armillary.budget import Budget
from armillary.clock import MayNotWait
from armillary.config import GremlinSettings
from armillary.errors import Abandoned, DbError, Forbidden, NotFound, OutOfTime, OverBudget
from armillary.limits import (
    GREMLIN_CHUNK_BYTES_MAX,
    GREMLIN_CHUNK_ITEMS,
    GREMLIN_TRAVERSER_STEPS_MAX,
)
from armillary.store.catalog.controls import FAULTS
from armillary.store.catalog.graphs import graph_key
from armillary.store.items.containers import ContainerStore

log = logging.getLogger("armillary.api.gremlin")
CHUNK_ITEMS_MAX: Final = 1000
GRAPHS_KEPT_MAX: Final = 16  # whose keys are remembered
SCRIPT_SHOWN: Final = 200  # characters of a script in the log
#: What a traversal may use on an event loop before it goes on in a thread.
HERE_SECONDS: Final = 0.01  # of the processor
HERE_BYTES: Final = 1024 * 1024
HERE_STEPS: Final = 8192


@dataclass(frozen=True, slots=True)
class Context:
    """What all requests of one server share."""

    gateway: Gateway
    settings: GremlinSettings
    random: Random
    _kept: Kept = field(default_factory=Kept)
    _neighbours: dict[tuple[str, str], Neighbours] = field(default_factory=dict)

    def neighbours(self, login: Login) -> Neighbours:
        """For all traversals of a graph."""
        name = (login.database, login.graph)
        found = self._neighbours.get(name)
        if found is None:
            if len(self._neighbours) >= GRAPHS_KEPT_MAX:
                self._neighbours.clear()
            kept = self._kept if self.gateway.settings.quick_reads else None
            found = self._neighbours.setdefault(name, Neighbours(kept))
        return found

    def new_uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))


class Execution:
    """A request that waits or runs. Its budget may be cancelled from another thread at any time;
    its time begins with `run`."""

    def __init__(self, context: Context, request: GremlinRequest) -> None:
        self._context = context
        self._request = request
        self._costs = Costs()
        self._told_ru = 0.0
        self._began = self._told_at = perf_counter()
        self._activity = context.new_uuid()
        self._tape: Tape | None = None
        self.budget = Budget(
            bytes_max=context.settings.memory, steps_max=GREMLIN_TRAVERSER_STEPS_MAX
        )

    @property
    def is_short(self) -> bool:
        return is_short(self._request.text("gremlin"))

    @property
    def may_be_small(self) -> bool:
        return not self._request.is_tagged and may_be_small(self._request.text("gremlin"))

    def _seconds(self, most: float) -> float:
        asked = self._request.args.get("evaluationTimeout")
        if isinstance(asked, int | float) and not isinstance(asked, bool) and asked > 0:
            return min(most, asked / 1000)
        return most

    def run(self, login: Login, send: Callable[[bytes], None]) -> None:
        """Sends every response message. Raises nothing but ClientGone."""
        self._login = login
        self._began = self._told_at = perf_counter()
        try:
            self._run(send, self.budget)
        finally:
            if self._tape is not None:
                self._tape.clear()

    def run_here(self, login: Login) -> list[bytes] | None:
        """The same on an event loop, if the traversal turns out to be small: all its messages.
        None: `run` it in a thread; elements that were read are kept for it."""
        context = self._context
        shared = context.gateway.shared
        if shared.polls or shared.cells[FAULTS] or not context.gateway.settings.quick_reads:
            return None
        self._login = login
        self._began = self._told_at = perf_counter()
        tape = self._tape = Tape()
        messages: list[bytes] = []
        budget = Budget(
            deadline=thread_time() + HERE_SECONDS,
            bytes_max=HERE_BYTES,
            steps_max=HERE_STEPS,
            now=thread_time,
        )
        try:
            self._run(messages.append, budget)
        except (TooLarge, MayNotWait, OverBudget, OutOfTime):
            tape.rewind()
            self._told_ru = 0.0
            return None
        tape.clear()
        return messages

    def _run(self, send: Callable[[bytes], None], budget: Budget) -> None:
        request = self._request
        status = OK
        try:
            request = self._request = request.untagged()
            if budget is self.budget:
                budget.deadline = monotonic() + self._seconds(self._context.settings.seconds)
            for code, chunk in self._chunks(budget):
                send(response(request.mime, request.id, code, self._attributes(code), chunk))
        except (ClientGone, TooLarge, MayNotWait):
            raise
        except Abandoned as error:  # the client has left, or the server ends
            raise ClientGone from error
        except Exception as error:
            if budget is not self.budget and isinstance(error, OverBudget | OutOfTime):
                raise
            if isinstance(error, RecursionError):  # a side effect may hold itself
                error = ScriptError("A value is nested too deeply, or holds itself.")
            if not isinstance(error, DbError | ScriptError):
                log.exception("a bug: %s", request.args.get("gremlin"))
            if isinstance(error, DbError):
                log_damage(error, request.args.get("gremlin"))
                self._costs.charge_ru += float(error.facts.get("charge_ru", 0.0))
            attributes = self._attributes(500)
            message, status = failure(request.mime, request.id, error, self._activity, attributes)
            send(message)
        self._note(status)

    # --- the traversal ----------------------------------------------------------------------------

    def _chunks(self, budget: Budget) -> Iterator[tuple[int, list[Any]]]:
        """(status, results as JSON): the last one is 200, even without results."""
        size = self._chunk_items()
        waiting: list[Any] = []
        waiting_bytes = 0
        for values in self._values(budget):
            for value in values:
                if waiting and (len(waiting) >= size or waiting_bytes >= GREMLIN_CHUNK_BYTES_MAX):
                    yield PARTIAL, waiting
                    waiting, waiting_bytes = [], 0
                if type(value) is str:
                    waiting.append(value)
                    waiting_bytes += len(value)
                    continue
                # Once, and not again with the chunk: it also says how large the chunk becomes.
                text = orjson.dumps(value)
                waiting.append(orjson.Fragment(text))
                waiting_bytes += len(text)
        yield OK, waiting

    def _chunk_items(self) -> int:
        asked = self._request.args.get("batchSize")
        if type(asked) is int and asked > 0:
            return min(asked, CHUNK_ITEMS_MAX)
        return GREMLIN_CHUNK_ITEMS

    def _values(self, budget: Budget) -> Iterator[list[Any]]:
        """Batches of results as JSON."""
        context, request = self._context, self._request
        text = request.args.get("gremlin")
        bindings = request.args.get("bindings") or {}
        if not isinstance(text, str) or not isinstance(bindings, dict):
            raise ScriptError("The request needs a 'gremlin' script.", "malformed")
        strict = context.settings.strict
        program = compile_script(text, bindings, strict=strict)
        if program.writes and not self._login.may_write:
            raise Forbidden
        is_here = budget is not self.budget
        if is_here and not _may_be_small(program):
            raise TooLarge
        self._strike(program)
        store = self._store()
        name = graph_key(store.state.definition.partition_key)
        graph = StoreGraph(
            store,
            name,
            context.new_uuid,
            guarded=_compares_etags(program),
            neighbours=context.neighbours(self._login),
            tape=self._tape,
            budget=budget,
        )
        graph.costs = self._costs
        graph.writer.costs = self._costs
        run = new_run(program, graph, budget, context.random, strict=strict)
        if program.profile:
            yield list(Profile(text, run, self._costs).values(program))
            return
        system = run.system
        for batch in results(program, run):
            weigh(batch, budget)
            yield [one if type(one) is str else to_json(one, system) for one in batch]

    def _store(self) -> ContainerStore:
        return self._context.gateway.container(self._login.database, self._login.graph)

    def _strike(self, program: Program) -> None:
        """Faults that a test asked for."""
        shared = self._context.gateway.shared
        if shared.polls:
            shared.poll()
        if shared.cells[FAULTS]:
            login = self._login
            operation = "query"
            if program.writes:
                kinds = {step.name for step in walk(program.steps)}
                operation = next(
                    (each for name, each in OPERATIONS.items() if name in kinds), "query"
                )
            strike(shared, operation, lambda: (login.database, login.graph))

    # --- what is said about it --------------------------------------------------------------------

    def _attributes(self, code: int) -> dict[str, Any]:
        """Of one response message: what it cost, and what all of them have cost so far."""
        now = perf_counter()
        total_ru = self._costs.charge_ru
        found = {
            "x-ms-status-code": code,
            "x-ms-request-charge": round(total_ru - self._told_ru, 4),
            "x-ms-total-request-charge": round(total_ru, 4),
            "x-ms-server-time-ms": round((now - self._told_at) * 1000, 4),
            "x-ms-total-server-time-ms": round((now - self._began) * 1000, 4),
            "x-ms-activity-id": self._activity,
        }
        self._told_ru, self._told_at = total_ru, now
        return found

    def _note(self, status: int) -> None:
        """For the request log and the list of dearest queries."""
        gateway, login = self._context.gateway, self._login
        text = str(self._request.args.get("gremlin", ""))
        if gateway.settings.logs_requests:
            log_request({
                "Method": "eval",
                "Path": f"{login.database}/{login.graph}",
                "StatusCode": status,
                "DurationMs": round((perf_counter() - self._began) * 1000, 2),
                "RequestCharge": round(self._costs.charge_ru, 2),
                "ActivityId": self._activity,
                "Script": text[:SCRIPT_SHOWN],
            })  # fmt: skip
        meter = gateway.account.meter
        if meter is None or not self._costs.charge_ru:
            return
        try:
            state = self._store().state
        except NotFound:
            return
        meter.note_query(state, text, self._costs.ranges, self._costs.charge_ru)


#: Which kind of operation a writing script counts as, for faults.
OPERATIONS: Final = {"addV": "create", "addE": "create", "drop": "delete", "property": "replace"}


def _may_be_small(program: Program) -> bool:
    """It reads, and begins at elements that are named by key and id."""
    first = program.steps[0]
    return (
        not program.writes
        and not program.profile
        and isinstance(first, ElementsStep)
        and bool(first.ids)
        and all(isinstance(one, tuple) for one in first.ids)
    )


def _compares_etags(program: Program) -> bool:
    return "_etag" in program.system and any(
        isinstance(step, HasStep) and step.key == "_etag" for step in walk(program.steps)
    )


__all__ = ["Context", "Execution", "Send"]
