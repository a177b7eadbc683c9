"""Every route and every kind of error, as it went over the wire in 0.1. Without this a change of
shape inside could change what clients see. Made again by `python -m tests.support.recorded`; its
difference is read, not only accepted."""

from pathlib import Path

from tests.support.recorded import recorded

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "nosql_wire.txt"


def test_the_wire_is_as_it_was() -> None:
    assert recorded() == GOLDEN.read_text("utf-8")
