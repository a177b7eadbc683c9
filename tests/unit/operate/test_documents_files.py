"""Import and export of MongoDB collections: Extended JSON and BSON files, by the commands, and what
a dump of the driver gives."""

from pathlib import Path
from typing import Any

import bson
import orjson
import pytest
from bson.raw_bson import RawBSONDocument
from tests.support.mongo import connected, make_service
from tests.unit.encoding.test_bson_stored import EVERY
from typer.testing import CliRunner

from armillary.cli import app
from armillary.engine.opening import open_engine
from armillary.store.commands import HANDLERS
from armillary.store.rows.layout import PACKED, SEALED

RAW = bson.codec_options.CodecOptions(RawBSONDocument)


def folder(path: Path) -> str:
    """An account with a sharded collection `shop.people` with a unique index."""
    engine = open_engine(str(path), HANDLERS, packed=PACKED, sealed=SEALED)
    try:
        with connected(make_service(engine)) as client:
            client.admin.command({"shardCollection": "shop.people", "key": {"int": "hashed"}})
            people = client.shop.people
            people.create_index([("int", 1), ("email", 1)], unique=True)
            raw = client.shop.get_collection("people", codec_options=RAW)
            raw.insert_one(RawBSONDocument(EVERY))
            people.insert_many(
                [{"_id": n, "int": n % 3, "email": n, "_ts": "mine", "id": "x"} for n in range(20)]
            )
    finally:
        engine.close()
    return str(path)


def contents(path: str) -> list[bytes]:
    engine = open_engine(path, HANDLERS, packed=PACKED, sealed=SEALED)
    try:
        with connected(make_service(engine)) as client:
            raw: Any = client.shop.get_collection("people", codec_options=RAW)
            return sorted(bytes(one.raw) for one in raw.find())
    finally:
        engine.close()


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    "name", ["people.jsonl", "people.jsonl.gz", "people.bson", "people.bson.gz"]
)
def test_there_and_back(tmp_path: Path, name: str) -> None:
    source = folder(tmp_path / "data")
    wanted = contents(source)
    file = tmp_path / name
    run("export", str(file), "--data", source)
    engine = open_engine(source, HANDLERS, packed=PACKED, sealed=SEALED)
    try:
        with connected(make_service(engine)) as client:
            client.shop.people.delete_many({})
    finally:
        engine.close()
    assert contents(source) == []
    assert "21 items" in run("import", str(file), "--data", source)
    assert "21 items" in run("import", str(file), "--data", source)  # twice does no harm
    assert contents(source) == wanted
    engine = open_engine(source, HANDLERS, packed=PACKED, sealed=SEALED)
    try:
        with connected(make_service(engine)) as client, pytest.raises(Exception, match="E11000"):
            client.shop.people.insert_one({"int": 1, "email": 4})
    finally:
        engine.close()


def test_a_bson_file_is_what_mongodump_writes(tmp_path: Path) -> None:
    source = folder(tmp_path / "data")
    file = tmp_path / "people.bson"
    run("export", str(file), "--data", source)
    found = bson.decode_all(file.read_bytes(), RAW)
    assert sorted(bytes(one.raw) for one in found) == contents(source)


def test_broken_files_are_refused_with_their_place(tmp_path: Path) -> None:
    source = folder(tmp_path / "data")
    good = bson.encode({"_id": "new", "int": 7})
    for data in (b"\x05", good + b"\xff\xff\xff\x7f", good + good[:-3]):
        file = tmp_path / "broken.bson"
        file.write_bytes(data)
        done = CliRunner().invoke(app, ["import", str(file), "--data", source, "--json"])
        assert done.exit_code != 0
        (tmp_path / "broken.bson.journal").unlink(missing_ok=True)
    lines = tmp_path / "broken.jsonl"
    lines.write_text('{"_id": {"$oid": "no"}, "int": 1}\n{"_id": 99, "int": 9}\n{"_id": 100}\n')
    done = CliRunner().invoke(app, ["import", str(lines), "--data", source, "--json"])
    assert done.exit_code == 3
    facts = orjson.loads(done.stdout.splitlines()[0])
    assert (facts["items"], [one["item"] for one in facts["refusals"]]) == (1, [1, 3])
