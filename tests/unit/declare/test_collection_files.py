"""`[[database.collection]]` in armillary.toml, seeds in Extended JSON, and the way back."""

from pathlib import Path

import pytest
from bson import ObjectId
from tests.support.mongo import connected, make_service

from armillary.config import Settings
from armillary.declare.applying import apply_declared
from armillary.declare.describing import describe
from armillary.declare.files import read_file
from armillary.declare.toml_text import databases_text
from armillary.errors import BadInput

FILE = """
[mongo]
port = "off"

[[database]]
id = "shop"

[[database.collection]]
id = "people"
shard_key = "address.region"
throughput = 800
indexes = ["email", { key = { "address.region" = 1, name = -1 }, unique = true }]
seed = "people.jsonl"

[[database.collection]]
id = "events"
indexes = [{ key = { _ts = 1 }, expire_after_seconds = 60 }, { key = { place = "2dsphere" } }]
"""
SEED = """\
{"_id": {"$oid": "65f000000000000000000001"}, "address": {"region": "eu"}, "n": 5}
{"_id": 2, "address": {"region": "us"}, "id": "mine", "at": {"$date": "2024-01-02T03:04:05Z"}}
{"address": {"region": "us"}, "name": "no id"}
"""


def declared(folder: Path, text: str) -> Path:
    path = folder / "armillary.toml"
    path.write_text(text, "utf-8")
    (folder / "people.jsonl").write_text(SEED, "utf-8")
    return path


def test_collections_are_made_and_seeded_once(tmp_path: Path) -> None:
    path = declared(tmp_path, FILE)
    service = make_service()
    engine, account = service.engine, service.gateway.account
    for _ in range(2):
        assert apply_declared(engine, Settings(), read_file(path).databases) == []
    with connected(service) as client:
        people = client.shop.people
        assert people.count_documents({}) == 3
        first = people.find_one({"address.region": "eu"})
        assert first is not None
        assert first["_id"] == ObjectId("65f000000000000000000001")
        assert client.shop.command("customAction", "GetCollection", collection="people")[
            "shardKeyDefinition"
        ] == {"address.region": "hashed"}
        assert set(people.index_information()) == {"_id_", "email_1", "address.region_1_name_-1"}
        assert client.shop.events.index_information()["_ts_1"]["expireAfterSeconds"] == 60
    text = databases_text(describe(account))
    assert text.count("[[database.collection]]") == 2
    again = read_file(declared(tmp_path, text)).databases
    here = read_file(declared(tmp_path, FILE)).databases
    shown = [
        sorted((c.id, str(c.body["mongo"])) for c in one[0].containers) for one in (again, here)
    ]
    assert shown[0] == shown[1]
    assert apply_declared(engine, Settings(), again) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("indexes = [5]", "an index is a field, or a table with a key"),
        ("indexes = [{ key = { a = 2 } }]", "the direction of 'a' is 1, -1"),
        ('indexes = [{ key = "a", uniqe = true }]', "an index has no 'uniqe'"),
        ('indexes = ["a", "a"]', "there are two indexes named 'a_1'"),
        ('shard_key = "k"\nindexes = [{ key = "a", unique = true }]', "begin with the shard key"),
        ("shard_key = 5", "shard_key is a whole number"),
        ('partition_key = "/a"', "there is no key 'partition_key' here"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, line: str, message: str) -> None:
    text = f'[[database]]\nid = "d"\n[[database.collection]]\nid = "c"\n{line}\n'
    with pytest.raises(BadInput, match=r"armillary\.toml:\d") as caught:
        read_file(declared(tmp_path, text))
    assert message in str(caught.value)
