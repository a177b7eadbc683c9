"""What a query of a table may use. Without these a long `$filter` or a scan would go on for a
client that has left, or without end."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from tests.support.table import error_of, table_api

from armillary.api.http.messages import Request
from armillary.budget import Budget

FILTERS = {
    "long": " or ".join(f"Number eq {number}" for number in range(1_500)),
    "deep": "(" * 3_000 + "Number eq 1" + ")" * 3_000,
    "not": "not (" * 2_000 + "Number eq 1" + ")" * 2_000,
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_has_a_length_and_a_depth(name: str) -> None:
    with table_api() as api:
        found = api.ask("GET", f"/t()?$filter={quote(FILTERS[name], safe='')}")
        assert found.status == 400


@pytest.mark.parametrize(
    ("budget", "status"), [(Budget(deadline=0.0), 500), (Budget(steps_max=10), 400)]
)
def test_a_query_shares_the_budget_of_its_request(budget: Budget, status: int) -> None:
    with table_api() as api:
        for number in range(600):
            entity = {"PartitionKey": "a", "RowKey": str(number), "Text": str(number)}
            assert api.ask("POST", "/t", entity).status == 201
        path = "/t()?$filter=" + quote("Text ne 'x' and not (Text eq 'y')", safe="")
        asked: list[Request] = []
        plain = api.service.handle

        def handle(request: Request) -> object:
            request.budget = budget
            asked.append(request)
            return plain(request)

        api.service.handle = handle  # type: ignore[assignment]
        found = api.ask("GET", path)
        assert api.service.lane(asked[0])
        assert found.status == status, found.body
        assert error_of(found)[1] != "InternalError"
