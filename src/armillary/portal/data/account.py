"""What the explorer does, in requests of the NoSQL API: lists, items, containers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from armillary.portal.context import Place
from armillary.portal.data.client import Client, Reply, path_of
from armillary.portal.data.items import Keyed

ROUNDS_MAX: Final = 50  # lists end a piece with each partition; a page is made of several
PAGE_BYTES: Final = 8_000_000  # then it is enough, however few items that are


@dataclass(frozen=True, slots=True)
class ItemPage:
    items: list[dict[str, Any]]
    continuation: str | None
    charge_ru: float
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Items:
    """The items of one container."""

    client: Client
    place: Place
    keyed: Keyed

    @classmethod
    async def of(cls, client: Client, place: Place) -> Items:
        document = (await client.rest("GET", place.path)).body
        spec = await client.control("GET", f"{place.path}/key-spec")
        return cls(client, place, Keyed.of(document, synthetic=spec["spec"] is not None))

    async def page(self, size: int, token: str | None, where: str = "") -> ItemPage:
        """A page of at most `size` items, from as many pieces as it takes."""
        found: list[dict[str, Any]] = []
        charge_ru, size_bytes = 0.0, 0
        for _ in range(ROUNDS_MAX):
            piece = await self._piece(size - len(found), token, where)
            found += piece.items
            charge_ru += piece.charge_ru
            size_bytes += piece.size_bytes
            token = piece.continuation
            if token is None or len(found) >= size or size_bytes >= PAGE_BYTES:
                break
        return ItemPage(found, token, charge_ru, size_bytes)

    async def _piece(self, size: int, token: str | None, where: str) -> ItemPage:
        if where:
            body = {"query": f"SELECT * FROM c WHERE {where}", "max_items": size}
            body |= {"continuation": token} if token is not None else {}
            page = await self.client.control("POST", f"{self.place.path}/query", body)
            size_bytes = page["output_bytes"]
            return ItemPage(page["rows"], page["continuation"], page["charge_ru"], size_bytes)
        headers = {"x-ms-max-item-count": str(size)}
        headers |= {"x-ms-continuation": token} if token is not None else {}
        reply = await self.client.rest("GET", f"{self.place.path}/docs", None, headers)
        next_token = reply.headers.get("x-ms-continuation")
        size_bytes = int(reply.headers.get("content-length", 0))
        return ItemPage(reply.body["Documents"], next_token, reply.charge_ru, size_bytes)

    async def read(self, item: Mapping[str, Any]) -> dict[str, Any]:
        reply = await self.client.rest("GET", self._path(item), None, self.keyed.header(item))
        found: dict[str, Any] = reply.body
        return found

    async def create(self, item: Mapping[str, Any]) -> Reply:
        path = f"{self.place.path}/docs"
        return await self.client.rest("POST", path, item, self.keyed.header(item, new=True))

    async def replace(self, old: Mapping[str, Any], new: Mapping[str, Any], etag: str) -> Reply:
        """Only over the version with that etag; `*` is over any."""
        headers = self.keyed.header(old) | {"if-match": etag}
        return await self.client.rest("PUT", self._path(old), new, headers)

    async def delete(self, item: Mapping[str, Any], etag: str) -> Reply:
        headers = self.keyed.header(item) | {"if-match": etag}
        return await self.client.rest("DELETE", self._path(item), None, headers)

    def _path(self, item: Mapping[str, Any]) -> str:
        return f"{self.place.path}/{path_of('docs', item['id'])}"


async def create_database(client: Client, name: str) -> None:
    await client.rest("POST", "dbs", {"id": name})


async def create_container(
    client: Client,
    place: Place,
    key: Mapping[str, Any] | None,
    throughput: Mapping[str, str],
    spec: Mapping[str, Any] | None,
    *,
    graph: bool = False,
    fixed: bool = False,
) -> None:
    """Without a key it is a fixed one."""
    path = path_of("dbs", place.database, "colls")
    body = {"id": place.container, **({} if key is None else {"partitionKey": key})}
    headers = dict(throughput)
    if graph:
        headers["x-armillary-api"] = "gremlin"
    if fixed or key is None:
        headers["x-armillary-kind"] = "fixed"
    await client.rest("POST", path, body, headers)
    if spec is not None:
        await client.control("PUT", f"{place.path}/key-spec", spec)
