"""Entities in the explorer of the portal: plain names in the preview, a skeleton for a new one."""

from armillary.portal.items import Keyed, new_item, preview_of
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
