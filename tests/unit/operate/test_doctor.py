"""Without these, the doctor could say that all is well, always."""

import itertools
from pathlib import Path

import pytest

import armillary
from armillary.engine.base import Command, Handler, Writer
from armillary.engine.opening import open_engine
from armillary.errors import BadInput, Unavailable
from armillary.operate.doctor import Finding, examine
from armillary.store.commands import HANDLERS
from armillary.store.rows import layout


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with armillary.open(tmp_path / "data", housekeeping=False) as account:
        orders = account.create_database("shop").create_container(
            "orders", "/pk", physical_partitions=2
        )
        orders.bulk(("create", ({"id": str(n), "pk": n, "t": "x"},)) for n in range(40))
    return tmp_path / "data"


def of_orders(data: Path) -> list[Finding]:
    return [one for one in examine(str(data)) if one.what == "shop/orders"]


def test_a_healthy_account_is_well_also_while_it_is_open(data: Path) -> None:
    assert all(one.well for one in examine(str(data)) if one.what != "room")
    with armillary.open(data):
        (found,) = of_orders(data)
    assert found.text.startswith("40 items in 2 physical partitions")


def test_a_look_that_takes_long_is_no_damage(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests end a snapshot that is older than five seconds; a large partition, or a busy
    machine, takes the doctor longer."""
    seconds = itertools.count(0.0, 10.0)
    monkeypatch.setattr("armillary.engine.lmdb.access.monotonic", lambda: next(seconds))
    (found,) = of_orders(data)
    assert found.text.startswith("40 items in 2 physical partitions")


def test_who_is_away_is_not_damaged(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> list[str]:
        raise Unavailable("The database is away.")

    monkeypatch.setattr("armillary.operate.doctor.problems", away)
    bad = of_orders(data)
    assert [one.well for one in bad] == [False, False]
    assert all("could not be looked at: The database is away." in one.text for one in bad)
    assert not any("damaged" in one.text for one in bad)


def test_a_lost_row_and_one_too_many_are_found(data: Path) -> None:
    def damage(tx: Writer, _: None) -> None:
        entry, _value = next(iter(tx.scan(layout.IX, layout.after(layout.IX))))
        tx.delete(entry)
        tx.put(layout.IX + b"nobody's", b"")

    engine = open_engine(str(data), {**HANDLERS, "damage": Handler(damage)})
    engine.run(max(engine.spaces()), Command("damage", None))
    engine.close()
    bad = [one.text for one in of_orders(data) if not one.well]
    assert len(bad) == 2
    assert all("Physical partition 1" in text for text in bad)


def test_a_folder_that_is_none_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no account"):
        list(examine(str(tmp_path / "none")))
    assert not (tmp_path / "none").exists()


def test_a_cut_file_is_a_finding_not_a_crash(data: Path) -> None:
    file = data / "data.mdb"
    file.write_bytes(file.read_bytes()[:5000])
    bad = [one for one in examine(str(data)) if not one.well and one.what == "account"]
    assert len(bad) == 1


@pytest.mark.parametrize("kind", [layout.DOC, layout.LP, layout.LOG], ids=["item", "key", "log"])
def test_damaged_rows_are_findings_too(data: Path, kind: bytes) -> None:
    """It ended with a traceback, so what else is wrong was not said."""

    def damage(tx: Writer, _: None) -> None:
        entry, _value = next(iter(tx.scan(kind, layout.after(kind))))
        tx.put(entry, b"\xff\xfe")

    engine = open_engine(str(data), {**HANDLERS, "damage": Handler(damage)})
    engine.run(max(engine.spaces()), Command("damage", None))
    engine.close()
    bad = [one.text for one in of_orders(data) if not one.well]
    assert len(bad) == 1
    assert "Physical partition 1: " in bad[0]
    assert "is damaged" in bad[0]
