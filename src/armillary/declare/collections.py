"""Collections of MongoDB in `armillary.toml`: their indexes as people write them, and documents of
seed files.

    "email"                                       {key: {email: 1}, name: "email_1"}
    { key = { age = 1, name = -1 } }             {key: {age: 1, name: -1}, name: "age_1_name_-1"}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bson.objectid import ObjectId

from armillary.encoding.bson.extended import document_from
from armillary.encoding.bson.stored import from_stored
from armillary.encoding.bson.values import Document
from armillary.errors import BadInput
from armillary.store.catalog.collections import (
    ID_INDEX,
    Filter,
    collection_definition,
    shape_of,
)
from armillary.store.catalog.definitions import ContainerDefinition
from armillary.values import JSON

#: Key of an index in the file → its name among the options of createIndexes.
OPTIONS: Final = {
    "name": ("name", str),
    "unique": ("unique", bool),
    "sparse": ("sparse", bool),
    "expire_after_seconds": ("expireAfterSeconds", int),
}
DIRECTIONS: Final = (1, -1, "2dsphere")


def collection_body(name: str, shard: str | None, indexes: list[Any]) -> dict[str, JSON]:
    made = [dict(ID_INDEX), *(_index(one) for one in indexes)]
    names = [one["name"] for one in made]
    for one in names:
        if names.count(one) > 1:
            raise BadInput(f"there are two indexes named {one!r}")
    if shard is not None:
        _check_path(shard)
        for one in made[1:]:
            if one.get("unique") and next(iter(one["key"])) != shard:
                raise BadInput(f"the unique index {one['name']!r} has to begin with the shard key")
    return collection_definition(name, shard, made, {})


def _index(source: Any) -> Document:
    given = {"key": source} if isinstance(source, str) else source
    if not isinstance(given, Mapping) or "key" not in given:
        raise BadInput("an index is a field, or a table with a key")
    key = {given["key"]: 1} if isinstance(given["key"], str) else given["key"]
    if not isinstance(key, Mapping) or not key:
        raise BadInput("the key of an index is a field or a table of fields")
    for path, direction in key.items():
        _check_path(path)
        if direction not in DIRECTIONS or isinstance(direction, bool):
            raise BadInput(f'the direction of {path!r} is 1, -1 or "2dsphere"')
    made: Document = {
        "v": 2,
        "key": dict(key),
        "name": "_".join(f"{path}_{direction}" for path, direction in key.items()),
    }
    for option, value in given.items():
        if option == "key":
            continue
        if option not in OPTIONS:
            known = ", ".join(["key", *OPTIONS])
            raise BadInput(f"an index has no {option!r}; there are: {known}")
        known_as, kind = OPTIONS[option]
        if type(value) is not kind:
            raise BadInput(f"{option} of an index has to be {kind.__name__}")
        made[known_as] = value
    if "expireAfterSeconds" in made and len(key) != 1:
        raise BadInput("an index that expires documents has one field")
    return made


def _check_path(path: str) -> None:
    if not path or "" in path.split("."):
        raise BadInput(f"{path!r} is no path of a field")


def index_tables(stored: list[Any]) -> list[Any]:
    """The other way: indexes of a definition as the file would have them."""
    made: list[Any] = []
    for one in map(from_stored, stored):
        if one["name"] == "_id_":
            continue
        key: Document = one["key"]
        table: Document = {"key": dict(key)}
        usual = "_".join(f"{path}_{direction}" for path, direction in key.items())
        for option, (known_as, _) in OPTIONS.items():
            if known_as in one and not (option == "name" and one["name"] == usual):
                table[option] = one[known_as]
        plain = len(table) == 1 and list(key.values()) == [1]
        made.append(next(iter(key)) if plain else table)
    return made


def seed_item(definition: ContainerDefinition, now_s: int) -> Callable[[JSON], dict[str, Any]]:
    """What makes the item of a document in a seed file: Extended JSON or plain JSON."""
    shape = shape_of(definition, _no_partial_index)

    def make(source: JSON) -> dict[str, Any]:
        document = document_from(source)
        if "_id" not in document:
            document = {"_id": ObjectId(), **document}
        return shape.item(document, now_s)

    return make


def _no_partial_index(query: Document) -> Filter:
    raise BadInput("Seed files can't fill a collection with a partial index.")
