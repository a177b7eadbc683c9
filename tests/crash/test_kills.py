"""Without these, an acknowledged write could be gone after a crash, or a batch be there by half.

SIGKILL leaves the page cache alone: this shows that our own steps are in the right order, not that
the disk has anything. For that see test_durability.py.

At least 40 kills, and each is followed by a full check. A thousand are in test_soak.py.
"""

from pathlib import Path
from random import Random

import pytest
from tests.support.crash import (
    LOGGED,
    MOVING,
    WRITING,
    AfterMoment,
    AtStep,
    Killer,
    every_step,
    mixed,
    moments,
)

SEED = 20
WRITER = "tests.support.crash_writer:HANDLERS"


def test_kills_at_random_moments_and_at_every_step(tmp_path: Path) -> None:
    """15 + 9 + 9 kills of one store, each going on with what the kill before has left."""
    with Killer(tmp_path / "data", SEED) as killer:
        kills = [*every_step(1, 3, 12), *every_step(1, 2, 4, of=LOGGED)]
        kills += moments(killer.random, 9)
        killer.rounds(mixed(killer.random, kills))
        tally = killer.more_until(lambda one: one.acknowledged > 100 and one.unacknowledged > 30)
    for step in (*WRITING, *LOGGED):
        assert tally.by_step[step] == 3, step
    assert tally.acknowledged > 100
    assert tally.unacknowledged > 30


def test_kills_at_every_step_of_a_split_or_merge(tmp_path: Path) -> None:
    """One each, while the others write: afterwards it has happened or it has not."""
    with Killer(tmp_path / "data", SEED) as killer:
        tally = killer.rounds(mixed(killer.random, every_step(1, of=MOVING)))
    assert [tally.by_step[step] for step in MOVING] == [1] * len(MOVING)


def test_a_kill_while_a_new_folder_is_made(tmp_path: Path) -> None:
    """2 kills of fresh stores, while their first writes are under way."""
    for number, step in enumerate(("group.committed", "batch.operation")):
        with Killer(tmp_path / str(number), SEED + number, writers=2) as killer:
            killer.rounds([AtStep(step, 1)])


def test_the_writer_process_is_killed(tmp_path: Path) -> None:
    """8 kills: callers that waited get `WriteUncertain`, and it is one or the other. What the next
    writer finds in the redo log it has to bring to LMDB, while readers go on."""
    with Killer(tmp_path / "data", SEED, victim="writer", writer=WRITER) as killer:
        killer.rounds(
            [
                *(AtStep(f"group.{at}", 6) for at in ("begin", "applied", "committed")),
                *every_step(2, of=LOGGED),
                AtStep("batch.operation", 9),
                AfterMoment("ready", 20_000),
            ]
        )
        tally = killer.more_until(lambda one: one.acknowledged > 20)
    assert tally.acknowledged > 20


def test_a_worker_of_a_writer_process_is_killed(tmp_path: Path) -> None:
    """3 kills: the writer finishes what it was given, and then ends because no client is left."""
    with Killer(tmp_path / "data", SEED, writer=WRITER) as killer:
        killer.rounds([AfterMoment("ready", us) for us in (3_000, 15_000, 40_000)])


@pytest.mark.postgres
def test_a_client_of_postgresql_is_killed() -> None:
    """6 kills: five at steps, one at a random moment."""
    from tests.support.crash_postgres import own_address, wait_for_backends

    address, name = own_address()
    with Killer(address, SEED, before_check=lambda: wait_for_backends(address, name)) as killer:
        killer.rounds([*every_step(12), *moments(Random(SEED), 1)])
        tally = killer.more_until(lambda one: one.acknowledged > 10)
    assert tally.acknowledged > 10


def test_an_acknowledgement_before_the_commit_is_found_out(tmp_path: Path) -> None:
    """The test of the test: a child that says "acknowledged" too early, killed before a commit."""
    with Killer(tmp_path / "data", SEED, lies=True) as killer:
        # The group that is killed may have nothing in it that changes something.
        rounds = (killer.round(AtStep("group.applied", 4)) for _ in range(10))
        found = next((lines for lines in rounds if lines), [])
    assert any("acknowledged" in line for line in found), found
