"""Orders by region with PyMongo: a sharded collection, written, asked for, summed up."""

import os
from typing import Any

from pymongo import MongoClient, UpdateOne
from pymongo.collection import Collection

# As `armillary serve` prints it, with the public key of the Cosmos DB emulator.
URI = os.environ.get(
    "MONGO_URI",
    "mongodb://localhost:C2y6yDjf5%2FR%2Bob0N8A7Cgv30VRDJIWEHLM%2B4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnq"
    "yMsEcaGQy67XIw%2FJw%3D%3D@localhost:10255/?replicaSet=globaldb",
)

Orders = Collection[dict[str, Any]]


def main() -> None:
    client: MongoClient[dict[str, Any]] = MongoClient(URI)
    with client:
        shop = client["shop"]
        if "orders" not in shop.list_collection_names():
            # The shard key is the partition key of the container.
            client.admin.command({"shardCollection": "shop.orders", "key": {"region": "hashed"}})
        orders = shop["orders"]
        orders.create_index("total")
        write(orders)
        ask(orders)
        print("the last request cost", charge(client), "RU")
        add_up(orders)


def write(orders: Orders) -> None:
    # The shard key is in every filter: each statement goes to one partition.
    orders.bulk_write(
        [
            UpdateOne(
                {"_id": number, "region": "us" if number % 2 else "eu"},
                {"$set": {"total": 10 * number}},
                upsert=True,
            )
            for number in range(6)
        ]
    )


def ask(orders: Orders) -> None:
    found = orders.find({"region": "us", "total": {"$gt": 20}}).sort("total", 1)
    print("large in us:", ", ".join(str(one["_id"]) for one in found))
    # Shard key and _id: one point read.
    order = orders.find_one({"_id": 4, "region": "eu"})
    assert order is not None
    print("order 4 is about", order["total"])


def charge(client: MongoClient[dict[str, Any]]) -> float:
    cost: float = client["shop"].command("getLastRequestStatistics")["RequestCharge"]
    return cost


def add_up(orders: Orders) -> None:
    rows = orders.aggregate(
        [
            {"$group": {"_id": "$region", "total": {"$sum": "$total"}}},
            {"$sort": {"_id": 1}},
        ]
    )
    print("totals:", ", ".join(f"{one['_id']} {one['total']}" for one in rows))


if __name__ == "__main__":
    main()
