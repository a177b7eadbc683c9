"""Every case of the query language through the official SDK: on one range, on several that the
server merges, and on several that the client merges, or refuses to, in its own words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError
from tests.support.accounts import plain
from tests.support.http_bridge import bridged
from tests.support.query_cases import QueryCase, agree, query_cases

from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings
from armillary.api.nosql.service import NosqlService
from armillary.clock import new_random
from armillary.engine.opening import open_engine
from armillary.store.catalog.accounts import AccountStore
from armillary.store.commands import HANDLERS

CASES = query_cases()
ROWS = [case for case in CASES if case.error is None]
ERRORS = [case for case in CASES if case.error is not None]

#: What azure-cosmos 4.17 says of queries over several ranges that it can't merge (nosql-rest 5.2,
#: 5.5): the features it does not list, and sort keys of several types.
GROUPS = "Query contained GroupBy, which the calling client does not support."
AGGREGATES = "Query contained NonValueAggregate, which the calling client does not support."
SETS = "Query contained ListAndSetAggregate, which the calling client does not support."
COUNTS = "Query contained DCount, which the calling client does not support."
GROUPED_WITHIN = "A query over a subquery that groups can't be merged from partitions."
MIXED = "Expected [A-Za-z]+, but got [A-Za-z]+."
REFUSED = {
    "aggregate-empty-input": AGGREGATES,
    "aggregate-minmax-mixed-primitives": AGGREGATES,
    "aggregate-minmax-with-array-undefined": AGGREGATES,
    "aggregate-sum-mixed-type-undefined": AGGREGATES,
    "aggregate-undefined-ignored": AGGREGATES,
    "aggregate-of-undefined": AGGREGATES,
    "aggregates-beside-each-other": AGGREGATES,
    "aggregates-of-nothing": AGGREGATES,
    "aggregate-makelist-makeset": SETS,
    "distinct-count": COUNTS,
    "order-by-mixed-desc": MIXED,
    "order-by-mixed-primitive-types": MIXED,
    "order-by-mixed-types-with-arrays-last": MIXED,
    "order-by-nested-path": MIXED,
    "order-by-path-of-a-source": MIXED,
    "order-by-two-page [composite /a asc,/b desc]": MIXED,
    "order-by-two-reversed [composite /a asc,/b desc]": MIXED,
    "order-by-undefined-first": MIXED,
    "order-distinct-top-with-undefined": MIXED,
    "order-with-value-drops-undefined": MIXED,
    "group-of-a-query-with-groups": GROUPED_WITHIN,
}
#: Answered before any range is chosen, since the filter leaves none; or grouped within each item.
NOT_GROUPED = {"group-by-no-rows-no-groups", "group-inside-array"}
#: DISTINCT: the SDK takes a row that is null for the end of all rows.
CUT_AT_NULL = {"distinct-values"}
#: MIN and MAX: the SDK gives null for what no range has a value for.
NULL_FOR_UNDEFINED = {"aggregate-of-arrays-is-undefined"}
#: ORDER BY: the SDK merges texts by code points, the service sorts them by UTF-16 units.
OTHER_ORDER = {"order-by-strings-by-code-unit"}


@dataclass
class Place:
    """Containers of so many ranges, one for each set of documents."""

    account: AccountStore
    client: CosmosClient
    ranges: int
    made: dict[str, ContainerProxy] = field(default_factory=dict)

    def container(self, case: QueryCase) -> ContainerProxy:
        key = json.dumps([case.docs, case.settings])
        if key not in self.made:
            name = f"{self.ranges}-{len(self.made)}"
            body = {"id": name, "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2}}
            body |= case.settings
            self.account.create_container("d", body, physical_partitions=self.ranges)
            found = self.client.get_database_client("d").get_container_client(name)
            for doc in case.docs:
                found.create_item(doc)
            self.made[key] = found
        return self.made[key]

    def ask(self, case: QueryCase) -> list[Any]:
        named = [{"name": name, "value": value} for name, value in case.parameters.items()]
        rows = self.container(case).query_items(
            case.query, parameters=named, enable_cross_partition_query=True
        )
        return [plain(row) if isinstance(row, dict) else row for row in rows]


@pytest.fixture(scope="module")
def places() -> Iterator[dict[str, Place]]:
    """One account behind two ports: a server that merges and one that leaves it to clients."""
    engine = open_engine(":memory:", HANDLERS)
    account = AccountStore(engine, random=new_random(1))
    account.create_database("d")
    alone = NosqlService(Gateway(account))
    merging = NosqlService(Gateway(account, GatewaySettings(gateway_merge=True)))
    with bridged(alone) as (url, _), bridged(merging) as (merging_url, _):
        client, merged = CosmosClient(url, EMULATOR_KEY), CosmosClient(merging_url, EMULATOR_KEY)
        yield {
            "one": Place(account, merged, 1),
            "merged": Place(account, merged, 4),
            "left": Place(account, client, 3),
        }
    alone.gateway.close()
    merging.gateway.close()
    engine.close()


@pytest.mark.parametrize("place", ["one", "merged"])
@pytest.mark.parametrize("case", ROWS, ids=str)
def test_each_case_gives_its_rows(places: dict[str, Place], case: QueryCase, place: str) -> None:
    found = places[place].ask(case)
    assert agree(found, case.expect, case.ordered), found


@pytest.mark.parametrize("place", ["one", "merged", "left"])
@pytest.mark.parametrize("case", ERRORS, ids=str)
def test_each_error_reaches_the_client(
    places: dict[str, Place], case: QueryCase, place: str
) -> None:
    with pytest.raises(CosmosHttpResponseError) as caught:
        places[place].ask(case)
    assert caught.value.status_code == 400
    assert str(case.error) in str(caught.value)


@pytest.mark.parametrize("case", ROWS, ids=str)
def test_what_the_client_merges(places: dict[str, Place], case: QueryCase) -> None:
    """The right rows, or the SDK's own refusal where it can't: never partial rows as the answer."""
    refusal = refusal_of(case)
    if refusal is not None:
        with pytest.raises((CosmosHttpResponseError, ValueError), match=refusal):
            places["left"].ask(case)
        return
    found = places["left"].ask(case)
    if case.name in CUT_AT_NULL:
        assert None not in found
        return
    if case.name in NULL_FOR_UNDEFINED:
        assert found == [None]
        return
    is_ordered = case.ordered and case.name not in OTHER_ORDER
    assert agree(found, case.expect, is_ordered), found


def refusal_of(case: QueryCase) -> str | None:
    """The words with which the SDK refuses a case on several ranges, None if it merges it."""
    if "GROUP BY" in case.query and case.name not in NOT_GROUPED:
        return REFUSED.get(case.name, GROUPS)
    return REFUSED.get(case.name)


def test_the_names_of_the_exceptions_are_cases() -> None:
    known = {case.name for case in ROWS}
    exceptions = (*REFUSED, *NOT_GROUPED, *CUT_AT_NULL, *NULL_FOR_UNDEFINED, *OTHER_ORDER)
    assert known.issuperset(exceptions)
