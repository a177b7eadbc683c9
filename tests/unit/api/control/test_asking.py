"""A query through the controls. Without these tests the portal could show another answer, another
charge or another plan than the query has."""

from __future__ import annotations

import json

from tests.support.nosql import READ_ONLY_KEY, Api, document, pk
from tests.support.nosql import api as made

BASE = "/_armillary/dbs/d/colls/c"


def fill(api: Api, count: int = 40) -> None:
    for number in range(count):
        item = {"id": str(number), "pk": f"k{number % 10}", "n": number}
        assert api.ask("POST", "/dbs/d/colls/c/docs", item, pk(item["pk"])).status == 201


def test_an_order_over_all_partitions_is_answered_in_one_piece_with_its_plan() -> None:
    with made(partitions=4) as api:
        fill(api)
        body = {"query": "SELECT VALUE c.n FROM c WHERE c.n >= 30 ORDER BY c.n DESC"}
        page = document(api.ask("POST", f"{BASE}/query", body))
        assert page["rows"] == list(range(39, 29, -1))
        assert page["continuation"] is None
        assert page["partitions"] == ["0", "1", "2", "3"]
        assert page["partitions_read"] == 4
        assert page["index"]["used"] == ["/n/?"]
        assert page["plan"][-1].endswith("Items by index /n/? of every partition")
        assert page["charge_ru"] > 0


def test_the_charge_is_that_of_the_nosql_api(api: Api) -> None:
    fill(api)
    text = "SELECT c.id FROM c WHERE c.pk = 'k3'"
    page = document(api.ask("POST", f"{BASE}/query", {"query": text}))
    flags = {"x-ms-documentdb-isquery": "true", "content-type": "application/query+json"}
    usual = api.ask("POST", "/dbs/d/colls/c/docs", {"query": text}, flags | pk("k3"))
    assert page["rows"] == document(usual)["Documents"]
    assert f"{page['charge_ru']:.2f}" == f"{float(usual.headers['x-ms-request-charge']):.2f}"


def test_pages_go_on_where_the_one_before_ended(api: Api) -> None:
    fill(api)
    body = {"query": "SELECT VALUE c.n FROM c ORDER BY c.n", "max_items": 15}
    found = []
    while True:
        page = document(api.ask("POST", f"{BASE}/query", body))
        found += page["rows"]
        if page["continuation"] is None:
            break
        body = body | {"continuation": page["continuation"]}
    assert found == list(range(40))


def test_parameters_and_a_partition_key_narrow_it(api: Api) -> None:
    fill(api)
    body = {
        "query": "SELECT VALUE COUNT(1) FROM c WHERE c.n > @n",
        "parameters": [{"name": "@n", "value": 9}],
        "partition_key": "k3",
    }
    assert document(api.ask("POST", f"{BASE}/query", body))["rows"] == [3]


def test_a_mistake_in_the_text_has_its_place(api: Api) -> None:
    response = api.ask("POST", f"{BASE}/query", {"query": "SELECT * FORM c"})
    assert response.status == 400
    (error,) = json.loads(document(response)["message"])["errors"]
    assert error["location"] == {"start": 9, "end": 13}


def test_wrong_members_are_named(api: Api) -> None:
    ask = {"query": "SELECT 1"}
    wrong = [ask | {"max_items": "9"}, ask | {"continuation": 1}, ask | {"maxItems": 1}, [], None]
    for body in wrong:
        assert api.ask("POST", f"{BASE}/query", body).status == 400, body
    missing = api.ask("POST", "/_armillary/dbs/d/colls/nothing/query", ask)
    assert missing.status == 404


def test_a_read_only_key_may_ask(api: Api) -> None:
    fill(api, 3)
    body = {"query": "SELECT VALUE COUNT(1) FROM c"}
    answer = api.ask("POST", f"{BASE}/query", body, key=READ_ONLY_KEY)
    assert (answer.status, document(answer)["rows"]) == (200, [3])
