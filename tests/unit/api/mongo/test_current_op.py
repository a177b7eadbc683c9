"""currentOp shows index builds that are under way. Without this, a client that waits for an index
by asking for its progress would go on while queries still scan."""

import pytest
from tests.support.mongo import Wire, make_service


def test_an_index_build_is_shown_until_every_item_is_indexed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = make_service()
    # It would be done by the time of the question, or not, as the thread that indexes likes.
    monkeypatch.setattr(service.gateway, "index_later", lambda store: None)
    wire = Wire(service)
    items = [{"_id": number, "a": number} for number in range(5)]
    assert wire.run({"insert": "c", "documents": items})["ok"] == 1
    assert wire.run({"currentOp": 1}, "admin")["inprog"] == []
    made = {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}
    assert wire.run(made)["ok"] == 1
    (build,) = wire.run({"currentOp": 1}, "admin")["inprog"]
    assert build["command"]["createIndexes"] == "c"
    assert build["progress"] == {"done": 0, "total": 5}
