"""Every kind of ledger by name, and processes that hammer one of them."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

from tests.support.children import start_child, wait_for_line
from tests.support.postgres import fresh_url

from armillary.partition.budgets.admission import Enforce
from armillary.partition.budgets.file import FileLedger
from armillary.partition.budgets.ledger import Ledger, LocalLedger
from armillary.partition.budgets.postgres import PostgresLedger

KINDS = ("local", "file", "postgres")
SHARED = ("file", "postgres")


def place_for(kind: str, folder: Path) -> str:
    """Where a ledger of this kind may live: a path, or the address of an empty schema."""
    return fresh_url() if kind == "postgres" else str(folder / "ledger.bin")


def open_ledger(kind: str, place: str, enforce: Enforce = "on") -> Ledger:
    match kind:
        case "local":
            return LocalLedger(enforce)
        case "file":
            return FileLedger(Path(place), enforce)
        case _:
            return PostgresLedger(place, enforce)


#: Asks as fast as it can for a while, and until it was refused; then prints the RU it was granted,
#: second by second, and the seconds in which it was refused.
HAMMER = """
import json
from collections import Counter
from tests.support.ledgers import open_ledger
from armillary.partition.budgets.ledger import Allowance
from armillary.partition.budgets import postgres
postgres.ANSWER_SECONDS = 60.0  # on a busy machine it would go on with the last known budget
kind, place, ru, cost, seconds = sys.argv[2:7]
ledger, allowance, cost = open_ledger(kind, place), Allowance(7, float(ru)), float(cost)
used, refused = Counter(), set()
ledger.admit(allowance, time.time_ns() // 1_000_000)
print("ready", flush=True)
sys.stdin.readline()
end = time.time() + float(seconds)
while time.time() < end or (not refused and time.time() < end + 60):
    now_ms = time.time_ns() // 1_000_000
    if ledger.admit(allowance, now_ms) is None:
        ledger.charge(allowance, cost, now_ms)
        used[now_ms // 1000] += cost
    else:
        refused.add(now_ms // 1000)
        time.sleep(0.002)
ledger.close()
print(json.dumps([used, sorted(refused)]))
"""


def hammer(
    kind: str, place: str, folder: Path, *, ru: float, cost: float, seconds: float
) -> subprocess.Popen[str]:
    """Says "ready" and waits for a line before it begins."""
    return start_child(HAMMER, folder, kind, place, str(ru), str(cost), str(seconds))


def granted_together(children: list[subprocess.Popen[str]]) -> tuple[Counter[int], set[int]]:
    """Let them begin at the same moment; the RU of all of them, second by second, and the seconds
    in which one was refused."""
    for child in children:
        wait_for_line(child, "ready")
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    total: Counter[int] = Counter()
    refused: set[int] = set()
    for child in children:
        output, errors = child.communicate(timeout=120)
        assert child.returncode == 0, errors
        used, seconds = json.loads(output)
        total.update({int(second): ru for second, ru in used.items()})
        refused.update(seconds)
    return total, refused
