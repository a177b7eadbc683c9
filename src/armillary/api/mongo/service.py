"""The MongoDB API in one worker: what its sessions share, and the way from a request to a reply.

1  which command, does it exist        commands/
2  has the client logged in, may it write
3  faults that a test asked for
4  the handler, within its time        60 s, or maxTimeMS
5  errors of the store get their codes api/errors.py
"""

from __future__ import annotations

import itertools
import logging
import time
from random import Random
from typing import TYPE_CHECKING, Final

from bson.datetime_ms import DatetimeMS
from bson.int64 import Int64
from bson.objectid import ObjectId
from bson.raw_bson import RawBSONDocument
from bson.timestamp import Timestamp

from armillary.api.core.faults import strike
from armillary.api.core.gateway import Gateway
from armillary.api.core.streams import Later, Peer, Session, StreamService
from armillary.api.errors import log_damage
from armillary.api.mongo.call import Attempt, Call, Client
from armillary.api.mongo.commands.table import COMMANDS, UNSUPPORTED
from armillary.api.mongo.data.collections import Collections
from armillary.api.mongo.errors import TRANSIENT, MongoError, failed, mongo_error
from armillary.api.mongo.language import Language
from armillary.api.mongo.login import Credentials
from armillary.api.mongo.request_lines import code_of, log_command
from armillary.api.mongo.settings import Settings
from armillary.api.mongo.wire.messages import Request
from armillary.budget import Budget
from armillary.config import Settings as ServerSettings
from armillary.encoding.bson.values import Document, encode, is_number, number_of
from armillary.errors import DbError, Throttled
from armillary.limits import MONGO_OPERATION_SECONDS

if TYPE_CHECKING:
    from armillary.api.mongo.fast.finds import Find

log = logging.getLogger("armillary.mongo")

THROTTLED_ROUNDS: Final = 60
HELLO: Final = frozenset({"hello", "isMaster", "ismaster"})


class Service:
    def __init__(self, gateway: Gateway, settings: Settings) -> None:
        self.gateway = gateway
        self.engine = gateway.engine
        self.settings = settings
        self.collections = Collections(gateway)
        self.credentials = Credentials(
            frozenset({settings.account, gateway.settings.account}),
            gateway.settings.keys,
            gateway.settings.read_only_keys,
            settings.scram_iterations,
        )
        self.finds: dict[bytes, Find] = {}
        """By the pattern of their template; on the event loop only."""
        self.random = Random()
        self.process_id = ObjectId()
        self._connections = itertools.count(1)
        self._second = -1
        self._times: Document = {}
        self._time_elements = b""
        self.closing = False

    def open(self, peer: Peer) -> Session:
        from armillary.api.mongo.session import MongoSession

        return MongoSession(self, peer, next(self._connections))

    def close(self) -> None:
        self.closing = True

    def language(self, variables: Document | None = None, budget: Budget | None = None) -> Language:
        return Language(
            DatetimeMS(self.engine.now_ms()),
            variables or {},
            self.settings.strict,
            budget or Budget(),
            self.random.random,
            ObjectId,
        )

    # --- one command ---

    def run(self, client: Client, request: Request, attempt: Attempt) -> Document:
        """The reply, errors included. Raises nothing for what a client sent but `Later`."""
        began = attempt.began
        if began is None:
            began = attempt.began = time.monotonic()
            attempt.budget.deadline = began + _seconds(request.command)
        call: Call | None = None
        name = request.name
        try:
            call = self._call(client, request, attempt)
            reply = self._answer(call)
        except Later:
            raise
        except MongoError as error:
            reply = error.reply()
        except DbError as error:
            log_damage(error, f"{name} {request.command.get(name)} in {request.command.get('$db')}")
            reply = mongo_error(error).reply()
        except RecursionError:
            reply = MongoError(15, "The command is nested too deeply.").reply()
        except Exception:  # noqa: BLE001 - logged there
            reply = failed(name)
        elapsed_ms = (time.monotonic() - began) * 1000
        charge_ru = 0.0 if call is None else call.charge_ru
        if call is not None and name != "getLastRequestStatistics" and call.spec.counts:
            client.statistics = (name, charge_ru, elapsed_ms)
        if self.gateway.settings.logs_requests:
            log_command(request, code_of(reply), charge_ru, elapsed_ms)
        if "ok" not in reply:
            reply["ok"] = 1.0
        if "lsid" in request.command or name in HELLO:
            reply |= self.times()
        if call is not None and call.in_transaction and reply.get("ok") == 0.0:
            self._abort(call, reply)
        return reply

    def times(self) -> Document:
        """What causally consistent sessions pass on, made once a second. Every read here is of the
        latest state."""
        second = self.engine.now_ms() // 1000
        if second != self._second:
            now = Timestamp(second, 1)
            signature = {"hash": bytes(20), "keyId": Int64(0)}
            gossip = RawBSONDocument(encode({"clusterTime": now, "signature": signature}))
            self._second, self._times = second, {"operationTime": now, "$clusterTime": gossip}
            self._time_elements = encode(self._times)[4:-1]
        return self._times

    def time_elements(self) -> bytes:
        """The same as elements of a document."""
        self.times()
        return self._time_elements

    def _call(self, client: Client, request: Request, attempt: Attempt) -> Call:
        name = request.name
        spec = COMMANDS.get(name)
        if request.legacy and name not in ("ismaster", "isMaster", "hello"):
            raise MongoError(
                352,
                f"Unsupported OP_QUERY command: {name}. The client driver may require an upgrade. "
                "For more details see https://dochub.mongodb.org/core/legacy-opcode-removal",
            )
        if spec is None:
            if name in UNSUPPORTED:
                raise MongoError(115, f"Command {name} not supported.")
            raise MongoError(59, f"no such command: '{name}'")
        if spec.login and self.settings.require_login and client.may_write is None:
            raise MongoError(13, f"command {name} requires authentication")
        if not request.database:
            raise MongoError(40414, f"BSON field '{name}.$db' is missing but a required field")
        return Call(self, client, request, spec, attempt)

    def _answer(self, call: Call) -> Document:
        spec = call.spec
        if spec.writes and call.client.may_write is False:
            raise MongoError(
                13, f"not authorized on {call.database} to execute command {call.request.name}"
            )
        call.check_fields()
        call.enter_transaction()
        if spec.operation is not None:
            strike(self.gateway.shared, spec.operation, call.container_names)
        try:
            return spec.run(call)
        except Throttled as error:
            again = self.settings.retry_throttled and not call.in_transaction
            if not again or call.attempt.throttled >= THROTTLED_ROUNDS:
                raise
            call.attempt.throttled += 1
            wait_ms = error.facts.get("retry_after_ms", 10)
            raise Later(min(1.0, wait_ms / 1000)) from error

    def _abort(self, call: Call, reply: Document) -> None:
        """An error ends a transaction; most clients then begin it again."""
        try:
            call.abort_transaction()
        except (MongoError, DbError) as error:  # it ends by its own deadline then
            log.debug("a transaction could not be aborted: %s", error)
        if reply.get("code") in (112, 251, 16500) and TRANSIENT not in reply.get("errorLabels", []):
            reply["errorLabels"] = [*reply.get("errorLabels", []), TRANSIENT]


def _seconds(command: Document) -> float:
    most = command.get("maxTimeMS")
    if most is None or not is_number(most):
        return MONGO_OPERATION_SECONDS
    ms = number_of(most)
    if command.get("awaitData") or next(iter(command)) == "getMore":
        return MONGO_OPERATION_SECONDS
    return MONGO_OPERATION_SECONDS if ms == 0 else min(MONGO_OPERATION_SECONDS, float(ms) / 1000)


def make_streams(gateway: Gateway, settings: ServerSettings) -> StreamService:
    own = settings.mongo
    return Service(
        gateway,
        Settings(
            account=gateway.settings.login,
            advertise=own.advertise or None,
            region=gateway.settings.region,
            strict=own.strict,
            retry_throttled=own.retry_throttled,
        ),
    )
