"""docs/formats.md against the code, byte for byte. What lies on disk must stay readable, so a
change here is a new form, not a new text. Before the first release, `python -m
tests.unit.store.test_formats` writes the tables anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.accounts import open_world, space_rows, store_of

from armillary.encoding.etags import etag_bytes, etag_text
from armillary.encoding.hashing import epk, epk_key
from armillary.encoding.partition_key import KeyValues, parse_definition
from armillary.encoding.rids import container_rid, database_rid, item_rid, rid_bytes
from armillary.encoding.terms import descending, term
from armillary.engine.base import CATALOG_SPACE
from armillary.keys.synthetic import computed_suffix
from armillary.store.catalog import records as catalog
from armillary.store.index.plan import path_hash
from armillary.store.items.positions import Position, Segment, encode_position
from armillary.store.rows import layout
from armillary.store.rows.secondary import id_part
from armillary.store.throughput.offers import OFFER
from armillary.values import UNDEFINED

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
BEGIN, END = "<!-- cases: begin -->", "<!-- cases: end -->"

KINDS = {
    getattr(layout, name): name
    for name in (
        "META",
        "DOC",
        "ID",
        "LR",
        "LP",
        "IX",
        "CX",
        "UX",
        "TX",
        "LOG",
        "SHAPE",
        "SX",
        "FX",
        "VX",
    )
}
CATALOG_KINDS = {
    layout.META: "META",
    catalog.DATABASE: "DATABASE",
    catalog.CONTAINER: "CONTAINER",
    catalog.BY_RID: "BY_RID",
    catalog.SPACE: "SPACE",
    OFFER: "OFFER",
}
PATHS: dict[bytes, str] = {
    path_hash(names): "/" + "/".join(names)
    for names in (
        ("id",),
        ("pk",),
        ("n",),
        ("t",),
        ("none",),
        ("tags",),
        ("o",),
        ("mail",),
        ("_ts",),
    )
} | {path_hash(("ttl",)): "/ttl"}


class Case(NamedTuple):
    what: str
    value: str
    data: str


def text(data: bytes) -> str:
    """Bytes as the page shows them: hex; a JSON object as it is."""
    return data.decode() if data[:1] == b"{" else data.hex() or "(empty)"


# --- the cases ----------------------------------------------------------------------------------


def cases() -> dict[str, list[Case]]:
    return {
        "Terms": list(_terms()),
        "Effective partition keys": list(_epks()),
        "Names": list(_names()),
        "Rows of a space": list(_space()),
        "Rows of the catalog": list(_catalog()),
    }


def _terms() -> Iterator[Case]:
    values: list[tuple[str, Any]] = [
        ("undefined", UNDEFINED),
        ("null", None),
        ("false", False),
        ("true", True),
        ("0", 0),
        ("1", 1),
        ("-1.5", -1.5),
        ('"a"', "a"),
        ('"" (empty)', ""),
        ('"a", NUL, "b"', "a\0b"),
        ('"é"', "é"),
        ("U+1F600, as two surrogates", "\U0001f600"),
        ("201 times x, cut", "x" * 201),
        ("an array", []),
        ("an object", {}),
    ]
    for what, value in values:
        yield Case("term", what, text(term(value)))
    yield Case("term, descending", '"a"', text(descending(term("a"))))


def _epks() -> Iterator[Case]:
    old = parse_definition({"paths": ["/pk"], "kind": "Hash"})
    new = parse_definition({"paths": ["/pk"], "kind": "Hash", "version": 2})
    levels = parse_definition({"paths": ["/t", "/u"], "kind": "MultiHash", "version": 2})
    keys: list[tuple[str, KeyValues]] = [
        ('"redmond"', ("redmond",)),
        ("1", (1,)),
        ("true", (True,)),
        ("null", (None,)),
        ("missing", (UNDEFINED,)),
    ]
    for what, values in keys:
        yield Case("EPK V2", what, text(epk(values, new)))
    for what, values in keys:
        yield Case("EPK V1", what, text(epk(values, old)))
    yield Case("EPK V1 inside a key", "1", text(epk_key(epk((1,), old), old)))
    yield Case("EPK V1 inside a key", "none (fixed container)", text(epk_key(b"", old)))
    yield Case("EPK hierarchical", '"redmond", 1', text(epk(("redmond", 1), levels)))
    yield Case("EPK hierarchical, prefix", '"redmond"', text(epk(("redmond",), levels)))


def _names() -> Iterator[Case]:
    database = database_rid(1)
    container = container_rid(database, 1)
    item = item_rid(container, 2 << 36 | 7)
    yield Case("rid of a database", database, text(rid_bytes(database)))
    yield Case("rid of a container", container, text(rid_bytes(container)))
    yield Case("rid of an item, range 2, counter 7", item, text(rid_bytes(item)))
    etag = etag_bytes(42, 7, 1_602_787_525)
    yield Case("etag, counter 42, range 7", etag_text(etag), text(etag))
    yield Case("id in a key", "1", text(id_part("1")))
    yield Case("id in a key, cut", "129 times x", text(id_part("x" * 129)))
    positions = {
        "items, whole, after rid 5": Position("items", (Segment(b"", b"\xff", 5),)),
        "key, after rid 5": Position("key", (Segment(b"\x22", b"\x22\x00", 5),)),
        "latest, two ranges": Position(
            "latest", (Segment(b"", b"\x1f", 3), Segment(b"\x1f", b"\xff", 9))
        ),
        "versions, one key": Position("versions", (Segment(b"\x22", b"\x22\x00", 3),), b"\x01" * 8),
    }
    for what, position in positions.items():
        yield Case("continuation", what, encode_position(position))
    yield Case(
        "computed suffix, k = 400",
        "1HGCM82633A004352",
        str(computed_suffix("1HGCM82633A004352", 400)),
    )


def _space() -> Iterator[Case]:
    """A small history: create 1, replace 1, create 2, delete 2."""
    for kind, key, value in [*_history()[1], *_others()]:
        yield Case(f"{KINDS[kind]} key", _about(kind, key), text(key))
        yield Case(f"{KINDS[kind]} value", "", text(value))


def _catalog() -> Iterator[Case]:
    for kind, key, value in _history()[0]:
        yield Case(f"{CATALOG_KINDS[kind]} key", "", text(key))
        yield Case(f"{CATALOG_KINDS[kind]} value", "", text(value))


def _history() -> tuple[list[tuple[bytes, bytes, bytes]], list[tuple[bytes, bytes, bytes]]]:
    with open_world(":memory:") as world:
        items = world.container(
            default_ttl=-1,
            unique_keys=[["/mail"]],
            change_feed_retention_minutes=1,
            indexing_policy={
                "compositeIndexes": [[{"path": "/n"}, {"path": "/_ts", "order": "descending"}]]
            },
        )
        body = {"id": "1", "pk": "a", "n": -1.5, "t": True, "none": None, "tags": [1], "o": {}}
        items.create_item({"id": "1", "pk": "a"})
        world.clock.advance(1)
        items.replace_item("1", body | {"ttl": 60, "mail": "m"})
        items.create_item({"id": "2", "pk": "b"})
        items.delete_item("2", "b")
        engine = store_of(items).engine
        (owner,) = store_of(items).state.table.ranges
        return _rows(space_rows(engine, CATALOG_SPACE)), _rows(space_rows(engine, owner.space))


def _others() -> list[tuple[bytes, bytes, bytes]]:
    """What the indexes of other kinds have of one item."""
    vector = {
        "path": "/v",
        "dataType": "float32",
        "dimensions": 2,
        "distanceFunction": "cosine",
    }
    with open_world(":memory:") as world:
        items = world.container()
        world.database.replace_container(
            items.id,
            fullTextPolicy={"fullTextPaths": [{"path": "/text"}]},
            vectorEmbeddingPolicy={"vectorEmbeddings": [vector]},
            indexingPolicy={
                "spatialIndexes": [{"path": "/at/?"}],
                "fullTextIndexes": [{"path": "/text"}],
                "vectorIndexes": [{"path": "/v", "type": "flat"}],
            },
        )
        at = {"type": "Point", "coordinates": [10.75, 59.91]}
        items.create_item({"id": "1", "pk": "a", "at": at, "text": "the red cars", "v": [1, -0.5]})
        store = store_of(items)
        rows = _rows(space_rows(store.engine, store.state.table.ranges[0].space))
        return [row for row in rows if row[0] in (layout.SX, layout.FX, layout.VX)]


def _rows(rows: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes, bytes]]:
    return [(key[:1], key, value) for key, value in rows]


def _about(kind: bytes, key: bytes) -> str:
    return PATHS.get(key[1:9], "an element of /tags") if kind == layout.IX else ""


# --- the page -----------------------------------------------------------------------------------


def tables() -> str:
    lines: list[str] = []
    for title, rows in cases().items():
        lines += ["", f"### {title}", "", "| what | value | bytes |", "|---|---|---|"]
        lines += (f"| {what} | {value} | `{data}` |" for what, value, data in rows)
    return "\n".join([*lines, ""])


def documented() -> dict[str, list[Case]]:
    page = PAGE.read_text(encoding="utf-8")
    found: dict[str, list[Case]] = {}
    title = ""
    for line in page[page.index(BEGIN) : page.index(END)].splitlines():
        if line.startswith("### "):
            title = line[4:]
            found[title] = []
        elif (row := re.fullmatch(r"\| (.*?) \| (.*?) \| `(.*)` \|", line)) is not None:
            found[title].append(Case(*row.groups()))
    return found


def test_every_form_is_on_disk_as_it_is_documented() -> None:
    written = documented()
    made = cases()
    assert written.keys() == made.keys()
    for title, rows in made.items():
        assert written[title] == rows, title


def test_every_kind_of_row_has_a_case() -> None:
    shown = {case.what.split()[0] for case in documented()["Rows of a space"]}
    assert shown == set(KINDS.values())


def rewrite() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, after = page[: page.index(BEGIN)], page[page.index(END) :]
    PAGE.write_text(before + BEGIN + "\n" + tables() + "\n" + after, encoding="utf-8")


if __name__ == "__main__":
    rewrite()
