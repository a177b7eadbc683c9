"""The Table API of one worker: a request in, a response out, never an exception.

    1  target     path and query string; what they name
    2  who        SharedKey, SharedKeyLite, a shared access signature
    3  route      kind of target and method → a row of the table
    4  may they   read-only key, permissions of a signature
    5  handler    translation to the store
    6  refusal    an error of ours becomes a status and an OData error; anything else is a bug

`make_service` is what a server calls, once per worker process.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from armillary.api.core.fast import BODY_BYTES_MAX
from armillary.api.core.faults import strike
from armillary.api.core.gateway import Gateway
from armillary.api.errors import table_wire
from armillary.api.http.messages import Begun, Request, Response, Service
from armillary.api.table.auth.authentication import authenticate
from armillary.api.table.auth.authorization import authorize
from armillary.api.table.call import Call, internal_error, refusal
from armillary.api.table.fast.reads import FastReads
from armillary.api.table.fast.requests import METHODS, EntityRequests
from armillary.api.table.fast.upserts import KINDS, FastUpserts
from armillary.api.table.flavours import COSMOS, FLAVOURS, Flavour
from armillary.api.table.names import check_reference
from armillary.api.table.routes import Route, find_route
from armillary.api.table.wire.targets import parse_parameters, parse_target, split_target
from armillary.clock import MayNotWait
from armillary.config import Settings
from armillary.errors import DbError
from armillary.partition.request_units import metadata_ru
from armillary.store.catalog.controls import FAULTS
from armillary.store.catalog.tables import TABLES_DB

log = logging.getLogger("armillary.api")

#: Names by which clients of emulators know an account.
USUAL_ACCOUNTS: Final = ("localhost", "devstoreaccount1")
#: The names of the request log.
LOGGED: Final = {
    "create": "Create",
    "query": "Query",
    "read": "Read",
    "replace": "Replace",
    "patch": "Patch",
    "delete": "Delete",
    "batch": "Batch",
}


class TableService(Service):
    def __init__(self, gateway: Gateway, flavour: Flavour = COSMOS) -> None:
        self.gateway = gateway
        self.account = gateway.settings.login
        self.accounts = tuple(dict.fromkeys((self.account, *USUAL_ACCOUNTS)))
        self.flavour = flavour
        self._faults = gateway.shared.cells  # 0: there are none
        if gateway.settings.quick_reads and not gateway.settings.cors_origins:
            ways = (False, True)
            self._fast_paths = (
                *(FastReads(self, secure=secure) for secure in ways),
                *(
                    FastUpserts(self, one, BODY_BYTES_MAX, secure=secure)
                    for one in KINDS
                    for secure in ways
                ),
                *(EntityRequests(self, one, secure=secure) for one in METHODS for secure in ways),
            )

    def is_quick(self, request: Request) -> bool:
        """Point reads. By their form alone: the handler finds out about the rest."""
        return (
            request.method == "GET"
            and self.gateway.settings.quick_reads
            and "RowKey=" in request.target
            and not self._faults[FAULTS]  # one of them may be a delay
        )

    def lane(self, request: Request) -> str | None:
        """Queries: the table."""
        if request.method != "GET" or "RowKey=" in request.target:
            return None
        return split_target(request.target)[0]

    def screen(self, request: Request) -> Response | None:
        """A signature is over the headers: a body without one need not be read."""
        path, query = split_target(request.target)
        try:
            authenticate(
                self.gateway,
                request,
                path,
                parse_parameters(query),
                self.accounts,
                storage=self.flavour.is_storage,
            )
        except DbError as error:
            return refusal(self._bare(request), error)
        return None

    def handle(self, request: Request) -> Response:
        bare = self._bare(request)
        try:
            if self.gateway.shared.polls:
                self.gateway.shared.poll()
            return self._answer(bare)
        except DbError as error:
            return refusal(bare, error)
        except MayNotWait:  # on the event loop
            raise
        except Exception:
            log.exception("a bug: %s %s", request.method, request.target)
            return internal_error(bare)

    def begin(self, request: Request) -> Begun | Response | None:
        """A small write of one entity, as far as it goes without waiting for the writer."""
        if (
            request.method == "GET"
            or len(request.body) > BODY_BYTES_MAX
            or not self.gateway.settings.quick_reads
            or not self.gateway.engine.never_waits
            or self._faults[FAULTS]
        ):
            return None
        bare = self._bare(request)
        try:
            call, route = self._routed(bare)
            return None if route.begin is None else route.begin(call)
        except DbError as error:
            return refusal(bare, error)

    def operation_name(self, request: Request) -> str | None:
        path, query = split_target(request.target)
        try:
            parameters = parse_parameters(query)
            target = parse_target(path, self.accounts, is_service="restype" in parameters)
            method = request.headers.get("x-http-method", request.method).upper()
            bare = replace(self._bare(request), target=target, parameters=parameters, method=method)
            return LOGGED.get(find_route(bare).operation, "Metadata")
        except DbError:
            return None

    def call_of(self, request: Request) -> Call:
        """Of a request that was let in before."""
        return self._routed(self._bare(request))[0]

    def _bare(self, request: Request) -> Call:
        return Call(self.gateway, request, self.flavour, self.account, method=request.method)

    def _answer(self, bare: Call) -> Response:
        call, route = self._routed(bare)
        if self._faults[FAULTS]:
            shared = self.gateway.shared
            strike(shared, route.operation, lambda: (TABLES_DB, call.target.table))
        if route.operation != "metadata":
            return route.handler(call)
        return self._counted(call, route)

    def _routed(self, bare: Call) -> tuple[Call, Route]:
        request = bare.request
        path, query = split_target(request.target)
        parameters = parse_parameters(query)
        storage = self.flavour.is_storage
        caller = authenticate(
            self.gateway, request, path, parameters, self.accounts, storage=storage
        )
        target = parse_target(path, self.accounts, is_service="restype" in parameters)
        method = request.method
        if method == "POST":
            method = request.headers.get("x-http-method", "POST").upper()
        call = Call(
            self.gateway, request, self.flavour, self.account, target, parameters, caller, method
        )
        if target.kind in ("entities", "entity"):
            check_reference(call, target.table)
        route = find_route(call)
        authorize(call, route)
        return call, route

    def _counted(self, call: Call, route: Route) -> Response:
        """Requests about tables count among those about databases and containers."""
        meter = self.gateway.account.meter
        if meter is None:
            return route.handler(call)
        try:
            meter.admit_metadata(metadata_ru(write=route.writes))
            response = route.handler(call)
        except DbError as error:
            meter.note_metadata(table_wire(error).status)
            raise
        meter.note_metadata(response.status)
        return response


def make_service(gateway: Gateway, settings: Settings) -> TableService:
    """What the server's registry names."""
    return TableService(gateway, FLAVOURS[settings.table.flavour])
