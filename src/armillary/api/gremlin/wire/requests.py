"""A request message out of a WebSocket message. Facts: gremlin reference 1 and 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import UUID

import orjson

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.wire import graphbinary
from armillary.api.gremlin.wire.graphson import untagged
from armillary.api.gremlin.wire.websocket import Message

V1: Final = "application/vnd.gremlin-v1.0+json"
V2: Final = "application/vnd.gremlin-v2.0+json"
V3: Final = "application/vnd.gremlin-v3.0+json"
BINARY: Final = "application/vnd.graphbinary-v1.0"
PLAIN: Final = "application/json"
KNOWN: Final = frozenset({V1, V2, V3, BINARY, PLAIN})
INLINE_BYTES: Final = 64 * 1024  # more is not taken apart on the event loop
NO_ID: Final = "00000000-0000-0000-0000-000000000000"
V3_TEXT: Final = "GraphSON v3 IO is not supported."
BINARY_TEXT: Final = (
    "GraphBinary IO is not supported. Set the serializer of the client to GraphSON 2: "
    "message_serializer=GraphSONSerializersV2d0() in Python, "
    "mimeType: 'application/vnd.gremlin-v2.0+json' in JavaScript, "
    "GraphSONMessageSerializerV2d0 in Java."
)


@dataclass(frozen=True, slots=True)
class GremlinRequest:
    id: str
    op: str
    processor: str
    args: Mapping[str, Any] = field(default_factory=dict)
    mime: str = V2
    is_tagged: bool = False
    """The values of `args` are as they came: to take them apart is for who evaluates them."""

    def text(self, name: str) -> str | None:
        """An argument that is a string; those have no tags."""
        found = self.args.get(name)
        return found if isinstance(found, str) else None

    def untagged(self) -> GremlinRequest:
        if not self.is_tagged:
            return self
        return replace(self, args=untagged(dict(self.args), "args"), is_tagged=False)


class Malformed(Exception):
    """With what is known of the request, so that the client hears of it."""

    def __init__(self, message: str, id: str = NO_ID, mime: str = V2) -> None:
        super().__init__(message)
        self.error = ScriptError(message, "malformed")
        self.id = id
        self.mime = mime


def parse_request(message: Message, *, strict: bool) -> GremlinRequest:
    data = message.data
    mime = V2
    if not message.is_text:
        size = data[0] if data else 0
        mime = data[1 : 1 + size].decode("latin-1")
        data = data[1 + size :]
        if mime not in KNOWN:
            raise Malformed(f"The MIME type '{mime[:64]}' is not supported.")
    if mime == BINARY:
        return _binary(data, strict)
    request = _json(data, mime)
    if mime == V3 and strict:
        raise Malformed(V3_TEXT, request.id, mime)
    return request


def _json(data: bytes, mime: str) -> GremlinRequest:
    try:
        raw = orjson.loads(data)
    except ValueError as error:
        raise Malformed("The request is not JSON.", mime=mime) from error
    if not isinstance(raw, dict):
        raise Malformed("The request must be a JSON object.", mime=mime)
    raw = _members(raw)
    id = _id(raw.get("requestId"), mime)
    args = raw.get("args", {})
    is_tagged = len(data) > INLINE_BYTES
    if is_tagged:
        args = _members(args) if isinstance(args, dict) else args
    else:
        try:
            args = untagged(args, "args")
        except ScriptError as error:
            raise Malformed(error.message, id, mime) from error
    found = _request(id, raw.get("op"), raw.get("processor", ""), args, mime)
    return replace(found, is_tagged=True) if is_tagged else found


def _members(value: dict[str, Any]) -> dict[str, Any]:
    """Of a map of GraphSON 3, which is a list of names and values; they stay as they are."""
    flat = value.get("@value") if value.get("@type") == "g:Map" else None
    if not isinstance(flat, list):
        return value
    return {str(key): one for key, one in zip(flat[::2], flat[1::2], strict=False)}


def _id(given: Any, mime: str) -> str:
    if isinstance(given, dict):
        given = given.get("@value")
    try:
        return str(UUID(str(given)))
    except ValueError as error:
        raise Malformed("The requestId must be a UUID.", mime=mime) from error


def _binary(data: bytes, strict: bool) -> GremlinRequest:
    id = str(UUID(bytes=data[1:17])) if len(data) >= 17 else NO_ID
    if strict:
        raise Malformed(BINARY_TEXT, id, BINARY)
    try:
        op, processor, args = graphbinary.read_request(data)
    except (ValueError, IndexError) as error:
        raise Malformed("The GraphBinary request can't be read.", id, BINARY) from error
    return _request(id, op, processor, args, BINARY)


def _request(id: str, op: Any, processor: Any, args: Any, mime: str) -> GremlinRequest:
    if not isinstance(op, str) or not isinstance(processor, str) or not isinstance(args, dict):
        raise Malformed("A request needs 'op', 'processor' and 'args'.", id, mime)
    return GremlinRequest(id, op, processor, args, mime)
