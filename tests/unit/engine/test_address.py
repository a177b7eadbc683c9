"""Without one reader of addresses, a folder with a strange name would be a database here and a
folder there."""

from pathlib import Path

import pytest

from armillary.engine.address import parse_address, without_password
from armillary.errors import BadInput


@pytest.mark.parametrize(
    ("given", "kind", "local"),
    [
        (":memory:", "memory", True),
        ("postgresql://u@h/d", "postgres", False),
        ("postgres://h", "postgres", False),
        ("./data", "folder", True),
        (Path("data"), "folder", True),
        (Path("postgresql:/x"), "folder", True),
        ("C:/data", "folder", True),
    ],
)
def test_an_address_names_its_engine(given: str | Path, kind: str, local: bool) -> None:
    found = parse_address(given)
    assert (found.kind, found.is_local) == (kind, local)
    assert (found.folder is not None) is (kind == "folder")


def test_another_scheme_is_refused_with_what_there_is() -> None:
    with pytest.raises(BadInput, match="mysql:// is no engine"):
        parse_address("mysql://h/d")


def test_no_password_is_shown() -> None:
    assert without_password("postgresql://ada:secret@db/x") == "postgresql://…@db/x"
    assert "secret" not in parse_address("postgresql://ada:secret@db/x").shown


def test_nothing_else_reads_the_text_of_an_address() -> None:
    source = Path(__file__).resolve().parents[3] / "src" / "armillary"
    readers = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if '"://"' in path.read_text("utf-8")
    }
    # A request target in absolute form, an Origin, and values in data are other things.
    others = {"server/http/wire.py", "api/gremlin/wire/websocket.py", "advisor/keys/naming.py"}
    assert readers == {"engine/address.py"} | others


@pytest.mark.parametrize("server", ["http://localhost:8081", "https://a.example/"])
def test_a_server_is_not_where_data_lies(server: str) -> None:
    with pytest.raises(BadInput, match="needs the data itself: give the folder"):
        parse_address(server)
