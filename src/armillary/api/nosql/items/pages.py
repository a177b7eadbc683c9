"""What is said of a page of query results, and of queries that may not run. Without the query
language, which is imported with the first query."""

from __future__ import annotations

from typing import Final

from armillary.api.nosql.call import Headers

EXECUTION: Final = '{"reverseRidEnabled":false,"reverseIndexScan":false}'
CROSS_TEXT: Final = (
    "Cross partition query is required but disabled. Please set "
    "x-ms-documentdb-query-enablecrosspartition to true, specify "
    "x-ms-documentdb-partitionkey, or revise your query to avoid this exception."
)


def page_headers(
    count: int | str, continuation: str | None, more: Headers
) -> dict[str, str | None]:
    """Of one page of rows. A text as count: the mark of a form."""
    return {
        "x-ms-item-count": f"{count}",
        "x-ms-continuation": continuation,
        "x-ms-cosmos-query-execution-info": EXECUTION,
        **more,
    }
