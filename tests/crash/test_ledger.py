"""Without these, the crash tests could pass because they see nothing."""

import msgspec
from tests.support.crash_ledger import Ledger
from tests.support.workload import Action, State, apply, item_slot

FIRST = Action("o0", 1, "batch", "k", (("create", "i0"), ("create", "i1")))
SECOND = Action("o0", 2, "batch", "k", (("patch", "i0"), ("delete", "i1"), ("create", "i2")))
AFTER_FIRST = apply({}, FIRST)
AFTER_SECOND = apply(AFTER_FIRST, SECOND)


def ledger() -> Ledger:
    """The first is acknowledged, the second was under way."""
    one = Ledger.new(writers=2)
    one.hear("i " + msgspec.json.encode(FIRST).decode())
    one.hear("a o0 1")
    one.hear("i " + msgspec.json.encode(SECOND).decode())
    return one


def differences(observed: State) -> list[str]:
    return list(ledger().differences({"o0": observed}))


def test_what_was_under_way_may_be_there_or_not() -> None:
    assert differences(AFTER_FIRST) == differences(AFTER_SECOND) == []
    one = ledger()
    assert one.settle({"o0": AFTER_SECOND}) == 1
    assert one.states["o0"] == AFTER_SECOND
    assert ledger().settle({"o0": AFTER_FIRST}) == 0


def test_a_lost_write_is_seen() -> None:
    assert any("item k i0" in line for line in differences({}))


def test_half_a_batch_is_seen() -> None:
    half = AFTER_FIRST | {item_slot("k", "i2"): AFTER_SECOND[item_slot("k", "i2")]}
    assert any("half of it" in line for line in differences(half))


def test_what_was_never_written_is_seen() -> None:
    assert differences(AFTER_FIRST | {item_slot("k", "i7"): {"id": "i7"}})
    assert list(ledger().differences({"o0": AFTER_FIRST, "stranger": {"count": 1}}))


def test_an_old_version_is_seen() -> None:
    one = ledger()
    one.hear("a o0 2")
    assert list(one.differences({"o0": AFTER_FIRST}))
