"""Readings of devices, with the official SDK: written, read, asked for, followed."""

import os
from typing import Any

from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey

ENDPOINT = os.environ.get("COSMOS_ENDPOINT", "http://localhost:8081")
# The public key of the Cosmos DB emulator; a server on this machine takes it.
KEY = os.environ.get(
    "COSMOS_KEY",
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==",
)


def main() -> None:
    with CosmosClient(ENDPOINT, KEY) as client:
        database = client.create_database_if_not_exists("weather")
        readings = database.create_container_if_not_exists("readings", PartitionKey("/deviceId"))
        write(readings)
        ask(readings)
        follow(readings)


def write(readings: ContainerProxy) -> None:
    for device in range(5):
        for hour in range(4):
            item = {"id": f"{device}-{hour}", "deviceId": f"device{device}", "celsius": 15 + hour}
            readings.upsert_item(item)
    one = readings.read_item("3-2", partition_key="device3")
    print(f"device3 at 2: {one['celsius']} °C")


def ask(readings: ContainerProxy) -> None:
    # One partition: the key is in the request.
    warm: list[Any] = list(
        readings.query_items(
            "SELECT VALUE c.id FROM c WHERE c.celsius > @least ORDER BY c.celsius",
            parameters=[{"name": "@least", "value": 16}],
            partition_key="device1",
        )
    )
    print(f"warm at device1: {', '.join(warm)}")
    # All of them: the key is not.
    counts = readings.query_items(
        "SELECT VALUE COUNT(1) FROM c WHERE c.celsius > 16", enable_cross_partition_query=True
    )
    print(f"warm everywhere: {next(iter(counts))}")


def follow(readings: ContainerProxy) -> None:
    changes = list(readings.query_items_change_feed(start_time="Beginning"))
    print(f"changes so far: {len(changes)}")


if __name__ == "__main__":
    main()
