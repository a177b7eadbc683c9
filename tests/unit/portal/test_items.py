"""Items as the explorer takes them apart and puts them together. A mistake here would send an item
to another logical partition, or lose what a user wrote."""

from __future__ import annotations

import json

import pytest

from armillary.errors import BadInput
from armillary.portal.data.items import (
    Invalid,
    Keyed,
    body_of,
    changed_text,
    new_item,
    parse_item,
    parse_key,
    preview_of,
    text_of,
)
from armillary.store.catalog.collections import ID_INDEX, collection_definition

STORED = {"id": "1", "pk": "ä", "n": 1, "_rid": "r", "_self": "s", "_etag": '"e"', "_ts": 0}


def keyed(*paths: str, synthetic: bool = False) -> Keyed:
    kind = "MultiHash" if len(paths) > 1 else "Hash"
    document = {"partitionKey": {"paths": list(paths), "kind": kind, "version": 2}}
    return Keyed.of(document, synthetic)


def header(key: Keyed, item: dict[str, object], *, new: bool = False) -> str:
    (text,) = key.header(item, new=new).values()
    assert text.isascii()
    return text


def test_the_header_has_the_value_at_every_path() -> None:
    assert json.loads(header(keyed("/pk"), STORED)) == ["ä"]
    assert header(keyed("/a/b"), {"id": "1", "a": {"b": 5}}) == "[5]"
    assert header(keyed("/a", "/b"), {"id": "1", "a": True, "b": None}) == "[true, null]"
    assert header(keyed("/pk"), {"id": "1"}) == "[{}]"


def test_a_synthetic_key_is_left_to_the_server_for_a_new_item_only() -> None:
    key = keyed("/pk", synthetic=True)
    assert header(key, {"id": "1"}, new=True) == "[{}]"
    assert header(key, {"id": "1", "pk": "x"}, new=True) == '["x"]'


def test_what_the_server_adds_is_not_shown() -> None:
    assert body_of(STORED) == {"id": "1", "pk": "ä", "n": 1}
    assert json.loads(text_of(STORED)) == body_of(STORED)
    assert "ä" in text_of(STORED)
    assert preview_of(STORED, ["/pk"]) == '"n": 1'
    assert preview_of({"id": "1", "text": "x" * 500}, []).endswith("…")
    assert changed_text(STORED) == "1970-01-01 00:00:00"
    assert changed_text({}) == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"id": "1",}', "line 1, column"),
        ("[1]", "JSON object"),
        ('{"id": 1}', '"id"'),
        ('{"id": ""}', '"id"'),
        ('{"id": "1", "n": NaN}', "NaN"),
        ("", "line 1"),
    ],
)
def test_a_text_that_is_no_item_says_why(text: str, says: str) -> None:
    with pytest.raises(Invalid, match=says):
        parse_item(text)


def test_a_new_item_has_a_place_for_its_key() -> None:
    assert new_item(keyed("/a/b", "/c"), "x") == {"id": "x", "a": {"b": ""}, "c": ""}
    assert new_item(keyed("/id"), "x") == {"id": "x"}
    assert new_item(keyed("/pk", synthetic=True), "x") == {"id": "x"}
    assert parse_item(json.dumps(new_item(keyed("/pk"), "x")))


def test_another_key_is_seen_whatever_the_spelling() -> None:
    key = keyed("/pk")
    assert key.is_same({"pk": 1}, {"pk": 1, "n": 2})
    assert not key.is_same({"pk": 1}, {"pk": "1"})
    assert not key.is_same({"pk": None}, {})


def test_a_key_is_read_as_people_write_it() -> None:
    assert parse_key("ada") == "ada"
    assert parse_key('"5"') == "5"
    assert parse_key("5") == 5
    assert parse_key('["a", 1]') == ["a", 1]
    with pytest.raises(BadInput):
        parse_key("{}")


@pytest.mark.parametrize(
    ("shard", "label"), [("region", "shard key region"), (None, "not sharded")]
)
def test_a_collection_shows_its_shard_key(shard: str | None, label: str) -> None:
    definition = collection_definition("c", shard, [dict(ID_INDEX)], {})
    system = {"paths": ["/_partitionKey"], "kind": "Hash", "systemKey": True}
    keyed = Keyed.of({"partitionKey": system, **definition})
    assert (keyed.id_label, keyed.labels) == ("_id", [label])
