"""One request to the controls, and the answers that end it: plain JSON, with errors in the form of
the NoSQL API, so that a client needs one way to read both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import orjson

from armillary.api.core.gateway import Gateway
from armillary.api.errors import INTERNAL, wire
from armillary.api.http.messages import Request, Response
from armillary.budget import Budget
from armillary.errors import BadInput, DbError, NotFound, OwnerNotFound
from armillary.store.items.containers import ContainerStore
from armillary.values import JSON

if TYPE_CHECKING:
    from armillary.api.control.service import Controls

JSON_HEADERS: Final = {"Content-Type": "application/json", "Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class ControlCall:
    controls: Controls
    request: Request
    names: Mapping[str, str]
    """What stands at the braces of the pattern."""

    @property
    def gateway(self) -> Gateway:
        return self.controls.gateway

    @property
    def budget(self) -> Budget:
        return self.request.bounded()

    def json(self) -> Any:
        if not self.request.body:
            return None
        try:
            return orjson.loads(self.request.body)
        except orjson.JSONDecodeError as error:
            raise BadInput(f"The request body is not valid JSON: {error}.") from error

    def document(self, *allowed: str) -> dict[str, Any]:
        """A JSON object with no other members than these: a misspelt one would be ignored."""
        body = self.json()
        if body is None:
            return {}
        if not isinstance(body, dict):
            raise BadInput("The request body must be a JSON object.")
        refuse_unknown(body, allowed)
        return body

    def options(self, *allowed: str) -> dict[str, str]:
        """What stands behind the question mark; only these names, each once."""
        pairs = parse_qsl(self.request.target.partition("?")[2], keep_blank_values=True)
        found = dict(pairs)
        if len(found) != len(pairs):
            raise BadInput("An option is given twice.")
        refuse_unknown(found, allowed)
        return found

    def container(self) -> ContainerStore:
        try:
            store = self.gateway.container(self.names["db"], self.names["coll"])
        except OwnerNotFound as error:
            raise NotFound(
                f"There is no container {self.names['coll']!r} in a database {self.names['db']!r}."
            ) from error
        store.refresh()
        return store


def refuse_unknown(body: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    unknown = sorted(set(body) - set(allowed))
    if unknown:
        known = ", ".join(allowed) or "none"
        raise BadInput(f"Unknown members: {', '.join(unknown)}. There are: {known}.")


def answer(status: int, body: JSON, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, {**JSON_HEADERS, **(headers or {})}, orjson.dumps(body))


def refusal(error: DbError) -> Response:
    status, sub_status, code, message = wire(error)
    headers = {"x-ms-substatus": str(sub_status)} if sub_status else {}
    return answer(status, {"code": code, "message": message}, headers)


def mistake() -> Response:
    message = "The server made a mistake; its log says more."
    return answer(INTERNAL.status, {"code": INTERNAL.code, "message": message})
