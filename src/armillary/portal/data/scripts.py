"""Scripts of a container through the API: listed, saved, deleted, run. No browser here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from armillary.portal.context import Place
from armillary.portal.data.client import Client, key_header, path_of

#: Kind → (its word in paths, the key of its feed)
KINDS: Final = {
    "procedure": ("sprocs", "StoredProcedures"),
    "trigger": ("triggers", "Triggers"),
    "function": ("udfs", "UserDefinedFunctions"),
}
TRIGGER_TYPES: Final = ["Pre", "Post"]
TRIGGER_OPERATIONS: Final = ["All", "Create", "Replace", "Upsert", "Delete"]
LOG: Final = "x-ms-documentdb-script-log-results"
CHANGES: Final = "x-armillary-script-changes"
STARTERS: Final = {
    "procedure": (
        "function count() {\n"
        "  const query = 'SELECT VALUE COUNT(1) FROM c';\n"
        "  __.queryDocuments(__.getSelfLink(), query, (error, rows) => {\n"
        "    if (error) throw error;\n"
        "    console.log('counted');\n"
        "    __.response.setBody(rows[0]);\n"
        "  });\n"
        "}\n"
    ),
    "trigger": (
        "function stamp() {\n"
        "  const request = getContext().getRequest(), item = request.getBody();\n"
        "  item.stamped = new Date().toISOString();\n"
        "  request.setBody(item);\n"
        "}\n"
    ),
    "function": "function tax(price) {\n  return price * 0.2;\n}\n",
}


@dataclass(frozen=True, slots=True)
class Script:
    kind: str
    id: str
    body: str
    type: str = "Pre"
    operation: str = "All"

    def document(self) -> dict[str, str]:
        found = {"id": self.id, "body": self.body}
        if self.kind == "trigger":
            found |= {"triggerType": self.type, "triggerOperation": self.operation}
        return found


@dataclass(frozen=True, slots=True)
class Run:
    """What a run of a procedure came to."""

    value: Any
    log: str
    charge_ru: float
    seconds: float
    changes: list[tuple[str, str]] = field(default_factory=list)


async def list_scripts(client: Client, place: Place) -> list[Script]:
    found: list[Script] = []
    for kind, (word, feed) in KINDS.items():
        reply = await client.rest("GET", f"{place.path}/{word}")
        for one in reply.body[feed]:
            type = one.get("triggerType", "Pre").capitalize()
            operation = one.get("triggerOperation", "All").capitalize()
            found.append(Script(kind, one["id"], one["body"], type, operation))
    return found


async def save(client: Client, place: Place, script: Script, *, is_new: bool) -> None:
    path = f"{place.path}/{KINDS[script.kind][0]}"
    if is_new:
        await client.rest("POST", path, script.document())
    else:
        await client.rest("PUT", f"{path}/{path_of(script.id)}", script.document())


async def delete(client: Client, place: Place, script: Script) -> None:
    path = f"{place.path}/{KINDS[script.kind][0]}/{path_of(script.id)}"
    await client.rest("DELETE", path)


async def run(client: Client, place: Place, id: str, key: list[Any], arguments: list[Any]) -> Run:
    headers = key_header(key) | {
        "x-ms-documentdb-script-enable-logging": "true",
        CHANGES: "true",
    }
    path = f"{place.path}/sprocs/{path_of(id)}"
    reply = await client.rest("POST", path, arguments, headers)
    changes = json.loads(unquote(reply.headers.get(CHANGES, "[]")))
    return Run(
        reply.body,
        unquote(reply.headers.get(LOG, "")),
        reply.charge_ru,
        reply.seconds,
        [(outcome, id) for outcome, id in changes],
    )


def arguments_of(text: str) -> list[Any]:
    """What the field holds. Raises ValueError with a message."""
    if not text.strip():
        return []
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"The arguments are not JSON: {error.msg}.") from error
    if not isinstance(found, list):
        raise ValueError('Arguments are a JSON array, such as ["a", 1].')
    return found
