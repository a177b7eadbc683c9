"""What the API takes and gives, as tables for people: the compatibility page is made of them.

The routes come from `routes.py`; the headers are listed here, and a test holds the lists against
the source, so that neither can fall behind.
"""

from __future__ import annotations

from typing import Final

from armillary.api.nosql.options import UNREAD
from armillary.api.nosql.routes import ROUTES

#: What a request may say, and what comes of it.
REQUEST_HEADERS: Final[dict[str, str]] = {
    "authorization": "a signature, a resource token, or (switched on) a token of Entra ID",
    "x-ms-date": "signed; within 15 minutes of ours. `date` serves as well",
    "x-ms-version": "any; before 2018-12-31 a container needs no partition key",
    "x-ms-activity-id": "echoed",
    "x-ms-consistency-level": "the account's level or a weaker one; strong levels cost double",
    "x-ms-session-token": "reads at the level Session never go back behind it",
    "x-ms-documentdb-partitionkey": "one key, or the beginning of a hierarchical one",
    "x-ms-documentdb-partitionkeyrangeid": (
        "one physical partition; 410 when it is gone, unless a page of it is continued"
    ),
    "x-ms-start-epk": "a part of the hash space, from here",
    "x-ms-end-epk": "to here",
    "x-ms-cosmos-intended-collection-rid": "400/1024 when the name is another container's by now",
    "x-ms-max-item-count": "items of a page; -1 leaves it to us",
    "x-ms-continuation": "where the page before ended",
    "x-ms-documentdb-isquery": "POST asks instead of creating",
    "x-ms-documentdb-query": "the same, as Go says it",
    "x-ms-documentdb-query-enablecrosspartition": "a query may look everywhere",
    "x-ms-cosmos-is-query-plan-request": "answer the plan, not the rows",
    "x-ms-cosmos-supported-query-features": "what the client can merge; 400 for what it can't",
    "x-ms-documentdb-populatequerymetrics": "counts and times of a query",
    "x-ms-cosmos-populateindexmetrics": "indexes a query used",
    "x-ms-cosmos-populateindexmetrics-v2": "the same in the newer form",
    "x-ms-documentdb-is-upsert": "POST replaces what is there",
    "if-match": "412 unless it is the current version",
    "if-none-match": "304 on reads; the position in a change feed; `*` starts it now",
    "if-modified-since": "the time at which a change feed starts",
    "a-im": "`Incremental Feed` or `Full-Fidelity Feed`: the change feed; incremental ranges",
    "prefer": "`return=minimal` leaves the body of a write out",
    "x-ms-cosmos-is-batch-request": "POST is a batch or a bulk",
    "x-ms-cosmos-batch-atomic": "all or nothing",
    "x-ms-cosmos-batch-continue-on-error": "`false`: a bulk stops at the first entry that fails",
    "x-ms-documentdb-pre-trigger-include": "the trigger that runs before a write",
    "x-ms-documentdb-post-trigger-include": "the trigger that runs after it",
    "x-ms-documentdb-script-enable-logging": "answer with what a procedure logs",
    "x-armillary-api": "ours: `gremlin` makes a graph, whose key is checked",
    "x-armillary-kind": "ours: `fixed` makes a fixed container, with or without a key",
    "x-armillary-script-changes": "ours: answer with what a procedure wrote",
    "x-ms-documentdb-populatequotainfo": "size and number of items of a container",
    "x-ms-documentdb-populatepartitionstatistics": "the same for each physical partition",
    "x-ms-documentdb-expiry-seconds": "life of a resource token",
    "x-ms-offer-throughput": "manual RU/s",
    "x-ms-offer-type": "legacy; refused alongside a number",
    "x-ms-cosmos-offer-autopilot-settings": "autoscale, by its maximum",
    "x-ms-cosmos-migrate-offer-to-autopilot": "from manual to autoscale",
    "x-ms-cosmos-migrate-offer-to-manual-throughput": "and back",
    "x-forwarded-host": "the address in the account document, behind a trusted proxy",
    "x-forwarded-proto": "its scheme",
    "host": "the address in the account document",
    "origin": "answered with CORS headers when it is configured",
    "access-control-request-headers": "allowed to configured origins",
    "date": "signed when `x-ms-date` is missing",
    **dict.fromkeys(sorted(UNREAD), "accepted; nothing depends on it"),
}

RESPONSE_HEADERS: Final[dict[str, str]] = {
    "x-ms-activity-id": "always",
    "x-ms-request-charge": "always; what the request cost",
    "x-ms-request-duration-ms": "always, from a server: whole request to answer",
    "content-location": "always, from a server: the address that was asked",
    "x-ms-substatus": "errors that have one",
    "x-ms-retry-after-ms": "429; 3201, the metadata budget, only with throughput.metadata",
    "etag": "one resource; ranges; the change feed",
    "x-ms-continuation": "there is more",
    "x-ms-item-count": "feeds and queries",
    "x-ms-session-token": "answers about items of one range, errors too",
    "x-ms-documentdb-partitionkeyrangeid": "the range that answered",
    "x-ms-alt-content-path": "names of the container (of a container: of its database)",
    "x-ms-content-path": "rid of the same",
    "lsn": "of the range",
    "x-ms-item-lsn": "of the item",
    "x-ms-resource-quota": "asked for with populatequotainfo",
    "x-ms-resource-usage": "asked for with populatequotainfo",
    "x-ms-documentdb-collection-index-transformation-progress": (
        "containers: percent of the items that are indexed as their policy says"
    ),
    "x-ms-cosmos-query-execution-info": "queries",
    "x-ms-documentdb-query-metrics": "queries, asked for",
    "x-ms-cosmos-index-utilization": "queries, asked for",
    "x-ms-documentdb-script-log-results": "executions, asked for; percent-encoded",
    "x-armillary-script-changes": "ours: executions, asked for; percent-encoded JSON",
    "x-ms-cosmos-min-throughput": "offers",
    "x-ms-offer-replace-pending": "offers; true while splits are under way",
    "x-ms-schemaversion": "decoration",
    "x-ms-serviceversion": "decoration",
    "x-ms-gatewayversion": "decoration",
}

#: Known differences that no table shows.
GAPS: Final[tuple[str, ...]] = (
    "Scripts run on QuickJS: modern JavaScript without `Intl`. `_ts` of an item that a script has "
    "written may be a second later in the store than in the script ([scripts](scripts.md)).",
    "A patch, a batch and a bulk that name triggers are refused.",
    "One region: no conflicts, no failover, no multiple writes.",
    "Only gateway mode: the binary direct mode is not spoken.",
    "Computed properties are evaluated when a query runs. A policy may name their paths, and has "
    "to for `ORDER BY`, but filters on them read the items "
    "([why](decisions/0012-computed-properties.md)).",
    "A filter on a path without an index reads the items, with or without "
    "`x-ms-documentdb-query-enable-scan`. Older services refused it without.",
    "Tuple index paths are kept and given back, and not built.",
    "Vector indexes of every type are searched exactly: results are those of a scan.",
    "`x-ms-indexing-directive` is ignored; the indexing policy decides.",
    "Text of a query that can't be read has the code SC1001, and SC1010 for a string literal that "
    "is not one. Replies of the service quoted in public tell more cases apart: SC1002 at the end "
    "of the text, SC1010 for a character that begins nothing, SC1012 for a string literal.",
)

#: Where documents and SDKs disagree, and the SDKs were followed.
LIKE_THE_SDKS: Final[tuple[str, ...]] = (
    "An object where a partition key path ends counts as no value (an array is refused).",
    "`permissionMode`, `triggerType` and `triggerOperation` are taken in any case and given back "
    "as sent.",
    "The indexing path `/` is `/*`, and the `Hash` and `Range` kinds of old policies are left out "
    "of what is given back.",
    "The progress of lazy indexing has no header: no container is indexed lazily.",
    "A query over several ranges that needs no merging is answered range by range: a page ends "
    "with its range, be it empty.",
    "An aggregate without `VALUE` and without a partition key header is left to the client even "
    "when the filter names one key.",
    "An item is too large (413) by its bytes as sent, escapes included; a batch that is too large "
    "is refused as a whole.",
    "Ranges that a change of throughput will split are `splitting` for a moment before they are.",
)


def route_rows() -> list[tuple[str, str, str, str]]:
    """Method, path, what it does, what is different."""
    return [(one.method, "/" + one.pattern, one.name, one.note) for one in ROUTES]
