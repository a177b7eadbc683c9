"""From a request to a run: turns, admission, retries after conflicts, charge.

    procedure   read the snapshot ─▶ run ─▶ commit
    write       pre-trigger ─▶ the operation ─▶ post-trigger ─▶ commit      all in one transaction

A conflict with another writer (`Stale`) begins anew with a fresh snapshot, a bounded number of
times. So does a range that moved meanwhile. Nothing else is ever run twice: what a script computes
may depend on chance and time, and a lost answer of the writer is reported as uncertain.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import orjson

from armillary import limits
from armillary.budget import Budget, unbounded
from armillary.encoding.partition_key import KeyValues, check_key
from armillary.engine.base import SpaceGone
from armillary.errors import (
    BadInput,
    DbError,
    Fenced,
    NotFound,
    RangeGone,
    ScriptConflict,
    ScriptFailed,
    ScriptOutOfMemory,
    ScriptTimedOut,
    SnapshotExpired,
    Stale,
)
from armillary.partition.ranges import Range
from armillary.partition.request_units import script_ru
from armillary.scripts.context import OPERATION_TYPES, ScriptContext, alt_link_of, quota, usage
from armillary.scripts.running import Ran, run
from armillary.scripts.runtime import Runtime
from armillary.scripts.transactions.chain import Chain
from armillary.scripts.transactions.transaction import Transaction
from armillary.scripts.turns import Again, UnderWay
from armillary.store.catalog.resources import ResourceRecord
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.items.preparation import Operation
from armillary.store.items.requests import Done, Key
from armillary.store.items.routing import ROUNDS_MAX, key_in
from armillary.store.throughput.gate import Gate
from armillary.values import JSON

ECHO: Final = "__.sys.echo"
ECHO_TEXT: Final = "function (value) { getContext().getResponse().setBody(value); }"
#: Which `triggerOperation` fits a write. Facts: scripts 5.
FITS: Final = {
    "create": {"all", "create"},
    "upsert": {"all", "upsert"},
    "replace": {"all", "replace", "update"},
    "delete": {"all", "delete"},
}


@dataclass(slots=True)
class Executed:
    """What a run came to."""

    response: bytes
    """JSON: the response body."""
    log: str = ""
    charge_ru: float = 0.0
    cpu_seconds: float = 0.0
    writes: list[Done] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)
    """What it wrote: (created, replaced or deleted; id)."""
    lsn: int = 0
    """Of its writes; 0 without any."""
    runs: int = 1
    """More than one after conflicts."""
    done: Done | None = None
    """With triggers: the operation itself."""


@dataclass(frozen=True, slots=True)
class Triggers:
    pre: ResourceRecord | None = None
    post: ResourceRecord | None = None


def execute_procedure(
    runtime: Runtime,
    store: ContainerStore,
    script: ResourceRecord,
    values: KeyValues,
    arguments: bytes,
    *,
    logging: bool = False,
    budget: Budget | None = None,
) -> Future[Executed]:
    """`arguments`: the JSON that the caller sent; empty for none."""
    given = check_arguments(arguments)
    limit = budget or unbounded()

    def work(transaction: Transaction) -> Executed:
        context = ScriptContext(
            script.id,
            transaction,
            alt_link_of(transaction),
            request={},
            response={"Body": ""},
            logging=logging,
            allowed_ru=lambda: allowed_ru(transaction, runtime),
            budget=limit,
        )
        ran = _run(runtime, script, given, context)
        return Executed(ran.response, ran.log, cpu_seconds=ran.cpu_seconds)

    return _submit(runtime, store, values, [script], work)


def execute_write(
    runtime: Runtime,
    store: ContainerStore,
    operation: Operation,
    values: KeyValues,
    triggers: Triggers,
    *,
    budget: Budget | None = None,
) -> Future[Executed]:
    """One create, upsert, replace or delete with its triggers."""
    check_triggers(triggers, operation.kind)
    scripts = [one for one in (triggers.pre, triggers.post) if one is not None]
    limit = budget or unbounded()

    def work(transaction: Transaction) -> Executed:
        cpu_seconds, log = 0.0, ""
        kind = OPERATION_TYPES[operation.kind]
        body = _request_body(transaction, operation)
        asked = operation
        if triggers.pre is not None:
            context = ScriptContext(
                triggers.pre.id,
                transaction,
                alt_link_of(transaction),
                request={"Body": body, "OperationType": kind},
                request_writable=("Body",),
                allowed_ru=lambda: allowed_ru(transaction, runtime),
                budget=limit,
            )
            ran = _run(runtime, triggers.pre, b"[]", context)
            cpu_seconds, log = ran.cpu_seconds, ran.log
            body = orjson.loads(ran.request)
            if operation.kind != "delete":
                if not isinstance(body, dict):
                    raise BadInput("The pre-trigger left a request body that is not an object.")
                asked = Operation(
                    operation.kind, operation.id, body, operation.if_match, operation.if_none_match
                )
        done = transaction.run(asked)
        response = done.text
        if triggers.post is not None:
            context = ScriptContext(
                triggers.post.id,
                transaction,
                alt_link_of(transaction),
                request={"Body": body, "OperationType": kind},
                response={
                    "Body": orjson.loads(done.text) if done.text else "",
                    "ResourceQuotaCurrentUsage": usage(transaction),
                    "MaxResourceQuota": quota(transaction),
                },
                allowed_ru=lambda: allowed_ru(transaction, runtime),
                budget=limit,
            )
            ran = _run(runtime, triggers.post, b"[]", context)
            cpu_seconds += ran.cpu_seconds
            log += ran.log
            response = ran.response
        return Executed(response, log, cpu_seconds=cpu_seconds, done=done)

    return _submit(runtime, store, values, scripts, work)


def check_arguments(arguments: bytes) -> bytes:
    """An array, or what `apply` takes as one: null, an object. Facts: scripts 1.2."""
    if not arguments.strip():
        return b"[]"
    try:
        found = orjson.loads(arguments)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"The arguments of a stored procedure must be JSON: {error}.") from error
    if found is not None and not isinstance(found, list | dict):
        raise BadInput("The arguments of a stored procedure must be a JSON array.")
    return arguments


def check_triggers(triggers: Triggers, kind: str) -> None:
    for trigger, wanted in ((triggers.pre, "Pre"), (triggers.post, "Post")):
        if trigger is None:
            continue
        given = str(trigger.body.get("triggerType"))
        if given.lower() != wanted.lower():
            raise BadInput(
                f"Trigger '{trigger.id}' was defined with type '{given}', and therefore is "
                f"invalid as a {wanted} trigger."
            )
        operation = str(trigger.body.get("triggerOperation"))
        if operation.lower() not in FITS[kind]:
            raise BadInput(
                f"Trigger '{trigger.id}' was defined with operation type '{operation}', and "
                f"therefore is invalid for '{OPERATION_TYPES[kind]}'."
            )


def allowed_ru(transaction: Transaction, runtime: Runtime) -> float:
    """What a run may cost before its operations are no longer accepted: all that its partition
    serves in the longest time a run may take."""
    meter = transaction.store.meter
    if meter is None:
        return math.inf
    now_ms = transaction.store.engine.now_ms()
    allowance = meter.budget_of(transaction.state, transaction.owner, now_ms)
    return math.inf if allowance is None else allowance.ru * runtime.bounds.seconds


# --- inside ---------------------------------------------------------------------------------------


def _submit(
    runtime: Runtime,
    store: ContainerStore,
    values: KeyValues,
    scripts: list[ResourceRecord],
    work: Callable[[Transaction], Executed],
) -> Future[Executed]:
    values = check_key(values, store.state.definition.partition_key)
    for script in scripts:
        runtime.strikes.check(script)
    _, key = key_in(store.state, values)
    turn = (id(store.engine), store.state.container, key.identity)
    return runtime.turns.submit(turn, _Run(runtime, store, values, scripts, work))


class _Run:
    """One run, from its turn to its commit; called again after a conflict."""

    def __init__(
        self,
        runtime: Runtime,
        store: ContainerStore,
        values: KeyValues,
        scripts: list[ResourceRecord],
        work: Callable[[Transaction], Executed],
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._values = values
        self._scripts = scripts
        self._work = work
        self._conflicts = 0
        self._fences = 0
        self._fenced: tuple[ContainerState, Range] | None = None
        self._began = 0.0

    def __call__(self, chain: Chain) -> Executed | UnderWay:
        self._began = self._began or time.monotonic()
        if self._fenced is not None:
            self._store.catch_up(*self._fenced)
            self._fenced = None
        return self._store.retrying_key(self._values, partial(self._attempt, chain))

    def _attempt(
        self, chain: Chain, state: ContainerState, owner: Range, key: Key
    ) -> Executed | UnderWay:
        store, runtime = self._store, self._runtime
        gate = Gate(store.meter, state, owner, key.json, "script", store.profile)
        gate.admit()
        transaction = Transaction(
            store, state, owner, key, self._values, runtime.reservations, chain
        )
        outcome: Executed | DbError
        try:
            try:
                outcome = self._work(transaction)
            except SnapshotExpired:
                outcome = ScriptTimedOut(name=self._scripts[0].id)
            except (Fenced, Stale):
                raise
            except DbError as error:
                outcome = error
            if isinstance(outcome, DbError):
                transaction.abandon()
            commit = transaction.submit()
        finally:
            transaction.close()
        if commit is None:
            return self._finish(gate, transaction, outcome, [])
        return UnderWay(commit, partial(self._settled, commit, gate, transaction, outcome))

    def _settled(
        self,
        commit: Future[list[Done]],
        gate: Gate,
        transaction: Transaction,
        outcome: Executed | DbError,
    ) -> Executed:
        try:
            committed = commit.result()
        except (Fenced, SpaceGone):
            self._fenced = transaction.state, transaction.owner
            self._fences += 1
            raise (Again if self._fences < ROUNDS_MAX else RangeGone) from None
        except Stale:
            raise self._conflict(gate, transaction) from None
        return self._finish(gate, transaction, outcome, committed)

    def _conflict(self, gate: Gate, transaction: Transaction) -> Exception:
        self._conflicts += 1
        space, fences = transaction.owner.space, transaction.state.fences
        self._runtime.reservations.forget(self._store.engine, space, fences[space])
        gate.charge(transaction.charge_ru, status=449)
        late = time.monotonic() - self._began > limits.SCRIPT_RETRY_SECONDS
        if late or self._conflicts >= limits.SCRIPT_RETRIES_MAX:
            return ScriptConflict()
        return Again()

    def _finish(
        self,
        gate: Gate,
        transaction: Transaction,
        outcome: Executed | DbError,
        committed: list[Done],
    ) -> Executed:
        if isinstance(outcome, DbError):
            _fail(self._runtime, self._scripts, gate, transaction, outcome)
            raise outcome
        outcome.runs = self._conflicts + 1
        outcome.charge_ru = script_ru(
            transaction.charge_ru, outcome.cpu_seconds * 1000, profile=gate.profile
        )
        outcome.writes = committed
        outcome.changes = transaction.changes
        outcome.lsn = committed[0].lsn if committed else 0
        _strike(self._runtime, self._scripts, outcome.cpu_seconds)
        gate.charge(outcome.charge_ru)
        return outcome


def _fail(
    runtime: Runtime,
    scripts: list[ResourceRecord],
    gate: Gate,
    transaction: Transaction,
    error: DbError,
) -> None:
    cpu_seconds = float(error.facts.pop("cpu_seconds", 0.0))
    over = isinstance(error, ScriptTimedOut | ScriptOutOfMemory)
    _strike(runtime, scripts, math.inf if over else cpu_seconds)
    ru = script_ru(transaction.charge_ru, cpu_seconds * 1000, profile=gate.profile)
    error.facts.setdefault("charge_ru", ru)
    gate.charge(ru, status=400)


def _strike(runtime: Runtime, scripts: list[ResourceRecord], cpu_seconds: float) -> None:
    if cpu_seconds > runtime.bounds.strike_seconds:
        for script in scripts:
            runtime.strikes.add(script)


def _run(
    runtime: Runtime,
    script: ResourceRecord,
    arguments: bytes,
    context: ScriptContext,
) -> Ran:
    try:
        return run(str(script.body["body"]), arguments, context, context.budget, runtime.pool)
    except ScriptFailed as error:
        error.facts.setdefault("script", script.id)
        raise


def _request_body(transaction: Transaction, operation: Operation) -> Any:
    """What a trigger sees as the request: of a delete the stored item, of a replace with `_self`.
    Facts: scripts 5."""
    body: JSON = None
    if operation.body is not None:
        body = operation.body
        if isinstance(body, bytes | bytearray | str):
            try:
                body = orjson.loads(body)
            except orjson.JSONDecodeError as error:
                raise BadInput(f"The request body is not valid JSON: {error}.") from error
    if operation.kind in ("replace", "delete"):
        try:
            stored = orjson.loads(transaction.run(Operation("read", operation.id)).text)
        except NotFound:
            return body  # the operation itself reports it
        if operation.kind == "delete":
            return stored
        if isinstance(body, dict):
            return {"_self": stored["_self"], "_rid": stored["_rid"]} | body
    return body
