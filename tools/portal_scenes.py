"""What is on the pictures of the portal: accounts made from a seed, and where to look."""

from __future__ import annotations

from json import dumps
from random import Random
from typing import Any
from urllib.parse import quote

from tests.support.portal import Portal

CITIES = ("Lisbon", "Kraków", "Reykjavík", "Nagoya", "Valparaíso", "Tromsø", "Bologna", "Leuven")
NAMES = ("ada", "bob", "chen", "dora", "emeka", "frida", "goran", "hana", "ilse", "jun")


def order(number: int, random: Random) -> dict[str, Any]:
    name = random.choice(NAMES)
    return {
        "id": f"order-{number:05}",
        "customerId": f"{name}-{random.randrange(40):02}",
        "city": random.choice(CITIES),
        "total": round(2 * random.lognormvariate(3.4, 0.8)) / 2,
        "lines": [
            {"sku": f"SKU-{random.randrange(900):03}", "quantity": random.randrange(1, 5)}
            for _ in range(random.randrange(1, 4))
        ],
        "paid": random.random() < 0.8,
    }


def fill(portal: Portal, count: int = 400) -> None:
    random = Random(8)
    portal.make_container("shop", "orders", "/customerId", throughput=6_000)
    portal.make_container("shop", "customers", "/id")
    portal.make_container("telemetry", "readings", "/deviceId")
    for number in range(count):
        item = order(number, random)
        found = portal.api.ask(
            "POST",
            "/dbs/shop/colls/orders/docs",
            item,
            {"x-ms-documentdb-partitionkey": f'["{item["customerId"]}"]'},
        )
        assert found.status == 201, found.body


def explorer(portal: Portal) -> None:
    fill(portal)
    page = portal.open("/?db=shop&c=orders")
    page.locator(".a-item-link").nth(4).click()
    page.get_by_test_id("etag").wait_for()
    page.wait_for_timeout(500)


def new_container(portal: Portal) -> None:
    fill(portal, 40)
    page = portal.open("/?db=shop&c=orders")
    page.get_by_role("button", name="Actions for database shop").click()
    page.get_by_text("New container").click()
    page.get_by_label("Name").fill("readings")
    page.get_by_role("button", name="Synthetic").click()
    page.get_by_role("button", name="Few values").click()
    page.wait_for_timeout(1500)


def query(portal: Portal) -> None:
    fill(portal)
    text = (
        "SELECT c.city, COUNT(1) AS orders, SUM(c.total) AS revenue\n"
        "FROM c\nWHERE c.paid = true AND c.total > 20\nGROUP BY c.city"
    )
    page = portal.open("/query?db=shop&c=orders&q=" + quote(text))
    page.get_by_role("button", name="Run").click()
    portal.see("q-charge").wait_for()
    page.wait_for_timeout(500)


def query_plan(portal: Portal) -> None:
    query(portal)
    portal.page.get_by_role("tab", name="Plan and indexes").click()
    portal.see("q-plan").wait_for()
    portal.page.wait_for_timeout(500)


#: What a shop does: orders come in, customers look at theirs, now and then somebody asks by city.
WORKLOAD = """{"operations": [
  {"kind": "create", "rate": 150},
  {"kind": "query", "rate": 200, "text": "SELECT * FROM c WHERE c.customerId = @customer",
   "parameters": [{"name": "@customer", "value": "ada-07"}]},
  {"kind": "query", "rate": 5, "text": "SELECT * FROM c WHERE c.city = @city AND c.paid = false",
   "parameters": [{"name": "@city", "value": "Leuven"}]}
]}"""


def advisor(portal: Portal) -> None:
    fill(portal, 600)
    page = portal.open("/advisor?db=shop&c=orders")
    page.get_by_label("Throughput, RU/s").fill("20000")
    page.get_by_text("Workload (optional)").click()
    page.get_by_role("textbox", name="Workload").fill(WORKLOAD)
    page.get_by_text("Workload (optional)").click()
    page.get_by_role("button", name="Advise").click()
    portal.see("recommended").wait_for(timeout=120_000)
    page.wait_for_timeout(1_000)


def graph(portal: Portal) -> None:
    """People of eight cities who mostly know people of their own."""
    random = Random(16)
    portal.make_container("shop", "people", "/city", throughput=3_000)
    cities = {f"{name}-{at}": CITIES[at % len(CITIES)] for at, name in enumerate(NAMES * 4)}
    ids = list(cities)

    def put(document: dict[str, Any]) -> None:
        headers = {"x-ms-documentdb-partitionkey": dumps([document["city"]])}
        found = portal.api.ask("POST", "/dbs/shop/colls/people/docs", document, headers)
        assert found.status == 201, found.body

    for id, city in cities.items():
        put({"id": id, "label": "person", "city": city})
    for number in range(60):
        one = random.choice(ids)
        near = [id for id in ids if id != one and (cities[id] == cities[one]) == (number % 5 > 0)]
        other = random.choice(near)
        put({
            "id": f"k{number}", "label": "knows", "city": cities[one], "_isEdge": True,
            "_vertexId": one, "_vertexLabel": "person", "_sink": other, "_sinkLabel": "person",
            "_sinkPartition": cities[other],
        })  # fmt: skip
    page = portal.open("/graph?db=shop&c=people&q=g.V()")
    page.get_by_role("button", name="Run").click()
    portal.see("graph-picture").wait_for()
    page.wait_for_timeout(500)
