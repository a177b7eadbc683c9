"""People by city, with the official SDK for tables: written, read, asked for, changed together."""

import os

from azure.data.tables import TableClient, TableServiceClient

# As `armillary serve` prints it, with the public key of the Cosmos DB emulator.
CONNECTION = os.environ.get(
    "TABLE_CONNECTION",
    "AccountName=localhost;AccountKey=C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGG"
    "yPMbIZnqyMsEcaGQy67XIw/Jw==;TableEndpoint=http://localhost:8902/",
)


def main() -> None:
    with TableServiceClient.from_connection_string(CONNECTION) as service:
        people = service.create_table_if_not_exists("people")
        write(people)
        ask(people)
        move(people)


def write(people: TableClient) -> None:
    for number, name in enumerate(("ada", "bob", "eve", "joe")):
        city = "rome" if number % 2 else "oslo"
        people.upsert_entity({"PartitionKey": city, "RowKey": name, "age": 30 + number})
    print(f"bob is {people.get_entity('rome', 'bob')['age']}")


def ask(people: TableClient) -> None:
    # One partition: the filter fixes PartitionKey.
    found = people.query_entities(
        "PartitionKey eq 'oslo' and age gt @least", parameters={"least": 30}
    )
    print("older in oslo:", ", ".join(one["RowKey"] for one in found))


def move(people: TableClient) -> None:
    # All or nothing, in one partition.
    older = [
        ("update", {"PartitionKey": "oslo", "RowKey": name, "moved": True})
        for name in ("ada", "eve")
    ]
    people.submit_transaction(older)
    print("moved:", len(list(people.query_entities("moved"))))


if __name__ == "__main__":
    main()
