"""Cities and roads with gremlinpython: written, walked, read as items too."""

import os
from typing import Any

from azure.cosmos import CosmosClient, PartitionKey
from gremlin_python.driver.client import Client
from gremlin_python.driver.serializer import GraphSONSerializersV2d0

ENDPOINT = os.environ.get("COSMOS_ENDPOINT", "http://localhost:8081")
GREMLIN = os.environ.get("GREMLIN_ENDPOINT", "ws://localhost:8901/gremlin")
# The public key of the Cosmos DB emulator; a server on this machine takes it.
KEY = os.environ.get(
    "COSMOS_KEY",
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==",
)
CITIES = (("Seattle", "USA"), ("Portland", "USA"), ("Vancouver", "CAN"))
ROADS = (("I5", "Seattle", "Portland", 174), ("I99", "Seattle", "Vancouver", 142))
COUNTRY = dict(CITIES)


def main() -> None:
    with CosmosClient(ENDPOINT, KEY) as cosmos:
        database = cosmos.create_database_if_not_exists("travel")
        items = database.create_container_if_not_exists("roads", PartitionKey("/country"))
        graph = Client(
            GREMLIN,
            "g",
            username="/dbs/travel/colls/roads",
            password=KEY,
            message_serializer=GraphSONSerializersV2d0(),
        )
        try:
            fill(graph)
            print(
                "from Seattle:", ", ".join(sorted(ask(graph, "g.V(['USA','Seattle']).out().id()")))
            )
            far = ask(graph, "g.E().has('miles', gt(150)).id()")
            print("longer than 150 miles:", ", ".join(far))
            # The partition key and the id: one point read.
            results = graph.submit("g.V(['USA','Seattle'])")
            results.all().result()
            print("one city costs", results.status_attributes["x-ms-total-request-charge"], "RU")
        finally:
            graph.close()
        print("the road as an item leads to", items.read_item("I5", "USA")["_sink"])


def fill(graph: Client) -> None:
    for name, country in CITIES:
        # Made unless it is there.
        ask(
            graph,
            "g.V([country, name]).fold().coalesce(unfold(), "
            "addV('city').property('id', name).property('country', country))",
            {"name": name, "country": country},
        )
    for name, start, end, miles in ROADS:
        ask(
            graph,
            "g.E([a, name]).fold().coalesce(unfold(), V([a, start]).addE('road')"
            ".to(V([b, end])).property('id', name).property('miles', miles))",
            {
                "name": name,
                "a": COUNTRY[start],
                "start": start,
                "b": COUNTRY[end],
                "end": end,
                "miles": miles,
            },
        )


def ask(graph: Client, script: str, bindings: dict[str, Any] | None = None) -> list[Any]:
    found: list[Any] = graph.submit(script, bindings or {}).all().result()
    return found


if __name__ == "__main__":
    main()
