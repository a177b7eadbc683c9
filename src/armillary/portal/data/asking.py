"""One query and its results, page after page, through the `query` control."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from armillary.portal.context import Place
from armillary.portal.data.client import Client, Refused
from armillary.portal.data.items import parse_key

EXPORT_ROWS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something wrong with the text, and where: characters from `start` to `end`."""

    message: str
    start: int | None = None
    end: int | None = None


@dataclass(slots=True)
class Answer:
    """Grows by a page at a time."""

    body: dict[str, Any]
    """What was asked."""
    rows: list[Any] = field(default_factory=list)
    charge_ru: float = 0.0
    elapsed_ms: float = 0.0
    retrieved_items: int = 0
    pages: int = 0
    partitions: list[str] = field(default_factory=list)
    partitions_read: int = 0
    used: list[str] = field(default_factory=list)
    possible: list[str] = field(default_factory=list)
    plan: list[str] = field(default_factory=list)
    continuation: str | None = None

    def add(self, page: dict[str, Any]) -> None:
        self.rows += page["rows"]
        self.charge_ru += page["charge_ru"]
        self.elapsed_ms += page["elapsed_ms"]
        self.retrieved_items += page["retrieved_items"]
        self.partitions_read += page["partitions_read"]
        self.pages += 1
        self.partitions = page["partitions"]
        self.used = list(dict.fromkeys([*self.used, *page["index"]["used"]]))
        self.possible = page["index"]["possible"]
        self.plan = self.plan or page["plan"]
        self.continuation = page["continuation"]


def question(text: str, parameters: str, partition_key: str, size: int) -> dict[str, Any]:
    """What the fields hold as the body of a request. Raises ValueError with a message."""
    body: dict[str, Any] = {"query": text, "max_items": size}
    if parameters.strip():
        try:
            given = json.loads(parameters)
        except json.JSONDecodeError as error:
            raise ValueError(f"The parameters are not JSON: {error.msg}.") from error
        if not isinstance(given, dict):
            raise ValueError('Parameters are a JSON object, such as {"@least": 20}.')
        body["parameters"] = [
            {"name": name if name.startswith("@") else f"@{name}", "value": value}
            for name, value in given.items()
        ]
    if partition_key.strip():
        body["partition_key"] = parse_key(partition_key.strip())
    return body


async def go_on(client: Client, place: Place, answer: Answer) -> None:
    """The first page, or the next. A page may be empty and still not be the last."""
    while True:
        body = answer.body
        if answer.continuation is not None:
            body = body | {"continuation": answer.continuation}
        answer.add(await client.control("POST", f"{place.path}/query", body))
        if answer.continuation is None or len(answer.rows) % answer.body["max_items"] == 0:
            return


async def finish(client: Client, place: Place, answer: Answer) -> bool:
    """All pages, within bounds. Whether that was all."""
    while answer.continuation is not None and len(answer.rows) < EXPORT_ROWS_MAX:
        await go_on(client, place, answer)
    return answer.continuation is None


def mistakes_of(refusal: Refused) -> list[Mistake]:
    """Errors of a query are a document inside the message."""
    try:
        document = json.loads(refusal.message)
        found = document.get("errors") or document.get("Errors") or []
        return [_mistake(one) for one in found] or [Mistake(refusal.message)]
    except (ValueError, AttributeError, KeyError, TypeError):
        return [Mistake(refusal.message)]


def _mistake(one: Any) -> Mistake:
    if isinstance(one, str):
        return Mistake(one)
    code = f" ({one['code']})" if "code" in one else ""
    place = one.get("location", {})
    return Mistake(f"{one['message']}{code}", place.get("start"), place.get("end"))
