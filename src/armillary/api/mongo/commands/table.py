"""Every command there is, by name: supported, or known and not."""

from __future__ import annotations

from typing import Final

from armillary.api.mongo.call import Command
from armillary.api.mongo.commands import (
    aggregating,
    collections,
    deleting,
    diagnostics,
    explaining,
    handshake,
    indexes,
    inserting,
    modifying,
    reading,
    updating,
)
from armillary.api.mongo.data import transactions

_FIND_AND_MODIFY: Final = Command(
    modifying.find_and_modify,
    "query sort remove update new fields upsert arrayFilters collation hint let "
    "bypassDocumentValidation",
    writes=True,
    operation="replace",
    in_transaction=True,
)
_HELLO: Final = Command(handshake.hello, "*", login=False, counts=False)
_METADATA: Final = "metadata"

COMMANDS: Final[dict[str, Command]] = {
    # handshake and login
    "hello": _HELLO,
    "isMaster": _HELLO,
    "ismaster": _HELLO,
    "saslStart": Command(handshake.sasl_start, "*", login=False, counts=False),
    "saslContinue": Command(handshake.sasl_continue, "*", login=False, counts=False),
    "authenticate": Command(handshake.authenticate, "*", login=False, counts=False),
    "getnonce": Command(handshake.get_nonce, "*", login=False, counts=False),
    "logout": Command(handshake.logout, "*", login=False, counts=False),
    "ping": Command(handshake.ping, "*", login=False, counts=False),
    "buildInfo": Command(handshake.build_info, "*", login=False, counts=False),
    "buildinfo": Command(handshake.build_info, "*", login=False, counts=False),
    "whatsmyuri": Command(handshake.whats_my_uri, "*", login=False, counts=False),
    "connectionStatus": Command(handshake.connection_status, "*", login=False, counts=False),
    # documents
    "insert": Command(
        inserting.insert, "documents ordered bypassDocumentValidation maxRUs",
        writes=True, operation="create", in_transaction=True,
    ),
    "update": Command(
        updating.update, "updates ordered bypassDocumentValidation let",
        writes=True, operation="replace", in_transaction=True,
    ),
    "delete": Command(
        deleting.delete, "deletes ordered let", writes=True, operation="delete", in_transaction=True
    ),
    "findAndModify": _FIND_AND_MODIFY,
    "findandmodify": _FIND_AND_MODIFY,
    "find": Command(reading.find, reading.FIND_FIELDS, operation="query", in_transaction=True),
    "getMore": Command(
        reading.get_more, "collection batchSize term lastKnownCommittedOpTime", operation="query",
        in_transaction=True,
    ),
    "killCursors": Command(reading.kill_cursors, "cursors", in_transaction=True),
    "aggregate": Command(
        aggregating.aggregate, aggregating.AGGREGATE_FIELDS, operation="query", in_transaction=True
    ),
    "count": Command(
        reading.count, "query limit skip hint collation fields let", operation="query",
    ),
    "distinct": Command(
        reading.distinct, "key query collation hint let", operation="query", in_transaction=True
    ),
    "explain": Command(explaining.explain, "verbosity"),
    # transactions and sessions
    "commitTransaction": Command(
        transactions.commit_transaction, "recoveryToken", writes=True, in_transaction=True
    ),
    "abortTransaction": Command(
        transactions.abort_transaction, "recoveryToken", writes=True, in_transaction=True
    ),
    "startSession": Command(diagnostics.sessions, "*"),
    "endSessions": Command(diagnostics.sessions, "*", login=False, counts=False),
    "refreshSessions": Command(diagnostics.sessions, "*"),
    "killSessions": Command(diagnostics.sessions, "*"),
    "killAllSessions": Command(diagnostics.sessions, "*"),
    # collections and databases
    "create": Command(
        collections.create, collections.CREATE_FIELDS, writes=True, operation=_METADATA
    ),
    "drop": Command(collections.drop, "", writes=True, operation=_METADATA),
    "dropDatabase": Command(collections.drop_database, "", writes=True, operation=_METADATA),
    "listCollections": Command(
        collections.list_collections, "filter nameOnly authorizedCollections cursor",
        operation=_METADATA,
    ),
    "listDatabases": Command(
        collections.list_databases, "nameOnly filter authorizedDatabases", operation=_METADATA
    ),
    "shardCollection": Command(
        collections.shard_collection,
        "key unique numInitialChunks offerThroughput autoScaleSettings collation "
        "presplitHashedZones",
        writes=True, operation=_METADATA,
    ),
    "enableSharding": Command(
        collections.enable_sharding, "*", writes=True, operation=_METADATA
    ),
    "customAction": Command(collections.custom_action, "*", writes=True, operation=_METADATA),
    "getLastRequestStatistics": Command(collections.last_statistics, "*", counts=False),
    # indexes
    "createIndexes": Command(
        indexes.create_indexes, "indexes commitQuorum ignoreUnknownIndexOptions", writes=True,
        operation=_METADATA,
    ),
    "listIndexes": Command(indexes.list_indexes, "cursor", operation=_METADATA),
    "dropIndexes": Command(indexes.drop_indexes, "index", writes=True, operation=_METADATA),
    "deleteIndexes": Command(indexes.drop_indexes, "index", writes=True, operation=_METADATA),
    "reIndex": Command(indexes.re_index, "", writes=True, operation=_METADATA),
    # statistics and tools
    "collStats": Command(diagnostics.coll_stats, "scale"),
    "collstats": Command(diagnostics.coll_stats, "scale"),
    "dbStats": Command(diagnostics.db_stats, "scale freeStorage"),
    "dbstats": Command(diagnostics.db_stats, "scale freeStorage"),
    "hostInfo": Command(diagnostics.host_info, "*"),
    "getLastError": Command(diagnostics.get_last_error, "*", counts=False),
    "getlasterror": Command(diagnostics.get_last_error, "*", counts=False),
    "currentOp": Command(diagnostics.current_op, "*"),
    "filemd5": Command(diagnostics.file_md5, "root"),
    "getParameter": Command(diagnostics.get_parameter, "*"),
    "getCmdLineOpts": Command(diagnostics.command_line, "*"),
    "getLog": Command(diagnostics.get_log, "*"),
    "usersInfo": Command(diagnostics.users_info, "*"),
    "serverStatus": Command(diagnostics.server_status, "*"),
}  # fmt: skip

#: Answered on the event loop: they look at nothing that could wait.
INLINE: Final = frozenset(
    {"hello", "isMaster", "ismaster", "ping", "buildInfo", "buildinfo", "saslContinue", "getnonce"}
)

#: Known to the original and not there (section 8).
UNSUPPORTED: Final = frozenset(
    [
        "eval",
        "getPrevError",
        "parallelCollectionScan",
        "resetError",
        "cloneCollectionAsCapped",
        "collMod",
        "convertToCapped",
        "copydb",
        "killOp",
        "renameCollection",
        "connPoolStats",
        "dataSize",
        "dbHash",
        "features",
        "listCommands",
        "profile",
        "top",
        "mapReduce",
        "createUser",
        "updateUser",
        "dropUser",
        "usersInfo",
        "createRole",
        "grantRolesToUser",
        "addShard",
        "removeShard",
        "moveChunk",
        "balancerStart",
        "balancerStop",
        "balancerStatus",
        "validate",
        "compact",
        "fsync",
        "replSetGetStatus",
        "replSetGetConfig",
        "setFeatureCompatibilityVersion",
        "bulkWrite",
        "cloneCollection",
        "repairDatabase",
        "shutdown",
    ]
)
