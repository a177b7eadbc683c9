"""The samples of the documents on partitioning, each with the official client of its API.

NoSQL     a container of 20,000 RU/s by /deviceId, and a point read
MongoDB   shardCollection, and a find by the shard key
Table     a table of 800 RU/s, and the retrieve of Smith, Ben
Gremlin   g.V(['USA','Seattle']) and g.E(['USA','I5'])
keys      deviceId and date together: abc-123-2018
"""

import os

from azure.cosmos import CosmosClient, DatabaseProxy, PartitionKey
from azure.data.tables import TableServiceClient
from gremlin_python.driver.client import Client
from gremlin_python.driver.serializer import GraphSONSerializersV2d0
from pymongo import MongoClient

# The public key of the Cosmos DB emulator; a server on this machine takes it.
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
ENDPOINT = os.environ.get("COSMOS_ENDPOINT", "http://localhost:8081")
TABLES = os.environ.get(
    "TABLE_CONNECTION",
    f"AccountName=localhost;AccountKey={KEY};TableEndpoint=http://localhost:8902/",
)
MONGO = os.environ.get("MONGO_URI", "")  # as `armillary serve` prints it
GREMLIN = os.environ.get("GREMLIN_ENDPOINT", "ws://localhost:8901/gremlin")


def main() -> None:
    with CosmosClient(ENDPOINT, KEY) as cosmos:
        database = cosmos.create_database_if_not_exists("db")
        nosql(database)
        synthetic(database)
        table()
        mongo()
        graph(database)


def nosql(database: DatabaseProxy) -> None:
    container = database.create_container_if_not_exists(
        "coll", PartitionKey("/deviceId"), offer_throughput=20_000
    )
    container.upsert_item({"id": "XMS-001-FE24C", "deviceId": "XMS-0001", "metricValue": 105.1})
    found = container.read_item("XMS-001-FE24C", partition_key="XMS-0001")
    charge = container.client_connection.last_response_headers["x-ms-request-charge"]
    ranges = list(container.read_feed_ranges())
    provisioned = container.get_throughput().offer_throughput
    print(f"NoSQL: {provisioned} RU/s in {len(ranges)} physical partitions")
    print(f"NoSQL: {found['id']} measured {found['metricValue']} for {charge} RU")


def synthetic(database: DatabaseProxy) -> None:
    container = database.create_container_if_not_exists("devices", PartitionKey("/partitionKey"))
    item = {"id": "1", "deviceId": "abc-123", "date": 2018}
    item["partitionKey"] = f"{item['deviceId']}-{item['date']}"
    container.upsert_item(item)
    print("keys:", container.read_item("1", partition_key="abc-123-2018")["partitionKey"])


def table() -> None:
    with TableServiceClient.from_connection_string(TABLES) as service:
        people = service.create_table_if_not_exists(
            "people", headers={"x-ms-offer-throughput": "800"}
        )
        people.upsert_entity({"PartitionKey": "Smith", "RowKey": "Ben", "Email": "Ben@contoso.com"})
        print("Table:", people.get_entity("Smith", "Ben")["Email"])


def mongo() -> None:
    with MongoClient[dict[str, object]](MONGO) as client:
        admin = client["admin"]
        if "people" not in admin.list_collection_names():
            told = admin.command({"shardCollection": "admin.people", "key": {"region": "hashed"}})
            print("MongoDB: sharded", told["collectionsharded"])
        people = admin["people"]
        people.replace_one({"_id": 1, "region": "USA"}, {"region": "USA", "name": "Ben"}, True)
        found = people.find_one({"region": "USA", "_id": 1})
        assert found is not None
        print("MongoDB:", found["name"])


def graph(database: DatabaseProxy) -> None:
    database.create_container_if_not_exists("roads", PartitionKey("/country"))
    client = Client(
        GREMLIN,
        "g",
        username="/dbs/db/colls/roads",
        password=KEY,
        message_serializer=GraphSONSerializersV2d0(),
    )
    try:
        for script in (
            "g.V().drop()",
            "g.addV('city').property('id', 'Seattle').property('country', 'USA')",
            "g.addV('city').property('id', 'Portland').property('country', 'USA')",
            "g.V(['USA','Seattle']).addE('road').to(g.V(['USA','Portland'])).property('id', 'I5')",
        ):
            client.submit(script).all().result()
        city = client.submit("g.V(['USA','Seattle']).id()").all().result()
        road = client.submit("g.E(['USA','I5']).inV().id()").all().result()
        print(f"Gremlin: {city[0]}; I5 leads to {road[0]}")
    finally:
        client.close()


if __name__ == "__main__":
    main()
