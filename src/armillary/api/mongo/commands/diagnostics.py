"""Statistics and what tools ask when they start."""

from __future__ import annotations

import hashlib
import platform
from typing import Any

from bson.datetime_ms import DatetimeMS
from bson.int64 import Int64
from bson.timestamp import Timestamp

from armillary.api.mongo.call import Call
from armillary.api.mongo.data.collections import Collection
from armillary.api.mongo.data.reads import rows_of
from armillary.api.mongo.errors import MongoError
from armillary.encoding.bson.values import Document, same
from armillary.errors import DbError, OutOfTime
from armillary.store.reports import statistics


def collection_statistics(call: Call, collection: Collection, scale: int) -> Document:
    count = size = 0
    for row in rows_of(collection, {}, call.charge, call.budget):
        count += 1
        size += row.size
    parts = statistics.partitions(collection.store, call.budget)
    index = sum(one.index_bytes for one in parts)
    return {
        "ns": collection.namespace,
        "size": size // scale,
        "count": count,
        "avgObjSize": size // count if count else 0,
        "storageSize": size // scale,
        "nindexes": len(collection.indexes),
        "totalIndexSize": index // scale,
        "indexSizes": {
            one["name"]: index // len(collection.indexes) // scale for one in collection.indexes
        },
        "totalSize": (size + index) // scale,
        "scaleFactor": scale,
        "capped": bool(collection.options.get("capped")),
    }


def coll_stats(call: Call) -> Document:
    name = call.collection_name()
    scale = call.whole("scale", 1, 1)
    collection = call.service.collections.current(call.database, name)
    if collection is None:
        return {
            "ns": f"{call.database}.{name}", "size": 0, "count": 0, "storageSize": 0,
            "nindexes": 0, "totalIndexSize": 0, "indexSizes": {}, "totalSize": 0,
            "scaleFactor": scale,
        }  # fmt: skip
    return collection_statistics(call, collection, scale)


def db_stats(call: Call) -> Document:
    scale = call.whole("scale", 1, 1)
    made: Document = {
        "db": call.database, "collections": 0, "views": 0, "objects": 0, "avgObjSize": 0,
        "dataSize": 0, "storageSize": 0, "indexes": 0, "indexSize": 0, "totalSize": 0,
        "scaleFactor": scale, "fsUsedSize": 0, "fsTotalSize": 0,
    }  # fmt: skip
    for record in call.service.collections.records(call.database, call.budget):
        collection = call.service.collections.find(call.database, record.id)
        if collection is None:
            continue
        one = collection_statistics(call, collection, 1)
        made["collections"] += 1
        made["objects"] += one["count"]
        made["dataSize"] += one["size"]
        made["indexes"] += one["nindexes"]
        made["indexSize"] += one["totalIndexSize"]
    made["avgObjSize"] = made["dataSize"] / made["objects"] if made["objects"] else 0
    made["storageSize"] = made["dataSize"]
    made["totalSize"] = made["dataSize"] + made["indexSize"]
    for name in ("dataSize", "storageSize", "indexSize", "totalSize"):
        made[name] = made[name] / scale
    return made


def host_info(call: Call) -> Document:
    return {
        "system": {
            "currentTime": DatetimeMS(call.service.engine.now_ms()),
            "hostname": platform.node(),
            "cpuAddrSize": 64,
            "memSizeMB": Int64(0),
            "numCores": 1,
            "cpuArch": platform.machine(),
            "numaEnabled": False,
        },
        "os": {"type": platform.system(), "name": platform.system(), "version": platform.release()},
        "extra": {},
    }


def get_last_error(call: Call) -> Document:
    return {"n": 0, "err": None, "connectionId": call.client.number}


def get_parameter(call: Call) -> Document:
    known: Document = {
        "featureCompatibilityVersion": {"version": "7.0"},
        "authenticationMechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-1"],
        "enableTestCommands": False,
    }
    found = {name: value for name, value in known.items() if name in call.command}
    if call.command["getParameter"] == "*":
        found = known
    if not found:
        raise MongoError(72, "no option found to get")
    return found


def get_log(call: Call) -> Document:
    if call.command["getLog"] == "*":
        return {"names": ["global", "startupWarnings"]}
    return {"totalLinesWritten": 0, "log": []}


def server_status(call: Call) -> Document:
    now = call.service.engine.now_ms()
    return {
        "host": call.client.peer.address,
        "version": "7.0.0",
        "process": "armillary",
        "pid": Int64(0),
        "uptime": 0.0,
        "localTime": DatetimeMS(now),
        "connections": {"current": 1, "available": 1000, "totalCreated": call.client.number},
        "storageEngine": {"name": "armillary", "supportsCommittedReads": True},
        "repl": {"setName": call.service.settings.replica_set},
        "operationTime": Timestamp(now // 1000, 1),
    }


def current_op(call: Call) -> Document:
    """Index builds under way, as in Azure Cosmos DB."""
    running: list[Document] = []
    account, budget = call.service.gateway.account, call.budget
    for database in account.list_databases(budget):
        for record in account.list_containers(database.id, budget):
            if len(record.policies) < 2:
                continue
            try:
                store = call.service.gateway.container(database.id, record.id)
                total, stale = statistics.index_counts(store, budget)
            except OutOfTime:
                raise
            except DbError:
                continue
            if stale:
                done = total - stale
                share = 100 * done // max(total, 1)
                running.append(
                    {
                        "command": {"createIndexes": record.id, "indexes": [], "$db": database.id},
                        "msg": f"Index Build (background) Index Build (background): {share} %",
                        "progress": {"done": done, "total": total},
                    }
                )
    return {"inprog": running}


def file_md5(call: Call) -> Document:
    root = call.text("root", "fs")
    number = call.command["filemd5"]
    collection = call.service.collections.find(call.database, f"{root}.chunks")
    chunks: list[tuple[int, bytes]] = []
    if collection is not None:
        for row in rows_of(collection, {"files_id": number}, call.charge, call.budget):
            document: Any = row.document
            if same(document.get("files_id"), number):
                place, data = document.get("n"), document.get("data")
                if isinstance(place, int) and isinstance(data, bytes):
                    chunks.append((place, bytes(data)))
    digest = hashlib.md5(usedforsecurity=False)
    for _, data in sorted(chunks):
        digest.update(data)
    return {"numChunks": len(chunks), "md5": digest.hexdigest()}


def sessions(call: Call) -> Document:
    """startSession answers with a session; the others need nothing to be done."""
    if call.name == "startSession":
        import uuid

        from bson.binary import Binary

        return {"id": {"id": Binary(uuid.uuid4().bytes, 4)}, "timeoutMinutes": 30}
    return {}


def nothing(call: Call) -> Document:
    return {}


def command_line(call: Call) -> Document:
    return {"argv": ["armillary"], "parsed": {}}


def users_info(call: Call) -> Document:
    """The one user there is: the account itself."""
    name = call.service.settings.account
    wanted = call.command["usersInfo"]
    names = wanted if isinstance(wanted, list) else [wanted]
    known = [one.get("user") if isinstance(one, dict) else one for one in names]
    if name not in known and 1 not in known:
        return {"users": []}
    roles = [{"role": "root", "db": "admin"}]
    return {"users": [{"_id": f"admin.{name}", "user": name, "db": "admin", "roles": roles}]}
