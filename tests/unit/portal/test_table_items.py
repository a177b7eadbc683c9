"""Entities in the explorer of the portal: plain names in the preview, a skeleton for a new one."""

import json

import pytest

from armillary.portal.data.items import (
    Invalid,
    Keyed,
    advised_body,
    new_item,
    parse_item,
    preview_of,
    text_of,
)
from armillary.store.catalog.tables import table_definition

ITEM = {
    "id": "r",
    "$pk": "p",
    "$id": "r",
    "Age": {"$t": 16, "$v": 42},
    "Large": {"$t": 18, "$v": "5"},
    "$$id": {"$t": 2, "$v": "mine"},
}


def test_previews_have_plain_names() -> None:
    keyed = Keyed.of(table_definition("t"))
    assert preview_of(ITEM, keyed.paths) == '"Age": 42, "Large": "5", "id": "mine"'
    assert keyed.shown(ITEM) == ["p"]


def test_a_new_entity_has_its_keys() -> None:
    keyed = Keyed.of(table_definition("t"))
    assert new_item(keyed, "r") == {"id": "r", "$pk": "", "$id": "r"}


def test_the_editor_has_plain_names_and_keeps_types() -> None:
    keyed = Keyed.of(table_definition("t"))
    assert (keyed.is_table, keyed.labels) == (True, ["PartitionKey"])
    text = text_of({**ITEM, "_etag": '"x"', "_ts": 1})
    assert json.loads(text) == {
        "PartitionKey": "p",
        "RowKey": "r",
        "Age": 42,
        "Large@odata.type": "Edm.Int64",
        "Large": "5",
        "id": "mine",
    }
    assert parse_item(text, entity=True) == ITEM
    with pytest.raises(Invalid, match="PartitionKey"):
        parse_item('{"RowKey": "r"}', entity=True)
    with pytest.raises(Invalid, match="Age"):
        parse_item('{"PartitionKey": "p", "RowKey": "r", "Age": []}', entity=True)


def test_the_advisor_is_given_plain_values() -> None:
    assert Keyed.of(table_definition("t")).shown_paths == ["/PartitionKey"]
    assert advised_body(ITEM) == {
        "PartitionKey": "p",
        "RowKey": "r",
        "Age": 42,
        "Large": "5",
        "id": "mine",
    }
