"""create, drop, dropDatabase, listCollections, listDatabases, shardCollection, and the extensions
of Azure Cosmos DB. Facts: sections 8 to 10."""

from __future__ import annotations

import uuid
from typing import Any, Final

from bson.binary import Binary
from bson.int64 import Int64
from bson.timestamp import Timestamp

from armillary.api.mongo.call import Call
from armillary.api.mongo.commands.indexes import checked_index, listed_index
from armillary.api.mongo.commands.reading import rows_reply
from armillary.api.mongo.data.collections import (
    Collection,
    check_collection_name,
    check_database_name,
)
from armillary.api.mongo.data.reads import read_page, target_of
from armillary.api.mongo.errors import MongoError, bad_value, failed_to_parse, wrong_type
from armillary.api.mongo.expressions.values import whole
from armillary.api.mongo.match.compiled import compile_filter
from armillary.budget import Budget
from armillary.encoding.bson.stored import from_stored
from armillary.encoding.bson.values import Document, encode, is_number, is_text, type_name
from armillary.errors import NotFound
from armillary.limits import MONGO_FIRST_BATCH
from armillary.store.catalog.collections import ID_INDEX
from armillary.store.catalog.records import Throughput
from armillary.store.throughput.offers import OfferRecord
from armillary.store.throughput.provisioned import change_throughput, read_offer

CREATE_FIELDS: Final = (
    "capped size max validator validationLevel validationAction collation timeseries viewOn "
    "pipeline storageEngine indexOptionDefaults autoIndexId idIndex flags temp expireAfterSeconds "
    "clusteredIndex changeStreamPreAndPostImages encryptedFields"
)
KEPT_OPTIONS: Final = ("capped", "size", "max", "validator", "validationLevel", "validationAction")


def create(call: Call) -> Document:
    name = call.collection_name()
    for one in ("viewOn", "timeseries", "clusteredIndex", "encryptedFields"):
        if call.command.get(one) is not None:
            raise MongoError(115, f"The option '{one}' of create is not supported.")
    options = {one: call.command[one] for one in KEPT_OPTIONS if call.command.get(one) is not None}
    if "validator" in options:
        raise MongoError(115, "The option 'validator' of create is not supported.")
    if options.get("capped") and "size" not in options:
        raise MongoError(72, "the 'size' field is required when 'capped' is true")
    if call.service.collections.current(call.database, name) is not None:
        raise MongoError(48, f"Collection {call.database}.{name} already exists.")
    call.service.collections.create(call.database, name, options=options)
    return {}


def drop(call: Call) -> Document:
    name = call.collection_name()
    check_collection_name(call.database, name)
    collection = call.service.collections.current(call.database, name)
    if collection is None or not call.service.collections.drop(call.database, name):
        if call.service.settings.strict:
            raise MongoError(26, "ns not found")
        return {}
    return {"nIndexesWas": len(collection.indexes), "ns": collection.namespace}


def drop_database(call: Call) -> Document:
    check_database_name(call.database)
    call.service.collections.drop_database(call.database)
    return {"dropped": call.database}


def list_databases(call: Call) -> Document:
    if call.database != "admin":
        raise MongoError(13, "listDatabases may only be run against the admin database.")
    test = compile_filter(call.document("filter"), call.language())
    names_only = call.flag("nameOnly")
    found: list[Document] = []
    total = 0
    account = call.service.gateway.account
    for record in account.list_databases(call.budget):
        containers = account.list_containers(record.id, call.budget)
        size = 0 if names_only else sum(_size(call, record.id, one.id) for one in containers)
        total += size
        row: Document = {"name": record.id, "sizeOnDisk": Int64(size), "empty": not containers}
        if test(row):
            found.append({"name": record.id} if names_only else row)
    reply: Document = {"databases": found}
    if not names_only:
        reply |= {"totalSize": Int64(total), "totalSizeMb": Int64(total >> 20)}
    return reply


def _size(call: Call, database: str, name: str) -> int:
    from armillary.store.reports import statistics

    try:
        store = call.service.gateway.container(database, name)
        parts = statistics.partitions(store, call.budget)
        return sum(one.body_bytes + one.index_bytes for one in parts)
    except (NotFound, AttributeError):
        return 0


def list_collections(call: Call) -> Document:
    check_database_name(call.database)
    test = compile_filter(call.document("filter"), call.language())
    names_only = call.flag("nameOnly")
    size = call.batch_size(MONGO_FIRST_BATCH)
    found: list[bytes] = []
    for record in call.service.collections.records(call.database, call.budget):
        own = record.definition.get("mongo") or {}
        options = from_stored(own.get("options", {}))
        identity = own.get("uuid") or str(uuid.uuid5(uuid.NAMESPACE_OID, record.rid))
        row: Document = {
            "name": record.id,
            "type": "collection",
            "options": options,
            "info": {"readOnly": False, "uuid": Binary(uuid.UUID(identity).bytes, 4)},
            "idIndex": dict(ID_INDEX),
        }
        if test(row):
            if names_only:
                row = {"name": record.id, "type": "collection"}
            found.append(encode(row))
    return rows_reply(call, f"{call.database}.$cmd.listCollections", found, size)


# --- sharding -------------------------------------------------------------------------------------


def shard_path(key: Any) -> str:
    if not isinstance(key, dict) or not key:
        raise bad_value("shardCollection needs a 'key', such as {region: 'hashed'}")
    if len(key) != 1:
        raise bad_value("The partition key definition must contain a single field.")
    ((path, kind),) = key.items()
    unsupported = bad_value(f"Unsupported shard key pattern. Use {{{path}: 'hashed'}}.")
    if kind != "hashed" and whole(kind, unsupported) != 1:
        raise unsupported
    if not path or "" in path.split(".") or "$" in path:
        raise bad_value(f"The shard key '{path}' is not a field path")
    return str(path)


def shard_collection(call: Call) -> Document:
    full = call.command["shardCollection"]
    if not is_text(full) or "." not in full:
        raise MongoError(73, f"Invalid namespace specified '{full}'")
    database, _, name = full.partition(".")
    path = shard_path(call.command.get("key"))
    collections = call.service.collections
    old = collections.current(database, name)
    if old is None:
        collections.create(database, name, shard=path, throughput=_throughput(call.command))
    elif old.shard == tuple(path.split(".")):
        pass  # already so
    elif old.shard is None and is_empty(old, call.budget):
        indexes = [dict(one) for one in old.indexes]
        collections.drop(database, name)
        collections.create(database, name, shard=path, indexes=indexes, options=old.options)
    elif old.shard is None:
        raise MongoError(
            20, f"The collection {full} has documents; its shard key is chosen when it is created."
        )
    else:
        raise MongoError(
            20, f"sharding already enabled for collection {full} with another shard key"
        )
    return {"_t": "ShardCollectionResponse", "ok": 1, "collectionsharded": full}


def is_empty(collection: Collection, budget: Budget) -> bool:
    position: str | None = None
    target = target_of(collection, {})
    while True:
        page = read_page(collection, target, position, 10, budget=budget)
        if page.rows:
            return False
        if page.position is None:
            return True
        position = page.position


def enable_sharding(call: Call) -> Document:
    name = call.command["enableSharding"]
    if not is_text(name):
        raise wrong_type("enableSharding.enableSharding", type_name(name), "string")
    call.service.collections.ensure_database(name)
    return {"ok": 1}


# --- customAction ---------------------------------------------------------------------------------


def _throughput(command: Document) -> Throughput | None:
    manual, scaled = command.get("offerThroughput"), command.get("autoScaleSettings")
    if manual is not None and scaled is not None:
        raise bad_value("offerThroughput and autoScaleSettings exclude each other")
    if manual is not None:
        if not is_number(manual):
            raise wrong_type("customAction.offerThroughput", type_name(manual), "int")
        return "manual", whole(manual, bad_value("offerThroughput must be a whole number"))
    if scaled is not None:
        most = scaled.get("maxThroughput") if isinstance(scaled, dict) else None
        if not is_number(most):
            raise bad_value("autoScaleSettings needs a maxThroughput")
        return "autoscale", whole(most, bad_value("maxThroughput must be a whole number"))
    return None


def custom_action(call: Call) -> Document:
    name = call.command["customAction"]
    action = _ACTIONS.get(name) if is_text(name) else None
    if action is None:
        raise bad_value(f"The customAction '{name}' is not known; there are {', '.join(_ACTIONS)}")
    return action(call)


def _create_database(call: Call) -> Document:
    check_database_name(call.database)
    call.service.gateway.account.create_database(call.database, _throughput(call.command))
    return {"ok": 1}


def _update_database(call: Call) -> Document:
    from armillary.store.throughput.shared import change_shared_throughput

    wanted = _throughput(call.command)
    if wanted is None:
        raise bad_value("UpdateDatabase needs offerThroughput or autoScaleSettings")
    account = call.service.gateway.account
    record = account.read_database(call.database)
    _check_kind(read_offer(account.engine, record.rid), wanted)
    change_shared_throughput(account, record, wanted[1], kind=wanted[0])
    return {"ok": 1}


def _get_database(call: Call) -> Document:
    account = call.service.gateway.account
    record = account.read_database(call.database)
    return {"database": record.id, **_offer(call, record.rid), "ok": 1}


def _offer(call: Call, rid: str) -> Document:
    try:
        offer = read_offer(call.service.engine, rid)
    except NotFound:
        return {}
    if offer.kind == "autoscale":
        return {
            "provisionedThroughput": offer.ru // 10,
            "autoScaleSettings": {"maxThroughput": offer.ru},
        }
    return {"provisionedThroughput": offer.ru}


def _named(call: Call) -> str:
    name = call.command.get("collection")
    if not is_text(name) or not name:
        raise bad_value("customAction needs the name of a 'collection'")
    return name


def _indexes(call: Call) -> list[Document] | None:
    given = call.command.get("indexes")
    if given is None:
        return None
    if not isinstance(given, list):
        raise wrong_type("customAction.indexes", type_name(given), "array")
    made = [checked_index(one) for one in given]
    if not any(list(one["key"]) == ["_id"] for one in made):
        raise bad_value("The indexes of a collection must contain the one on _id")
    return [dict(ID_INDEX), *(one for one in made if list(one["key"]) != ["_id"])]


def _create_collection(call: Call) -> Document:
    name = _named(call)
    shard = call.command.get("shardKey")
    if shard is not None and not is_text(shard):
        raise wrong_type("customAction.shardKey", type_name(shard), "string")
    if call.service.collections.current(call.database, name) is not None:
        raise MongoError(48, f"Collection {call.database}.{name} already exists.")
    wanted = _throughput(call.command)
    if wanted is not None and shard is None and wanted[1] > 10_000:
        raise bad_value("A collection without a shard key has 10,000 RU/s at most")
    call.service.collections.create(
        call.database, name, shard=shard, indexes=_indexes(call), throughput=wanted
    )
    return {"ok": 1}


def _check_kind(offer: OfferRecord, wanted: Throughput) -> None:
    if offer.kind != wanted[0]:
        raise bad_value("The throughput can't be switched between manual and autoscale here")


def _update_collection(call: Call) -> Document:
    collection = call.service.collections.need(call.database, _named(call))
    wanted = _throughput(call.command)
    account = call.service.gateway.account
    if wanted is not None:
        _check_kind(read_offer(account.engine, collection.store.state.record.rid), wanted)
        change_throughput(collection.store, wanted[1], of=account.limits)
        call.service.gateway.scale_later(collection.store)
    indexes = _indexes(call)
    if indexes is not None:
        call.service.collections.replace_indexes(collection, indexes)
    if wanted is None and indexes is None:
        raise failed_to_parse("UpdateCollection needs a throughput or indexes")
    return {"ok": 1}


def _get_collection(call: Call) -> Document:
    collection = call.service.collections.need(call.database, _named(call))
    reply: Document = {"database": call.database, "collection": collection.name}
    if collection.shard is not None:
        reply["shardKeyDefinition"] = {".".join(collection.shard): "hashed"}
    reply |= _offer(call, collection.store.state.record.rid)
    if call.flag("showIndexes"):
        reply["indexes"] = [
            {**listed_index(one), "v": 1, "ns": collection.namespace} for one in collection.indexes
        ]
    return {**reply, "ok": 1}


def _change_tokens(call: Call) -> Document:
    from armillary.api.mongo.commands.changes import tokens

    collection = call.service.collections.need(call.database, _named(call))
    moment = call.command.get("startAtOperationTime")
    if moment is not None and not isinstance(moment, Timestamp):
        raise wrong_type("customAction.startAtOperationTime", type_name(moment), "timestamp")
    return {"resumeAfterTokens": tokens(call, collection, moment), "ok": 1}


_ACTIONS: Final = {
    "CreateDatabase": _create_database,
    "UpdateDatabase": _update_database,
    "GetDatabase": _get_database,
    "CreateCollection": _create_collection,
    "UpdateCollection": _update_collection,
    "GetCollection": _get_collection,
    "GetChangeStreamTokens": _change_tokens,
}


def last_statistics(call: Call) -> Document:
    name, charge_ru, elapsed_ms = call.client.statistics or ("", 0.0, 0.0)
    return {
        "_t": "GetRequestStatisticsResponse",
        "ok": 1,
        "CommandName": name,
        "RequestCharge": round(charge_ru, 2),
        "RequestDurationInMilliSeconds": round(elapsed_ms, 3),
    }
