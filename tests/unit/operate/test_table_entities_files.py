"""Import and export of tables: files have plain entities, the container the stored form."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.support.table import table_api

from armillary.container import Container
from armillary.encoding.edm.json import plain_entity, stored_entity
from armillary.encoding.edm.model import EDM_MODEL
from armillary.operate.entities import Entities
from armillary.operate.exporting import export_items
from armillary.operate.importing import import_items
from armillary.operate.ports import LocalItems

ENTITY = {
    "PartitionKey": "p",
    "RowKey": "r",
    "n": 1,
    "whole": 3.0,
    "large@odata.type": "Edm.Int64",
    "large": "9223372036854775807",
    "id": "mine",
}


def test_there_and_back(tmp_path: Path) -> None:
    with table_api() as api:
        api.ask("POST", "/t", ENTITY)
        items = Entities(
            LocalItems(Container(api.account.container("TablesDB", "t"), api.account.limits))
        )
        out = tmp_path / "t.jsonl"
        assert export_items(items, out).items == 1
        assert json.loads(out.read_text("utf-8")) == ENTITY
        broken = '{"PartitionKey": "p"}\n{"PartitionKey": "q", "RowKey": "r", "a": [1]}\n'
        out.write_text(out.read_text("utf-8").replace('"n":1', '"n":2') + broken, "utf-8")
        done = import_items(items, out)
        assert (done.items, done.refused) == (1, 2)
        assert api.get("t", "p", "r")["n"] == 2
        assert len(api.query("t")) == 1


VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=5), st.booleans()
)


@given(st.dictionaries(st.from_regex(r"[A-Za-z_]\w{0,5}", fullmatch=True), VALUES, max_size=5))
def test_plain_and_stored_are_one(properties: dict[str, object]) -> None:
    plain = {"PartitionKey": "p", "RowKey": "r", **properties}
    if "Timestamp" in plain:
        return
    stored = stored_entity(plain)
    EDM_MODEL.check_body(stored)
    assert stored_entity(plain_entity(stored)) == stored
