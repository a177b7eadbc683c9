"""Without these, an export or import that was stopped would begin again, lose or double items."""

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

import armillary
from armillary.account import Database
from armillary.container import Container
from armillary.declare.item_files import parse_types, read_entries, read_items
from armillary.encoding.partition_key import parse_definition
from armillary.errors import BadInput, Throttled
from armillary.operate import exporting, importing
from armillary.operate.exporting import export_items
from armillary.operate.importing import import_items
from armillary.operate.ports import Finish, ItemsPage, LocalItems


class Stopped(Exception):
    """As if the process had been killed there."""


@pytest.fixture
def shop() -> Iterator[Database]:
    with armillary.open(":memory:", housekeeping=False) as account:
        yield account.create_database("shop")


@pytest.fixture
def orders(shop: Database, monkeypatch: pytest.MonkeyPatch) -> Container:
    monkeypatch.setattr(exporting, "PAGE_ITEMS", 10)
    monkeypatch.setattr(importing, "GROUP_ITEMS_FIRST", 10)
    orders = shop.create_container("orders", "/pk")
    orders.bulk(("create", ({"id": str(n), "pk": f"k{n}", "n": n},)) for n in range(95))
    return orders


def lines(path: Path) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def stop_after(items: int) -> object:
    def progress(done: int) -> None:
        if done >= items:
            raise Stopped

    return progress


def test_what_goes_out_comes_in_again(shop: Database, orders: Container, tmp_path: Path) -> None:
    target = tmp_path / "orders.jsonl"
    done = export_items(LocalItems(orders), target)
    assert (done.items, done.resumed, done.bytes) == (95, False, target.stat().st_size)
    assert sorted(int(str(one["id"])) for one in lines(target)) == list(range(95))
    assert all(set(one) == {"id", "pk", "n"} for one in lines(target))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["orders.jsonl"]
    other = shop.create_container("other", "/pk")
    assert import_items(LocalItems(other), target).items == 95
    assert {one["id"]: one["n"] for one in other.read_all_items()} == {str(n): n for n in range(95)}


def test_a_stopped_export_goes_on_through_a_split(orders: Container, tmp_path: Path) -> None:
    target = tmp_path / "orders.jsonl"
    with pytest.raises(Stopped):
        export_items(LocalItems(orders), target, progress=stop_after(40))  # type: ignore[arg-type]
    part = tmp_path / "orders.jsonl.part"
    part.write_bytes(part.read_bytes() + b'{"half an it')  # written, but not in the journal
    assert not target.exists()
    orders.split(0)
    done = export_items(LocalItems(orders), target)
    assert done.resumed
    found = [one["id"] for one in lines(target)]
    assert len(found) == len(set(found)) == done.items == 95


def test_the_journal_of_another_container_is_not_gone_on_with(
    shop: Database, orders: Container, tmp_path: Path
) -> None:
    target = tmp_path / "orders.jsonl"
    with pytest.raises(Stopped):
        export_items(LocalItems(orders), target, progress=stop_after(40))  # type: ignore[arg-type]
    empty = shop.create_container("empty", "/pk")
    assert export_items(LocalItems(empty), target).items == 0
    assert target.read_bytes() == b""
    with pytest.raises(BadInput, match="there already"):
        export_items(LocalItems(orders), target)


def test_a_stopped_import_goes_on_where_it_was(shop: Database, tmp_path: Path) -> None:
    source = tmp_path / "items.jsonl"
    source.write_bytes(b"".join(b'{"id": "%d", "pk": "a"}\n' % n for n in range(2400)))
    target = shop.create_container("target", "/pk")
    with pytest.raises(Stopped):
        import_items(LocalItems(target), source, progress=stop_after(1000))  # type: ignore[arg-type]
    target.delete_item("0", "a")  # not brought back: that part is done
    done = import_items(LocalItems(target), source)
    assert done.resumed_at == 1000
    assert sum(1 for _ in target.read_all_items()) == 2399
    assert sorted(one.name for one in tmp_path.iterdir()) == ["items.jsonl"]


def test_a_changed_file_is_read_from_its_beginning(shop: Database, tmp_path: Path) -> None:
    source = tmp_path / "items.jsonl"
    source.write_bytes(b'{"id": "1", "pk": 1}\n')
    target = shop.create_container("target", "/pk")
    with pytest.raises(Stopped):
        import_items(LocalItems(target), source, progress=stop_after(1))  # type: ignore[arg-type]
    source.write_bytes(b'{"id": "2", "pk": 1}\n{"id": "3", "pk": 1}\n')
    assert import_items(LocalItems(target), source).items == 2


@pytest.mark.parametrize("name", ["items.json", "items.json.gz", "items.csv", "items.csv.gz"])
def test_every_form_is_read(shop: Database, tmp_path: Path, name: str) -> None:
    json = b' [{"id": "1", "pk": "a", "n": 1.5}, {"id": "2", "pk": "b", "ok": true}]'
    csv = b'\xef\xbb\xbfid,pk,n,ok\r\n1,a,1.5,\r\n2,"b",,true\r\n'
    data = csv if ".csv" in name else json
    source = tmp_path / name
    source.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    target = shop.create_container("target", "/pk")
    assert import_items(LocalItems(target), source).items == 2
    first, second = (target.read_item(id, pk) for id, pk in (("1", "a"), ("2", "b")))
    assert first["n"] == 1.5
    assert "ok" not in first
    assert second["ok"] is True


def test_broken_entries_are_counted_and_named_and_the_rest_goes_in(
    shop: Database, tmp_path: Path
) -> None:
    source = tmp_path / "items.jsonl"
    source.write_bytes(b'{"id": "1"}\n{"id": \n[1]\n\n{"id": 7, "pk": 1}\n{"id": "2"}\n{\n')
    target = shop.create_container("target", "/pk")
    done = import_items(LocalItems(target), source)
    assert (done.items, done.refused) == (2, 4)
    assert [one.number for one in done.refusals] == [2, 3, 4, 6], "in the order of the file"
    assert "not JSON" in done.refusals[0].why


def test_a_file_that_can_not_be_read_is_said(shop: Database, tmp_path: Path) -> None:
    target = shop.create_container("target", "/pk")
    with pytest.raises(BadInput, match="no file"):
        import_items(LocalItems(target), tmp_path / "none.jsonl")
    broken = tmp_path / "broken.jsonl.gz"
    broken.write_bytes(gzip.compress(b'{"id": "1", "pk": 1}\n' * 100)[:30])
    with pytest.raises(BadInput, match="can't be read"):
        import_items(LocalItems(target), broken)


ODD_ITEMS: list[dict[str, object]] = [
    {"id": "1", "pk": "a", "n": 1, "mixed": "x", "deep": {"a": [1, {"b": None}]}, "big": 2**63},
    {"id": "2", "pk": "b", "n": 2.5, "mixed": 7, "ok": True, "tags": ["x", "y"], "big": 1.5},
    {"id": "3", "pk": 'ü,\n"q"', "deep": {}, "tags": []},
]


@pytest.mark.parametrize("name", ["odd.parquet", "odd.jsonl", "odd.jsonl.gz"])
def test_items_of_any_shape_come_back_as_they_were(
    shop: Database, tmp_path: Path, name: str
) -> None:
    source, target = (shop.create_container(one, "/pk") for one in ("source", "target"))
    for item in ODD_ITEMS:
        source.create_item(item)
    done = export_items(LocalItems(source), tmp_path / name)
    assert (done.items, done.bytes) == (3, (tmp_path / name).stat().st_size)
    assert import_items(LocalItems(target), tmp_path / name).items == 3
    assert sorted(one.name for one in tmp_path.iterdir()) == [name]

    def bare(container: Container) -> list[dict[str, object]]:
        found = sorted(container.read_all_items(), key=lambda one: str(one["id"]))
        return [{k: v for k, v in one.items() if k[0] != "_"} for one in found]

    assert bare(target) == bare(source)


@pytest.mark.parametrize("name", ["odd.csv", "odd.csv.gz"])
def test_a_table_has_every_column_and_text_for_what_is_nested(
    shop: Database, tmp_path: Path, name: str
) -> None:
    source = shop.create_container("source", "/pk")
    for item in ODD_ITEMS:
        source.create_item(item)
    export_items(LocalItems(source), tmp_path / name)
    found = {one["id"]: one for one in read_items(tmp_path / name)}
    assert found["1"]["deep"] == '{"a":[1,{"b":null}]}'
    assert found["2"] == {"id": "2", "pk": "b", "n": 2.5, "mixed": "7", "ok": True} | {
        "tags": '["x","y"]',
        "big": 1.5,
    }
    assert found["3"]["pk"] == ODD_ITEMS[2]["pk"]
    assert "n" not in found["3"]


def test_an_empty_container_is_an_empty_table(shop: Database, tmp_path: Path) -> None:
    empty = LocalItems(shop.create_container("empty", "/pk"))
    for name in ("a.csv", "a.parquet", "a.jsonl"):
        assert export_items(empty, tmp_path / name).items == 0
        assert import_items(empty, tmp_path / name).items == 0


def test_a_broken_parquet_file_is_said(shop: Database, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but no more")
    target = LocalItems(shop.create_container("target", "/pk"))
    with pytest.raises(BadInput, match="can't be read"):
        import_items(target, tmp_path / "a.parquet")


def test_importing_twice_into_a_random_suffix_makes_no_second_copy(
    shop: Database, tmp_path: Path
) -> None:
    key = {
        "version": 1,
        "path": "/pk",
        "parts": ["/day"],
        "suffix": {"kind": "random", "k": 10},
    }
    readings = shop.create_container("readings", synthetic_key=key)
    source = tmp_path / "readings.jsonl"
    rows = [{"id": str(n), "day": "2018-08-09"} for n in range(50)]
    source.write_bytes(b"\n".join(map(orjson.dumps, [*rows, {"id": "none"}])))
    for _ in range(2):
        done = import_items(LocalItems(readings), source)
        assert (done.items, done.refused) == (50, 1)
        stored = list(readings.read_all_items())
        assert sorted(str(one["id"]) for one in stored) == sorted(str(n) for n in range(50))
    assert len({str(one["pk"]) for one in stored}) == 10


def test_a_column_of_a_csv_file_has_one_type(tmp_path: Path) -> None:
    """By the cell, the partition key of one column was a number here and a text there."""
    source = tmp_path / "places.csv"
    source.write_text("id,zip,n,ok,note\n1,12,1,true,5\n2,007,2.5,false,x\n3,99,,,null\n")
    rows = list(read_items(source))
    assert [one["zip"] for one in rows] == ["12", "007", "99"]
    assert [one.get("n") for one in rows] == [1, 2.5, None]
    assert [one.get("ok") for one in rows] == [True, False, None]
    assert [one["note"] for one in rows] == ["5", "x", "null"]
    (first, *_) = read_entries(source, parse_types("n=text, ok=text"))
    assert first == {"id": "1", "zip": "12", "n": "1", "ok": "true", "note": "5"}
    found = list(read_entries(source, parse_types("zip=number")))
    assert isinstance(found[1], BadInput)
    with pytest.raises(BadInput, match="--types"):
        parse_types("zip=postcode")


class Watched:
    """Notes when groups are sent and finished. `fails`: the group that is refused as a whole."""

    partition_key = parse_definition({"paths": ["/pk"]})
    identity = "watched"

    def __init__(self, fails: int = -1) -> None:
        self.events: list[str] = []
        self._sent = 0
        self._fails = fails

    def count(self) -> int | None:
        return None

    def read_page(self, max_items: int, continuation: str | None) -> ItemsPage:
        raise NotImplementedError

    def start_upserts(self, items: Sequence[dict[str, Any]]) -> Finish:
        number, self._sent = self._sent, self._sent + 1
        self.events.append(f"send {number}")

        def finish() -> list[str | None]:
            self.events.append(f"finish {number}")
            if number == self._fails:
                raise Throttled(retry_after_ms=1)
            return [None] * len(items)

        return finish


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GROUP_ITEMS_FIRST", "GROUP_ITEMS_MAX"):
        monkeypatch.setattr(importing, name, 10)


def some_lines(tmp_path: Path, count: int) -> Path:
    source = tmp_path / "items.jsonl"
    source.write_text("".join(f'{{"id": "{n}", "pk": "a"}}\n' for n in range(count)))
    return source


@pytest.mark.usefixtures("small_groups")
def test_a_group_is_sent_while_the_one_before_is_written(tmp_path: Path) -> None:
    target, shown = Watched(), list[int]()
    done = importing.import_items(target, some_lines(tmp_path, 25), progress=shown.append)
    assert target.events == ["send 0", "send 1", "finish 0", "send 2", "finish 1", "finish 2"]
    assert done.items == 25
    assert shown == [10, 20, 25]


@pytest.mark.usefixtures("small_groups")
def test_a_group_that_fails_is_not_counted_nor_the_one_after_it(tmp_path: Path) -> None:
    """Else a second run would leave items out."""
    source = some_lines(tmp_path, 45)
    with pytest.raises(Throttled):
        importing.import_items(Watched(fails=1), source)
    again = importing.import_items(Watched(), source)
    assert (again.resumed_at, again.items) == (10, 45)


@pytest.mark.usefixtures("small_groups")
def test_what_is_under_way_is_finished_before_a_broken_file_is_reported(tmp_path: Path) -> None:
    def entries(source: Path) -> Iterator[dict[str, Any] | BadInput]:
        yield from ({"id": str(n)} for n in range(15))
        raise BadInput("The file ends inside a document.")

    source, target = some_lines(tmp_path, 1), Watched()
    with pytest.raises(BadInput, match="ends inside"):
        importing.import_items(target, source, entries=entries)
    assert target.events == ["send 0", "finish 0"]
    assert orjson.loads((tmp_path / "items.jsonl.journal").read_bytes())["state"]["done"] == 10
