"""The container of a MongoDB collection, for every way to make one: commands, `armillary.toml`,
import.

    container definition ─ partitionKey   the shard key; none: one logical partition, fixed
                         ─ indexingPolicy what the indexes come to
                         ─ uniqueKeyPolicy `/$unique/<index name>`, one per unique index
                         ─ mongo          {shardKey, indexes, options}: what clients see;
                                          {dropped}: unique indexes that are no more

A unique index compares as BSON does (1 and 1.0 are the same, missing is null), so its value is
computed here and stored in a hidden member of the item, under the name of the index. A container
keeps its unique keys for life: once the index is dropped, every document gets a value of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from bson.datetime_ms import DatetimeMS

from armillary.encoding.bson.stored import (
    REPLY,
    canonical,
    from_stored,
    stored_name,
    to_item,
    to_stored,
)
from armillary.encoding.bson.values import Document, is_number, number_of, sort_key
from armillary.errors import BadInput
from armillary.limits import TTL_SECONDS_MAX
from armillary.values import JSON, UNDEFINED

ID_INDEX: Final[Document] = {"v": 2, "key": {"_id": 1}, "name": "_id_"}
UNIQUE: Final = "$unique"
TTL_ON: Final = -1
RECORDS: Final = f'/"{REPLY}"/?'
"""Where the records of retryable writes have an entry, and no document has: by them both are
counted."""
UNASKED: Final = ('/"_etag"/?', "/id/?", '/"_ts"/?')
"""Members of the store that no filter of a client names: they have no entries."""

Filter = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    name: str
    paths: tuple[tuple[str, ...], ...]
    key: Document
    sparse: bool
    where: Filter | None
    """Which documents it covers; None: all."""


@dataclass(frozen=True, slots=True)
class CollectionShape:
    """What a collection asks of its documents."""

    shard: tuple[str, ...] | None
    indexes: tuple[Document, ...]
    options: Document
    uniques: tuple[UniqueIndex, ...] = ()
    ttl_field: tuple[tuple[str, ...], int] | None = None

    def item(self, document: Document, now_s: int) -> dict[str, JSON]:
        """The item of a document that has its `_id`."""
        if self.shard is not None:
            found = at_path(document, self.shard)
            if found is UNDEFINED or isinstance(found, list):
                path = ".".join(self.shard)
                raise BadInput(f"The document does not contain shard key at '{path}'")
        return to_item(document, **self.extra(document, now_s))

    def extra(self, document: Document, now_s: int) -> dict[str, JSON]:
        """What the store gets alongside the document."""
        made: dict[str, JSON] = {}
        if self.uniques:
            made[UNIQUE] = {one.name: _unique_text(one, document) for one in self.uniques}
        ttl = self._ttl(document, now_s)
        if ttl is not None:
            made["ttl"] = ttl
        return made

    def _ttl(self, document: Document, now_s: int) -> int | None:
        if self.ttl_field is not None:
            path, after_s = self.ttl_field
            moment = _expiry_ms(at_path(document, path))
            if moment is None:
                return None
            return min(TTL_SECONDS_MAX, max(1, moment // 1000 + after_s - now_s))
        own = document.get("ttl", UNDEFINED)
        if own is UNDEFINED or not is_number(own) or isinstance(own, bool):
            return None
        plain: Any = number_of(own)
        if plain != plain or abs(plain) >= 2**31 or plain != int(plain):
            return None
        return int(plain) if plain == -1 or plain > 0 else None


def at_path(value: Any, path: tuple[str, ...]) -> Any:
    """The value at a path of embedded documents; UNDEFINED: it is not there."""
    for part in path:
        if not isinstance(value, dict):
            return UNDEFINED
        value = value.get(part, UNDEFINED)
    return value


def _expiry_ms(value: Any) -> int | None:
    if isinstance(value, DatetimeMS):
        return int(value)
    if is_number(value):
        plain: Any = number_of(value)
        return int(plain) if plain == plain and abs(plain) < 2**62 else None
    if isinstance(value, list):
        found = [one for one in map(_expiry_ms, value) if one is not None]
        return min(found, default=None)
    return None


def _covers_nothing(document: Any) -> bool:
    return False


def _unique_text(index: UniqueIndex, document: Document) -> str:
    values = [at_path(document, path) for path in index.paths]
    covered = index.where is None or index.where(document)
    if index.sparse and all(one is UNDEFINED for one in values):
        covered = False
    keys: list[Any] = [sort_key(None if one is UNDEFINED else one) for one in values]
    if not covered:  # its own, so that it meets no other
        keys = ["not in the index", sort_key(document["_id"])]
    data = repr(canonical(tuple(keys))).encode()
    return blake2b(data, digest_size=16).hexdigest()


# --- definitions ----------------------------------------------------------------------------------


def stored_path(path: str) -> str:
    """`a.b` as a path of the container: `/a/b`, with names of the store escaped."""
    first, *rest = path.split(".")
    parts = [stored_name(first), *rest]
    return "".join("/" + _quoted(one) for one in parts)


def _quoted(part: str) -> str:
    plain = part.replace("_", "a").isalnum() and not part[0].isdigit()
    return part if plain else '"' + part.replace('"', '\\"') + '"'


def _index_paths(path: str) -> list[str]:
    """A field, and the same through arrays on the way."""
    found = [""]
    for at, part in enumerate(path.split(".")):
        name = "/" + _quoted(stored_name(part) if at == 0 else part)
        found = [one + name for one in found] + [one + name + "/[]" for one in found]
    return [one + "/?" for one in found[:16]]


def collection_definition(
    name: str, shard: str | None, indexes: list[Document], options: Document
) -> dict[str, JSON]:
    included: dict[str, None] = dict.fromkeys(["/_id/?", RECORDS])
    composites: list[list[dict[str, str]]] = []
    uniques: list[dict[str, list[str]]] = []
    default_ttl = TTL_ON
    spatial: list[dict[str, Any]] = []
    if shard is not None:
        included[stored_path(shard) + "/?"] = None
    for index in indexes:
        key: Document = index["key"]
        if index.get("unique") and index["name"] != "_id_":
            uniques.append({"paths": [f"/{_quoted(UNIQUE)}/{_quoted(index['name'])}"]})
        if "expireAfterSeconds" in index and list(key) == ["_ts"]:
            default_ttl = int(number_of(index["expireAfterSeconds"])) or 1
            continue
        plain = [one for one, kind in key.items() if is_number(kind)]
        for path in plain:
            if path == "$**":
                included["/*"] = None
            elif path.endswith(".$**"):
                included[stored_path(path[:-4]) + "/*"] = None
            else:
                included |= dict.fromkeys(_index_paths(path))
        for path, kind in key.items():
            if kind == "2dsphere":
                kinds = ["Point", "Polygon", "MultiPolygon", "LineString"]
                spatial.append({"path": stored_path(path) + "/?", "types": kinds})
        if len(plain) > 1 and len(plain) == len(key) and index["name"] != "_id_":
            composites.append(
                [
                    {
                        "path": stored_path(path),
                        "order": "ascending" if number_of(order) > 0 else "descending",
                    }
                    for path, order in key.items()
                ]
            )
    excluded = [] if "/*" in included else [{"path": "/*"}]
    policy: dict[str, JSON] = {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": one} for one in included],
        "excludedPaths": [*excluded, *({"path": one} for one in UNASKED)],
    }
    if composites:
        policy["compositeIndexes"] = composites
    if spatial:
        policy["spatialIndexes"] = spatial
    body: dict[str, JSON] = {
        "id": name,
        "indexingPolicy": policy,
        "defaultTtl": default_ttl,
        "mongo": {
            "shardKey": shard,
            "indexes": [to_stored(one) for one in indexes],
            "options": to_stored(options),
        },
    }
    if uniques:
        body["uniqueKeyPolicy"] = {"uniqueKeys": uniques}
    if shard is not None:
        body["partitionKey"] = {"paths": [stored_path(shard)], "kind": "Hash", "version": 2}
    return body


def shape_of(definition: Any, compile_filter: Callable[[Document], Filter]) -> CollectionShape:
    """Of a container's parsed definition. `compile_filter` makes the test of a partial index."""
    own = definition.document.get("mongo") or {}
    shard = own.get("shardKey")
    indexes = [from_stored(one) for one in own.get("indexes", [])] or [dict(ID_INDEX)]
    if not own and not definition.partition_key.system_key:  # made by another API
        shard = ".".join(definition.partition_key.paths[0])
    uniques = []
    ttl_field = None
    for one in indexes:
        if one.get("unique") and one["name"] != "_id_":
            partial = one.get("partialFilterExpression")
            uniques.append(
                UniqueIndex(
                    one["name"],
                    tuple(tuple(path.split(".")) for path in one["key"]),
                    one["key"],
                    bool(one.get("sparse")),
                    None if partial is None else compile_filter(partial),
                )
            )
        if "expireAfterSeconds" in one and list(one["key"]) != ["_ts"]:
            (path,) = one["key"]
            ttl_field = tuple(path.split(".")), int(number_of(one["expireAfterSeconds"]))
    uniques += [
        UniqueIndex(one, (), {}, sparse=False, where=_covers_nothing)
        for one in own.get("dropped", [])
    ]
    return CollectionShape(
        None if shard is None else tuple(shard.split(".")),
        tuple(indexes),
        from_stored(own.get("options", {})),
        tuple(uniques),
        ttl_field,
    )
