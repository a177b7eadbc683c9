"""Without these, clients could not tell a serverless account from another, and a flood of requests
about containers would never be refused where the service refuses it."""

from collections.abc import Iterator

import pytest
from tests.support.nosql import Api

from armillary.partition.budgets.ledger import LocalLedger
from armillary.store.throughput.meter import Meter


@pytest.fixture
def api() -> Iterator[Api]:
    made = Api()
    yield made
    made.close()


def test_offers_of_a_serverless_account_are_refused(api: Api) -> None:
    api.account.serverless = True
    assert api.ask("POST", "/dbs", {"id": "d"}).status == 201
    given = {"x-ms-offer-throughput": "400"}
    refused = api.ask("POST", "/dbs", {"id": "e"}, given)
    assert refused.status == 400
    assert b"on database is not supported for serverless accounts" in refused.body
    for answer in (api.ask("GET", "/offers"), api.ask("GET", "/offers/abcd")):
        assert answer.status == 400
        text = b"Reading or replacing offers is not supported for serverless accounts."
        assert text in answer.body


def test_metadata_has_a_budget_of_its_own_when_asked_for(api: Api) -> None:
    api.account.meter = Meter(api.engine, LocalLedger("on"), metadata=True)
    answers = [api.ask("GET", "/dbs") for _ in range(300)]
    refused = answers[-1]
    assert [one.status for one in answers[:200]] == [200] * 200
    assert (refused.status, refused.headers["x-ms-substatus"]) == (429, "3201")
    assert 0 < int(refused.headers["x-ms-retry-after-ms"]) <= 1000
    api.clock.advance(int(refused.headers["x-ms-retry-after-ms"]) / 1000)
    assert api.ask("GET", "/dbs").status == 200


def test_metadata_is_free_by_default(api: Api) -> None:
    api.account.meter = Meter(api.engine, LocalLedger("on"))
    assert {api.ask("GET", "/dbs").status for _ in range(300)} == {200}
