"""Why a test of a public suite fails, where it is known: suite → (part of its name, cause). A name
ends with `$`."""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = "cause not known"


def _by_cause(found: dict[str, tuple[str, ...]]) -> tuple[tuple[str, str], ...]:
    return tuple((part, cause) for cause, parts in found.items() for part in parts)


CAUSES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "javascript": (
        (
            "DISTINCT ORDER BY queries with continuation",
            "the SDK drops repeated values itself, and its continuation forgets the last one when "
            "a page ends inside what it has buffered",
        ),
        (
            "fuzzy SELECT * query with random continuation",
            "the SDK's token forgets ranges that were read to their end "
            "(BaseContinuationTokenManager.removeExhaustedRangesFromRanges), and who goes on with "
            "it asks each range behind the last one named from its beginning "
            "(ParallelQueryRangeStrategy.filterPartitionRanges): items come twice when the first "
            "range is the last to end, in 3 of 100 runs of the test's random page sizes",
        ),
    ),
    "go": (),
    "python": (
        (
            "test_query_response_headers_concurrent",
            "a race inside the SDK (OrderedDict mutated during iteration)",
        ),
        (
            "test_health_check_success",
            "its mock counts the background check of the client made before it too, when that "
            "thread of the SDK is late, as on a busy machine",
        ),
        (
            "test_cross_region_retry",
            "the SDK's background refresh, when it is late, replaces the regions that the test set "
            "by hand",
        ),
    ),
    "rust": (),
    "table": (
        ("_with_token_credential", "a token of Entra ID, which is not to be had without the cloud"),
    ),
    "pymongo": _by_cause(
        {
            "streams of a database or a cluster: the service has streams of collections only "
            "(reference 16)": (
                "TestClusterChangeStream::",
                "TestDatabaseChangeStream::",
                "watch_helper_on_a_Database",
                "watch_helper_on_a_MongoClient",
                "create_events",
            ),
            "collMod: not supported by the service (reference 8)": (
                "TestUnifiedChangeStreamsPreAndPostImages::",
                "modify_events",
                "test_update_bypass_document_validation",
            ),
            "renameCollection: not supported by the service (reference 8)": (
                "TestCollection::test_rename",
                "TestSession::test_collection",
                "TestClusterTime::test_cluster_time",
                "test_Test_rename_and_invalidate",
                "rename_change_event",
                "new_fields_on_change_stream_events",
            ),
            "documents of more than 2 MB (reference 22)": (
                "test_insert_many_large_batch",
                "test_write_large_document",
                "test_bulk_max_message_size",
                "test_large_inserts",
                "test_upsert_large",
                "test_split_large_change",
            ),
            "write concerns are ignored: every write is durable (reference 15)": (
                "TestCollection::test_aggregate",
                "TestCollection::test_create$",
                "TestCollection::test_drop_index",
                "test_find_one_and_write_concern",
                "TestDatabase::test_drop_collection",
                "test_transaction_write_concern_override",
            ),
            "events have no operation type of the service's; ours are insert and replace, without "
            "updateDescription (reference 16)": (
                "TestCollectionChangeStream::test_change_operations",
                "test_Test_array_truncation",
                "TestUnifiedChangeStreamsDisambiguatedPaths::",
            ),
            "a dropped collection ends a stream with 26, not with an invalidate event "
            "(reference 16)": (
                "TestCollectionChangeStream::test_iteration",
                "TestCollectionChangeStream::test_start_after",
                "test_Test_drop_and_invalidate",
            ),
            "unique indexes are made while a collection is empty (reference 11)": (
                "DuplicateKey_error_is_accessible",
                "TestCollection::test_create_index",
                "test_index_dont_drop_dups",
            ),
            "validators: collMod and $jsonSchema are not supported by the service "
            "(reference 8, 12)": ("bypass_document_validation",),
            "capped collections are ordinary ones; tailable cursors end (reference 6: accepted)": (
                "tailable",
                "test_max_await_time_ms",
            ),
            "validate: not a command of the service (reference 8)": (
                "test_validate_collection",
                "TestSession::test_database",
            ),
            "explain has the service's form (reference 21)": (
                "test_index_filter",
                "TestCursor::test_explain",
            ),
            "2d and text indexes: not in the service (reference 11)": (
                "test_index_geo2d",
                "test_index_text",
            ),
            "snapshot sessions: reads are of the latest state (reference 15)": (
                "raw_snapshot_reads",
            ),
            "users and roles: not supported by the service (reference 8)": (
                "TestBulkAuthorization::",
            ),
            "waits for an event about indexes: events are about documents (reference 16)": (
                "createIndex_events",
                "dropIndexes_events",
            ),
            "waits for the event of a delete, which never comes (reference 16)": (
                "delete_event_types",
            ),
            "$where: not in the service (reference 12)": (
                "test_where",
                "test_to_list_csot_applied",
            ),
            "views: not in the service (reference 8)": ("correctly_on_views",),
            "the profiler: not supported by the service (reference 8)": (
                "TestCursor::test_comment",
            ),
            "without a sort, documents do not come in the order of a hinted index": ("test_hint",),
            "create in a transaction: one existing collection (reference 17)": (
                "TestTransactions::test_create_collection",
            ),
            "a transaction has 5 seconds (reference 17)": (
                "test_transaction_starts_with_batched_write",
            ),
            "all levels of read concern are accepted (reference 15)": ("test_read_concern",),
            "a reply to an exhaust cursor is never followed by another: allowed by the protocol, "
            "slower": ("TestCollection::test_exhaust",),
            "the last batch says that it is the last: one getMore less than the test counts": (
                "test_exhaust_cursor_db_set",
            ),
        }
    ),
}


def cause_of(suite: str, test: str) -> str:
    found = (cause for part, cause in CAUSES.get(suite, ()) if part in f"{test}$")
    return next(found, UNKNOWN)
