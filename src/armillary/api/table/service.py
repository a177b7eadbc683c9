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

from armillary.api.core.faults import strike
from armillary.api.core.gateway import Gateway
from armillary.api.errors import table_wire
from armillary.api.http.messages import Request, Response
from armillary.api.table.auth.authentication import authenticate
from armillary.api.table.auth.authorization import authorize
from armillary.api.table.call import Call, internal_error, refusal
from armillary.api.table.definitions import TABLES_DB
from armillary.api.table.flavours import COSMOS, FLAVOURS, Flavour
from armillary.api.table.names import check_reference
from armillary.api.table.routes import Route, find_route
from armillary.api.table.wire.targets import parse_parameters, parse_target, split_target
from armillary.config import Settings
from armillary.errors import DbError
from armillary.partition.request_units import metadata_ru
from armillary.store.catalog.controls import FAULTS, SharedControls

log = logging.getLogger("armillary.api")

#: Names by which clients of emulators know an account.
USUAL_ACCOUNTS: Final = ("localhost", "devstoreaccount1")


class TableService:
    def __init__(
        self,
        gateway: Gateway,
        *,
        account: str = "localhost",
        flavour: Flavour = COSMOS,
        shared: SharedControls | None = None,
    ) -> None:
        self.gateway = gateway
        self.account = account
        self.accounts = tuple(dict.fromkeys((account, *USUAL_ACCOUNTS)))
        self.flavour = flavour
        self.shared = shared

    def is_quick(self, request: Request) -> bool:
        """Point reads. By their form alone: the handler finds out about the rest."""
        return (
            request.method == "GET"
            and self.gateway.settings.quick_reads
            and "RowKey=" in request.target
            and not self._has_faults
        )

    def handle(self, request: Request) -> Response:
        bare = Call(self.gateway, request, self.flavour, self.account, method=request.method)
        try:
            return self._answer(bare)
        except DbError as error:
            return refusal(bare, error)
        except Exception:
            log.exception("a bug: %s %s", request.method, request.target)
            return internal_error(bare)

    def close(self) -> None:
        """Nothing of its own: who made the gateway closes it."""

    @property
    def _has_faults(self) -> bool:
        return self.shared is not None and bool(self.shared.cells[FAULTS])

    def _answer(self, bare: Call) -> Response:
        call, route = self._routed(bare)
        if self.shared is not None and self._has_faults:
            strike(self.shared, route.operation, lambda: (TABLES_DB, call.target.table))
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
        call = replace(bare, target=target, parameters=parameters, caller=caller, method=method)
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
    account = getattr(settings.server, "account", "localhost")
    flavour = getattr(getattr(settings, "table", None), "flavour", "cosmos")
    shared = getattr(gateway, "shared", None)
    return TableService(gateway, account=account, flavour=FLAVOURS[flavour], shared=shared)
