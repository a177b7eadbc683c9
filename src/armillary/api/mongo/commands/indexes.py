"""createIndexes, listIndexes, dropIndexes, reIndex. Facts: section 11."""

from __future__ import annotations

import math
from typing import Any, Final

from armillary.api.mongo.call import Call
from armillary.api.mongo.commands.reading import rows_reply
from armillary.api.mongo.data.collections import Collection, check_collection_name
from armillary.api.mongo.errors import MongoError, missing_field, wrong_type
from armillary.api.mongo.language import PLAIN
from armillary.api.mongo.match.compiled import compile_filter
from armillary.encoding.bson.values import (
    Document,
    encode,
    is_number,
    is_text,
    number_of,
    same,
    type_name,
)
from armillary.limits import MONGO_COMPOUND_FIELDS_MAX, MONGO_FIRST_BATCH, MONGO_INDEXES_MAX
from armillary.store.catalog.collections import ID_INDEX

KNOWN: Final = frozenset(
    [
        "key",
        "name",
        "unique",
        "expireAfterSeconds",
        "partialFilterExpression",
        "sparse",
        "background",
        "v",
        "collation",
        "ns",
        "weights",
        "default_language",
        "language_override",
        "textIndexVersion",
        "2dsphereIndexVersion",
        "bits",
        "min",
        "max",
        "bucketSize",
        "storageEngine",
        "hidden",
        "wildcardProjection",
        "dropDups",
        "clustered",
        "commitQuorum",
    ]
)
KEPT: Final = (
    "unique",
    "sparse",
    "expireAfterSeconds",
    "partialFilterExpression",
    "hidden",
    "collation",
    "2dsphereIndexVersion",
)
CHANGE_TEXT: Final = (
    "Cannot create unique index when collection contains documents. The unique index can't be "
    "modified; to change it, remove the collection and create it again."
)


def listed_index(index: Document) -> Document:
    return {"v": 2, **{name: value for name, value in index.items() if name != "v"}}


def _direction(order: Any) -> Any:
    number = number_of(order)
    return int(number) if math.isfinite(number) else number


def default_name(key: Document) -> str:
    return "_".join(
        f"{name}_{order if is_text(order) else _direction(order)}" for name, order in key.items()
    )


def checked_index(source: Any, *, strict: bool = False) -> Document:
    if not isinstance(source, dict):
        raise wrong_type("createIndexes.indexes.0", type_name(source), "object")
    key = source.get("key")
    if key is None:
        raise MongoError(9, "The 'key' field is a required property of an index specification")
    if not isinstance(key, dict):
        raise wrong_type("createIndexes.indexes.key", type_name(key), "object")
    if not key:
        raise MongoError(67, "Index keys cannot be an empty object")
    for one in source:
        if one not in KNOWN:
            raise MongoError(
                197,
                f"The field '{one}' is not valid for an index "
                f"specification. Specification: {source}",
            )
    for path, order in key.items():
        if not path:
            raise MongoError(67, "Index keys cannot be an empty field.")
        if is_text(order):
            if order == "text":
                raise MongoError(67, "Text indexes are not supported")
            if order == "hashed" and not strict:
                continue
            if order != "2dsphere":
                raise MongoError(67, f"Unknown index plugin '{order}'")
        elif not is_number(order) or number_of(order) == 0 or number_of(order) != number_of(order):
            raise MongoError(
                67,
                "Values in v:2 index key pattern cannot be of type "
                f"{type_name(order)}. Only numbers > 0, numbers < 0, and "
                "strings are allowed.",
            )
    if len(key) > MONGO_COMPOUND_FIELDS_MAX:
        raise MongoError(67, f"A compound index has {MONGO_COMPOUND_FIELDS_MAX} fields at most")
    wild = [path for path in key if path == "$**" or path.endswith(".$**")]
    if wild and (len(key) > 1 or source.get("unique") or "expireAfterSeconds" in source):
        raise MongoError(67, "A wildcard index can't be compound, unique or expire documents")
    after_s = source.get("expireAfterSeconds")
    if after_s is not None:
        if not is_number(after_s) or not 0 <= number_of(after_s) <= 2**31 - 1:
            raise MongoError(
                67,
                "TTL index 'expireAfterSeconds' option must be numeric and within 0 to 2147483647",
            )
        if len(key) != 1:
            raise MongoError(
                67, "TTL indexes are single-field indexes, compound indexes do not support TTL"
            )
        if list(key) == ["_id"]:
            raise MongoError(
                197, "The field 'expireAfterSeconds' is not valid for an _id index specification"
            )
    partial = source.get("partialFilterExpression")
    if partial is not None:
        if not isinstance(partial, dict):
            raise MongoError(67, "partialFilterExpression for an index must be a document")
        compile_filter(partial, PLAIN)  # raises what is wrong with it
    name = source.get("name", default_name(key))
    if not is_text(name):
        raise wrong_type("createIndexes.indexes.name", type_name(name), "string")
    if not name:
        raise MongoError(67, "index name cannot be empty")
    if "\0" in name:  # statistics have it as the name of a field
        raise MongoError(2, "The index name must not contain a null character.")
    if name == "*":
        raise MongoError(2, "The index name '*' is not valid.")
    made: Document = {"v": 2, "key": key, "name": name}
    made |= {one: source[one] for one in KEPT if source.get(one) not in (None, False)}
    if "background" in source:
        made["background"] = source["background"]
    if list(key) == ["_id"]:
        made = dict(ID_INDEX)
    return made


def create_indexes(call: Call) -> Document:
    name = call.collection_name()
    check_collection_name(call.database, name)
    sources = call.array("indexes")
    if not sources:
        raise MongoError(2, "Must specify at least one index to create")
    strict = call.service.settings.strict
    wanted = [checked_index(one, strict=strict) for one in sources]
    collections = call.service.collections
    collection = collections.current(call.database, name)
    made_now = collection is None
    if collection is None:
        collection = collections.ensure(call.database, name)
    indexes = [dict(one) for one in collection.indexes]
    before = len(indexes)
    fresh: list[Document] = []
    for index in wanted:
        if not _known(indexes + fresh, index):
            fresh.append(index)
    if before + len(fresh) > MONGO_INDEXES_MAX:
        raise MongoError(67, f"A collection has {MONGO_INDEXES_MAX} indexes at most")
    if fresh:
        _build(call, collection, indexes, fresh)
    reply: Document = {
        "_t": "CreateIndexesResponse",
        "numIndexesBefore": before,
        "numIndexesAfter": before + len(fresh),
        "createdCollectionAutomatically": made_now,
    }
    if not fresh:
        reply["note"] = "all indexes already exist"
    return reply


def _known(indexes: list[Document], index: Document) -> bool:
    for one in indexes:
        same_key = same(one["key"], index["key"]) and list(one["key"]) == list(index["key"])
        if one["name"] == index["name"]:
            if not same_key:
                raise MongoError(
                    86,
                    "An existing index has the same name as the requested index. When index names "
                    "are not specified, they are auto generated and can cause conflicts. Please "
                    f"refer to our documentation. Requested index: {index['name']}",
                )
            if _options(one) != _options(index):
                raise MongoError(
                    85,
                    "An equivalent index already exists with the same name but different options. "
                    f"Requested index: {index['name']}",
                )
            return True
        if same_key and _options(one) == _options(index):
            raise MongoError(85, f"Index already exists with a different name: {one['name']}")
        if same_key:
            raise MongoError(
                85,
                "An equivalent index already exists with a different name and options. Requested "
                f"index: {index['name']}",
            )
    return False


def _options(index: Document) -> bytes:
    return encode({one: index[one] for one in KEPT if one in index and one != "hidden"})


def _build(
    call: Call, collection: Collection, indexes: list[Document], fresh: list[Document]
) -> None:
    from armillary.api.mongo.commands.collections import is_empty

    collections = call.service.collections
    uniques = [one for one in fresh if one.get("unique")]
    for one in uniques:
        shard = collection.shard
        if shard is not None and next(iter(one["key"])) != ".".join(shard):
            raise MongoError(
                67,
                "cannot create unique index over "
                f"{{{', '.join(f'{k} : {v}' for k, v in one['key'].items())}}} "
                f"with shard key pattern {{ {'.'.join(shard)} : 1.0 }}",
            )
    if uniques:
        if not is_empty(collection, call.budget):
            raise MongoError(67, CHANGE_TEXT)
        collections.remake(collection, [*indexes, *fresh])
        return
    made = collections.replace_indexes(collection, [*indexes, *fresh])
    if any("expireAfterSeconds" in one and list(one["key"]) != ["_ts"] for one in fresh):
        _set_expiry(call, made)


def _set_expiry(call: Call, collection: Collection) -> None:
    """Documents that are there already expire by the new index too: each is written once more."""
    from armillary.api.mongo.data.reads import rows_of
    from armillary.api.mongo.data.writes import Moved, replace_row

    for row in list(rows_of(collection, {}, call.charge, call.budget)):
        call.budget.check()
        try:
            replace_row(collection, row, row.document, None, {})
        except Moved:  # who wrote it since knew the index
            continue


def list_indexes(call: Call) -> Document:
    name = call.collection_name()
    collection = call.service.collections.current(call.database, name)
    if collection is None:
        raise MongoError(26, f"ns does not exist: {call.database}.{name}")
    size = call.batch_size(MONGO_FIRST_BATCH)
    found = [encode(listed_index(one)) for one in collection.indexes]
    return rows_reply(call, collection.namespace, found, size)


def drop_indexes(call: Call) -> Document:
    name = call.collection_name()
    collection = call.service.collections.current(call.database, name)
    if collection is None:
        raise MongoError(26, f"ns not found {call.database}.{name}")
    wanted = call.command.get("index")
    if wanted is None:
        raise missing_field("dropIndexes.index")
    indexes = [dict(one) for one in collection.indexes]
    if wanted == "*":
        kept = [one for one in indexes if one["name"] == "_id_"]
    else:
        gone = set()
        for one in wanted if isinstance(wanted, list) else [wanted]:
            gone.add(_named(indexes, one))
        kept = [one for one in indexes if one["name"] not in gone]
    removed = [one for one in indexes if one not in kept]
    if removed:
        call.service.collections.replace_indexes(collection, kept)
    return {"_t": "DropIndexesResponse", "nIndexesWas": len(indexes)}


def _named(indexes: list[Document], wanted: Any) -> str:
    if is_text(wanted):
        if wanted == "_id_":
            raise MongoError(72, "cannot drop _id index")
        if any(one["name"] == wanted for one in indexes):
            return wanted
        raise MongoError(27, f"index not found with name [{wanted}]")
    if isinstance(wanted, dict):
        for one in indexes:
            if same(one["key"], wanted) and list(one["key"]) == list(wanted):
                if one["name"] == "_id_":
                    raise MongoError(72, "cannot drop _id index")
                return str(one["name"])
        raise MongoError(27, f"can't find index with key: {wanted}")
    raise wrong_type("dropIndexes.index", type_name(wanted), "string", "object")


def re_index(call: Call) -> Document:
    collection = call.service.collections.need(call.database, call.collection_name())
    call.service.gateway.index_later(collection.store)
    listed = [listed_index(one) for one in collection.indexes]
    return {"nIndexesWas": len(listed), "nIndexes": len(listed), "indexes": listed}
