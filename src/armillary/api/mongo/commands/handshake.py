"""hello, login, and what a client may ask before it has logged in. Facts: sections 3 and 4."""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Any, Final

from bson.datetime_ms import DatetimeMS

from armillary.api.mongo import login
from armillary.api.mongo.call import Call
from armillary.api.mongo.errors import MongoError
from armillary.api.mongo.wire.messages import COMPRESSORS
from armillary.encoding.bson.values import Document, is_text
from armillary.limits import MONGO_MESSAGE_BYTES_MAX, MONGO_WRITE_BATCH_MAX
from armillary.version import VERSION

BSON_BYTES_MAX: Final = 16 * 1024 * 1024
WIRE_VERSION: Final = 21  # of 7.0; from 25 on drivers use a command that Azure Cosmos DB lacks


def host_of(call: Call) -> str:
    """Where the client reaches us: the name it asked for in TLS, or what is set, or its address."""
    peer, settings = call.client.peer, call.service.settings
    port = peer.address.rpartition(":")[2]
    if peer.server_name:
        return f"{peer.server_name}:{port}".lower()
    return (settings.advertise or peer.address).lower()


def hello(call: Call) -> Document:
    command, settings = call.command, call.service.settings
    host = host_of(call)
    client = command.get("client")
    if isinstance(client, dict):
        application = client.get("application")
        if isinstance(application, dict) and is_text(application.get("name")):
            call.client.application = application["name"]
    reply: Document = {
        "_t": "IsMasterResponse",
        "helloOk": True,
        "ismaster": True,
        "isWritablePrimary": True,
        "secondary": False,
        "setName": settings.replica_set,
        "setVersion": 1,
        "hosts": [host],
        "primary": host,
        "me": host,
        "maxBsonObjectSize": BSON_BYTES_MAX,
        "maxMessageSizeBytes": MONGO_MESSAGE_BYTES_MAX,
        "maxWriteBatchSize": MONGO_WRITE_BATCH_MAX,
        "localTime": DatetimeMS(call.service.engine.now_ms()),
        "logicalSessionTimeoutMinutes": 30,
        "connectionId": call.client.number,
        "minWireVersion": 0,
        "maxWireVersion": WIRE_VERSION,
        "readOnly": False,
        "tags": {"region": settings.region},
    }
    asked = command.get("compression")
    if isinstance(asked, list):
        agreed = [one for one in asked if is_text(one) and one in COMPRESSORS]
        if agreed:
            reply["compression"] = agreed
    if is_text(command.get("saslSupportedMechs")):
        reply["saslSupportedMechs"] = list(login.MECHANISMS)
    speculative = command.get("speculativeAuthenticate")
    if isinstance(speculative, dict) and "saslStart" in speculative:
        with suppress(MongoError):  # the client begins again by itself, and gets the error then
            reply["speculativeAuthenticate"] = _start(call, speculative)
    return reply


# --- login ----------------------------------------------------------------------------------------


def _start(call: Call, command: Document) -> Document:
    mechanism, payload = command.get("mechanism"), command.get("payload")
    if is_text(payload):
        payload = payload.encode()
    if not is_text(mechanism) or not isinstance(payload, bytes):
        raise MongoError(2, "saslStart needs a mechanism and a payload")
    credentials = call.service.credentials
    if mechanism == "PLAIN":
        parts = bytes(payload).split(b"\0")
        may_write = None
        if len(parts) == 3:
            may_write = credentials.plain(
                parts[1].decode(errors="replace"), parts[2].decode(errors="replace")
            )
        if may_write is None:
            raise login.failed()
        call.client.may_write = may_write
        return {"conversationId": 1, "done": True, "payload": b""}
    options = command.get("options")
    skip = isinstance(options, dict) and bool(options.get("skipEmptyExchange"))
    made = login.begin(credentials, mechanism, bytes(payload), skip)
    call.client.conversation = made
    return {"conversationId": 1, "done": False, "payload": made.server_first.encode()}


def sasl_start(call: Call) -> Document:
    return _start(call, call.command)


def sasl_continue(call: Call) -> Document:
    conversation = call.client.conversation
    payload = call.command.get("payload")
    if is_text(payload):
        payload = payload.encode()
    if conversation is None or not isinstance(payload, bytes):
        raise MongoError(17, "No SASL session state found")
    if conversation.done:
        call.client.conversation = None
        call.client.may_write = conversation.may_write
        return {"conversationId": 1, "done": True, "payload": b""}
    try:
        signature = login.finish(call.service.credentials, conversation, bytes(payload))
    except MongoError:
        call.client.conversation = None
        raise
    if conversation.skip_empty:
        call.client.conversation = None
        call.client.may_write = conversation.may_write
    return {"conversationId": 1, "done": conversation.skip_empty, "payload": signature}


def logout(call: Call) -> Document:
    call.client.may_write = None
    return {}


def authenticate(call: Call) -> Document:
    raise MongoError(18, "Authentication failed.")


def get_nonce(call: Call) -> Document:
    return {"nonce": secrets.token_hex(8)}


# --- small talk -----------------------------------------------------------------------------------


def ping(call: Call) -> Document:
    return {}


def build_info(call: Call) -> Document:
    return {
        "version": "7.0.0",
        "versionArray": [7, 0, 0, 0],
        "gitVersion": f"armillary-{VERSION}",
        "modules": [],
        "allocator": "system",
        "javascriptEngine": "none",
        "sysInfo": "deprecated",
        "openssl": {"running": "", "compiled": ""},
        "buildEnvironment": {},
        "bits": 64,
        "debug": False,
        "maxBsonObjectSize": BSON_BYTES_MAX,
        "storageEngines": ["armillary"],
    }


def whats_my_uri(call: Call) -> Document:
    return {"you": call.client.peer.address}


def connection_status(call: Call) -> Document:
    users: list[Any] = []
    if call.client.may_write is not None:
        users = [{"user": call.service.settings.account, "db": "admin"}]
    roles: list[Any] = (
        [{"role": "root" if call.client.may_write else "read", "db": "admin"}] if users else []
    )
    info: Document = {"authenticatedUsers": users, "authenticatedUserRoles": roles}
    if call.flag("showPrivileges"):
        info["authenticatedUserPrivileges"] = []
    return {"authInfo": info}
