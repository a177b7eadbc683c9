"""Without these, an acknowledged write could be gone after a crash, or a batch be there by half.

SIGKILL leaves the page cache alone: this shows that our own steps are in the right order, not that
the disk has anything. For that see test_durability.py.
"""

from pathlib import Path

from tests.support.crash import AtStep, Killer, every_step, mixed, moments

SEED = 20


def test_kills_at_random_moments_and_at_every_step(tmp_path: Path) -> None:
    with Killer(tmp_path / "data", SEED) as killer:
        kills = [*every_step(1, 2, 7), *moments(killer.random, 10)]
        tally = killer.rounds(list(mixed(killer.random, kills)))
    print(tally)
    assert min(tally.by_step.values()) == 3
    # A kill that hits nothing shows nothing.
    assert tally.acknowledged > 50
    assert tally.unacknowledged > 20


def test_an_acknowledgement_before_the_commit_is_found_out(tmp_path: Path) -> None:
    """The test of the test: a child that says "acknowledged" too early, killed before a commit."""
    with Killer(tmp_path / "data", SEED, lies=True) as killer:
        found = killer.round(AtStep("group.applied", 4))
    assert any("acknowledged" in line for line in found), found
