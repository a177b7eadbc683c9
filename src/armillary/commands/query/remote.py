"""A container behind a server, asked like one in a data folder: through the `query` control."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from armillary.commands.remote import Remote, path_of
from armillary.container import OMITTED
from armillary.errors import BadInput
from armillary.query.problems import BadQuery, QueryError
from armillary.values import JSON


@dataclass(frozen=True, slots=True)
class RemoteMetrics:
    ranges: int
    ru: float

    def charge_ru(self) -> float:
        return self.ru


@dataclass(frozen=True, slots=True)
class RemotePage:
    rows: list[JSON]
    continuation: str | None
    plan_text: str
    metrics: RemoteMetrics


@dataclass(frozen=True, slots=True)
class RemoteContainer:
    remote: Remote
    database: str
    container: str

    def query_page(
        self,
        text: str,
        parameters: Mapping[str, JSON] | None = None,
        *,
        partition_key: Any = OMITTED,
        max_items: int,
        continuation: str | None = None,
    ) -> RemotePage:
        body: dict[str, Any] = {
            "query": text,
            "parameters": [{"name": k, "value": v} for k, v in (parameters or {}).items()],
            "max_items": max_items,
        }
        if partition_key is not OMITTED:
            body["partition_key"] = partition_key
        if continuation is not None:
            body["continuation"] = continuation
        path = path_of("dbs", self.database, "colls", self.container, "query")
        try:
            page = self.remote.control("POST", path, body)
        except BadInput as error:
            raise _with_places(error) from error
        return RemotePage(
            page["rows"],
            page["continuation"],
            "\n".join(page["plan"]),
            RemoteMetrics(page["partitions_read"], page["charge_ru"]),
        )


def _with_places(error: BadInput) -> BadInput:
    """Mistakes of a query come as a document in the message; then each has its place again."""
    try:
        found = orjson.loads(error.message.removeprefix("400: "))["errors"]
        return BadQuery.of([_mistake(one) for one in found])
    except (ValueError, KeyError, TypeError):
        return error


def _mistake(one: Mapping[str, Any]) -> QueryError:
    place = one.get("location", {})
    return QueryError(one.get("code"), one["message"], place.get("start", -1), place.get("end", -1))
