"""Without this, two servers on one store would each admit the whole throughput.

Two real processes, one container, `enforce="on"`: together they get the budget of the seconds they
worked in, and at most one operation each beyond it.
"""

import json
import math
from pathlib import Path

import pytest
from tests.support.crash import start_python
from tests.support.postgres import fresh_url

from armillary.account import open_account

RU = 400
SECONDS = 3
#: A connection notices at the end of a second that its neighbour used the budget up.
ENGINES = ["lmdb", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.mark.parametrize("engine", ENGINES)
def test_two_processes_throttle_as_one(engine: str, tmp_path: Path) -> None:
    address = fresh_url() if engine == "postgres" else str(tmp_path / "data")
    with open_account(address, durability="relaxed", housekeeping=False) as account:
        account.create_database("d").create_container("c", "/pk", throughput=RU)
    both = [
        start_python("tests.support.spender", address, name, str(SECONDS)) for name in ("a", "b")
    ]
    for child in both:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
    ends = []
    for child in both:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
    for child in both:
        out, errors = child.communicate(timeout=180)
        assert child.returncode == 0, errors.decode()
        ends.append(json.loads(out))
    spent = sum(one["spent"] for one in ends)
    # Budgets are given by the second of the clock: those they were in, the first and last in part.
    first, last = min(one["first"] for one in ends), max(one["last"] for one in ends)
    seconds = math.floor(last) - math.floor(first) + 1
    assert spent <= RU * seconds + sum(one["largest"] for one in ends)
    assert min(len(one["refused"]) for one in ends) > 0, "nobody was refused, so nothing was shown"
    # A second in which somebody was refused was used up, but for what the neighbour still held.
    used_up = {second for one in ends for second in one["refused"]}
    by_second = {
        second: sum(one["spent_by_second"].get(str(second), 0.0) for one in ends)
        for second in used_up
    }
    assert max(by_second.values()) >= RU / 2, "they were refused more than they had to be"
