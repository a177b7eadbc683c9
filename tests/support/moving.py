"""For tests of splits and merges: something to move, and single steps."""

from itertools import pairwise

from tests.support.accounts import store_of

from armillary.container import Container
from armillary.engine.base import CATALOG_SPACE
from armillary.store.moves.runner import DONE, Move

KEYS = 12


def fill(container: Container, items: int, start: int = 0, size: int = 10) -> None:
    answers = container.bulk(
        ("create", ({"id": str(n), "pk": f"k{n % KEYS}", "n": n, "text": "x" * size},))
        for n in range(start, start + items)
    )
    assert not [one for one in answers if isinstance(one, Exception)]


def ordinals(container: Container) -> list[int]:
    return [int(one.id) for one in container.partitions()]


def step_to(move: Move, name: str) -> None:
    """Up to the step `name`, which is not taken."""
    while move.next not in (name, DONE):
        move.step()
    assert move.next == name


def spaces_of(container: Container) -> set[int]:
    return {CATALOG_SPACE, *(one.space for one in store_of(container).refresh().table.ranges)}


def assert_tiled(container: Container) -> None:
    edges = [(one.start, one.end) for one in container.feed_ranges()]
    assert edges[0][0] == ""
    assert edges[-1][1] == "FF"
    assert all(left[1] == right[0] for left, right in pairwise(edges))
