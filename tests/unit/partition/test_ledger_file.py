"""The file under a ledger: torn slots, full tables, dead processes. Without these a killed worker
could stop a partition, or double its budget.
"""

from __future__ import annotations

import random
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.children import start_child, wait_for_line
from tests.support.ledgers import granted_together, hammer

from armillary.errors import FormatMismatch
from armillary.limits import LEDGER_PROBES_MAX, LEDGER_SLOTS
from armillary.partition.budgets.file import FileLedger
from armillary.partition.budgets.ledger import Allowance, fresh_state
from armillary.partition.budgets.slots import HEADER, SLOT_BYTES, open_slots, seed_of

T0 = 1_700_000_000_000
SMALL, LARGE = Allowance(7, 400.0), Allowance(7, 10_000.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.bin"


@pytest.fixture
def ledger(path: Path) -> Iterator[FileLedger]:
    ledger = FileLedger(path)
    yield ledger
    ledger.close()


def spend(ledger: FileLedger, allowance: Allowance, cost: float, now_ms: int) -> float:
    total = 0.0
    while ledger.admit(allowance, now_ms) is None:
        ledger.charge(allowance, cost, now_ms)
        total += cost
    return total


# --- the form -------------------------------------------------------------------------------------


def test_the_bytes_of_a_slot_are_as_documented(path: Path, ledger: FileLedger) -> None:
    ledger.charge(SMALL, 100.0, T0)
    data = path.read_bytes()
    assert len(data) == 64 * (1 + LEDGER_SLOTS)
    assert data[:16] == b"ARMLEDGR" + bytes.fromhex("01000000 00400000")
    (at,) = [i for i in range(64, len(data), 64) if data[i : i + 64].strip(b"\0")]
    assert struct.unpack("<Q4dQ", data[at : at + 48]) == (8, 400.0, 300.0, 0.0, 100.0, T0 // 1000)
    checked = struct.pack("<Q", 7) + data[at + 8 : at + 48]
    assert data[at + 48 : at + 64].hex() == "eb1f4d41" + 12 * "00"
    assert zlib.crc32(checked) == 0x414D1FEB


def test_a_ledger_of_another_version_is_refused_and_left_alone(path: Path) -> None:
    content = HEADER.pack(b"ARMLEDGR", 2, 16_384)
    path.write_bytes(content)
    with pytest.raises(FormatMismatch, match="is no ledger of this version"):
        FileLedger(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "content",
    [b"something else entirely", b"ARML", HEADER.pack(b"ARMLEDGR", 1, 16_384) + bytes(4096)],
    ids=["foreign", "cut in its head", "cut"],
)
def test_a_damaged_ledger_is_made_anew_alongside_processes_that_have_the_old_one(
    path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(content)
    with path.open("rb") as old:
        ledger = FileLedger(path)
        assert spend(ledger, SMALL, 5.0, T0) == 400.0
        ledger.close()
        assert old.read() == content
    assert path.stat().st_size == 64 * (1 + LEDGER_SLOTS)
    assert "is damaged and is made anew" in caplog.text
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_creation_cut_short_is_finished(path: Path) -> None:
    path.write_bytes(bytes(1000))
    ledger = FileLedger(path)
    assert spend(ledger, SMALL, 5.0, T0) == 400.0
    ledger.close()


def test_the_budget_goes_on_in_the_next_process(path: Path) -> None:
    first = FileLedger(path)
    first.charge(SMALL, 1_000.0, T0)  # leaves a debt of 600
    first.close()
    second = FileLedger(path)
    assert second.admit(SMALL, T0 + 1000) == 2000 - 1000
    second.close()


def test_a_file_opened_twice_is_closed_once_it_is_unused(path: Path) -> None:
    """Closing any handle of a file drops all its `fcntl` locks, so there must be only one."""
    one, two = FileLedger(path), FileLedger(path)
    assert one._file is two._file
    one.close()
    one.close()
    assert two.admit(SMALL, T0) is None
    two.close()
    three = FileLedger(path)
    assert three._file is not two._file
    three.close()


# --- torn -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("allowance", [SMALL, LARGE])
def test_a_torn_slot_admits_nothing_this_second_and_all_in_the_next(
    ledger: FileLedger, allowance: Allowance
) -> None:
    spend(ledger, allowance, allowance.ru / 4, T0)
    slot = ledger._entries[7].slot
    for place in range(8, 52):  # any byte of the checked part
        file = ledger._file
        file.write(slot, seed_of(7), fresh_state(allowance, T0))
        file.map[slot + place] ^= 0x10
        ledger._slices.forget(allowance)
        assert ledger.admit(allowance, T0 + 1) is not None, f"byte {place} is not covered"
    ledger._slices.forget(allowance)
    assert spend(ledger, allowance, allowance.ru / 4, T0 + 1000) == allowance.ru


def test_a_torn_slot_is_mended_by_a_charge(ledger: FileLedger) -> None:
    ledger.charge(SMALL, 1.0, T0)
    ledger._file.map[ledger._entries[7].slot + 20] ^= 1
    ledger.charge(SMALL, 1.0, T0)
    assert ledger.state(SMALL, T0).balance == -1.0


# --- a full table ---------------------------------------------------------------------------------


def test_the_quietest_budget_makes_room(path: Path) -> None:
    file = open_slots(path, slots=LEDGER_PROBES_MAX)
    ledger = FileLedger(path)
    for key in range(LEDGER_PROBES_MAX):
        ledger.charge(Allowance(key, 400.0), 50.0, T0 + (0 if key == 5 else 60_000))
    ledger.charge(Allowance(1000, 400.0), 50.0, T0 + 61_000)
    owners = {file.owner(SLOT_BYTES * (1 + i)) for i in range(file.slots)}
    assert owners == set(range(LEDGER_PROBES_MAX)) - {5} | {1000}
    # A budget that lost its place comes back afresh, wherever its process thought it lived.
    returned = Allowance(5, 400.0)
    ledger.charge(returned, 50.0, T0 + 61_000)
    assert ledger.state(returned, T0 + 61_000).balance == 350.0
    ledger.close()
    file.close()


def test_a_process_that_remembers_a_lost_place_does_not_charge_its_new_owner(path: Path) -> None:
    ledger, other = FileLedger(path, slots=1), FileLedger(path)
    one, two = Allowance(1, 400.0), Allowance(2, 400.0)
    ledger.charge(one, 100.0, T0)
    other.charge(two, 10.0, T0)
    assert ledger.admit(one, T0) is None
    assert other.state(two, T0).balance == 400.0
    other.charge(two, 10.0, T0)
    ledger.charge(one, 30.0, T0)
    assert ledger.state(one, T0).balance == 370.0
    ledger.close()
    other.close()


def test_ten_thousand_budgets_have_a_place_each(ledger: FileLedger) -> None:
    allowances = [Allowance(key, 400.0) for key in range(10_000)]
    for allowance in allowances:
        ledger.charge(allowance, 1.0 + allowance.key, T0)
    assert all(ledger.state(a, T0).used == 1.0 + a.key for a in allowances[::97])


# --- other processes ------------------------------------------------------------------------------


@pytest.mark.parametrize(("ru", "cost"), [(400.0, 7.0), (10_000.0, 13.0)])
def test_two_processes_throttle_as_one(path: Path, ru: float, cost: float) -> None:
    children = [
        hammer("file", str(path), path.parent, ru=ru, cost=cost, seconds=2.5) for _ in range(2)
    ]
    both, refused = granted_together(children)
    assert all(total <= ru + 2 * cost for total in both.values()), both
    # Who is refused has used it up; a slow machine may do so in few of the seconds.
    assert max(both[second] for second in refused) >= 0.9 * ru, (both, refused)


HOLDER = """
import signal
from armillary.partition.budgets.ledger import Allowance
from armillary.partition.budgets.file import FileLedger
ledger, allowance = FileLedger(Path(sys.argv[2])), Allowance(7, float(sys.argv[3]))
now_ms = int(sys.argv[4])
assert ledger.admit(allowance, now_ms) is None
slot = ledger._entries[7].slot
from armillary.partition.budgets.slots import lock
lock(ledger._file.handle, slot)
print("holding", flush=True)
time.sleep(600)  # with its lock; who waited for it would wait until a time-out
"""


@pytest.mark.parametrize("allowance", [SMALL, LARGE])
def test_the_lock_and_the_slice_of_a_killed_holder_return(
    path: Path, ledger: FileLedger, allowance: Allowance
) -> None:
    child = start_child(HOLDER, path.parent, str(path), str(allowance.ru), str(T0))
    wait_for_line(child, "holding")
    child.kill()
    child.communicate()
    this_second = spend(ledger, allowance, 4.0, T0)
    assert this_second >= allowance.ru * 0.97
    assert spend(ledger, allowance, 4.0, T0 + 1000) == allowance.ru


CHARGER = """
from armillary.partition.budgets.ledger import Allowance
from armillary.partition.budgets.file import FileLedger
ledger, allowance = FileLedger(Path(sys.argv[2])), Allowance(7, 400.0)
print("ready", flush=True)
while True:
    ledger.charge(allowance, 0.001, time.time_ns() // 1_000_000)
"""


def test_kills_at_any_moment_leave_a_usable_ledger(path: Path, ledger: FileLedger) -> None:
    chance = random.Random(1)
    for _ in range(6):
        child = start_child(CHARGER, path.parent, str(path))
        wait_for_line(child, "ready")
        time.sleep(chance.random() / 20)
        child.kill()
        child.communicate()
        next_second = (time.time_ns() // 10**9 + 1) * 1000
        assert ledger.admit(SMALL, next_second) is None
        assert ledger.state(SMALL, next_second).balance == 400.0
        ledger.reset(SMALL, time.time_ns() // 10**6)


CHARGES = 20_000
COUNTED_CHARGES = """
from armillary.partition.budgets.ledger import Allowance
from armillary.partition.budgets.file import FileLedger
ledger, allowance = FileLedger(Path(sys.argv[2])), Allowance(7, 1_999.0)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[3])):
    ledger.charge(allowance, 1 / 64, int(sys.argv[4]))
"""


def test_no_charge_is_lost_between_processes(path: Path, ledger: FileLedger) -> None:
    """Without the lock of the slot, two that read the same balance would charge once."""
    arguments = (str(path), str(CHARGES), str(T0))
    children = [start_child(COUNTED_CHARGES, path.parent, *arguments) for _ in range(2)]
    for child in children:
        wait_for_line(child, "ready")
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        _, errors = child.communicate(timeout=120)
        assert child.returncode == 0, errors
    assert ledger.state(Allowance(7, 1_999.0), T0).used == 2 * CHARGES / 64
