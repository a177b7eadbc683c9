"""Plans as people read them: the golden file has a query, what to expect of it, and its tree.

Run as a program, this file writes the trees again; look at the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.support.accounts import World, open_world
from tests.support.golden import GOLDEN

from armillary.container import Container

FILE = GOLDEN / "query_plans.txt"


@dataclass(frozen=True)
class Tree:
    comment: str
    query: str
    text: str

    def __str__(self) -> str:
        return self.query


def trees() -> list[Tree]:
    found: list[Tree] = []
    for block in FILE.read_text(encoding="utf-8").strip().split("\n\n"):
        comment, query, *lines = block.splitlines()
        assert comment.startswith("# "), block
        assert query.startswith("> "), block
        found.append(Tree(comment, query[2:], "\n".join(lines)))
    return found


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    with open_world(":memory:") as world:
        yield make(world)


def make(world: World) -> Container:
    policy = {
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": "/notes/?"}],
        "compositeIndexes": [[{"path": "/city"}, {"path": "/age", "order": "descending"}]],
    }
    made = world.container("people", "/tenant", indexing_policy=policy, physical_partitions=2)
    for number in range(30):
        made.create_item(
            {
                "id": str(number),
                "tenant": "abc"[number % 3],
                "age": number,
                "city": f"city {number % 5}",
                "notes": "none",
                "tags": ["x", "y"] if number % 2 else ["y"],
            }
        )
    return made


@pytest.mark.parametrize("tree", trees(), ids=str)
def test_each_query_has_its_tree(container: Container, tree: Tree) -> None:
    assert container.query_page(tree.query, max_items=1000).plan_text == tree.text


def write(container: Container) -> None:
    blocks = [
        f"{tree.comment}\n> {tree.query}\n"
        + container.query_page(tree.query, max_items=1000).plan_text
        for tree in trees()
    ]
    FILE.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with open_world(":memory:") as opened:
        write(make(opened))
