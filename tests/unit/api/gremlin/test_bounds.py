"""What a traversal may use. Without these a script of forty characters could hold a thread or the
memory of the server for as long as it likes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.support.gremlin import Endpoint, endpoint, failure, submit

from armillary.api.gremlin.service import GremlinStreams
from armillary.config import GremlinSettings
from armillary.limits import MB
from armillary.testing.streams import serving

SIZE = 9  # every vertex has an edge to each
#: Each would take minutes.
ENDLESS = {
    "repeat": "g.V().repeat(out()).times(12).path().count()",
    "emit": "g.V().repeat(both()).emit().path().dedup().count()",
    "until": "g.V().repeat(out().in('k')).until(has('x', 1)).path()",
    "hops": "g.V()" + ".out().as('a')" * 12 + ".select('a').path().count()",
    "union": "g.V().repeat(union(out(), both())).times(9).path().count()",
    "where": "g.V()" + ".where(out().where(out().where(out().path())))" * 30 + ".path().count()",
    "copies": "g.V().repeat(out()).times(20)",
    "local": "g.V().local(repeat(out()).times(9).path().count())",
}
#: Each would keep gigabytes.
LARGE = {
    "fold": "g.V().repeat(out()).times(5).path().fold()",
    "aggregate": "g.V().repeat(out().aggregate('x')).times(6).cap('x')",
    "group": "g.V().out().out().out().out().out().group().by(path())",
    "order": "g.V().out().out().out().out().out().path().order()",
    "dedup": "g.V().out().out().out().out().out().path().dedup().count()",
    "repeat": "g.V().repeat(out()).times(9).path()",
    "emit": "g.V().repeat(out()).emit().times(9).path()",
    "store": "g.V().out().out().out().out().out().store('x').cap('x')",
    "copies in a list": "g.V().repeat(out()).times(9).fold()",
    "copies in a side effect": "g.V().repeat(out()).times(9).store('x').count()",
    "copies in a group": "g.V().repeat(out()).times(9).group().by('id').by('id').count()",
    "unfold": "g.V().repeat(out()).times(5).fold().unfold().fold().unfold().path().count()",
    "vertices again": "g.V().out().out().V().V().V().V().V().path().fold()",
    "one text many times": "g.inject('"
    + "x" * 9_000
    + "')"
    + ".union(identity(), identity())" * 10
    + ".fold()",
    "tree": "g.V().out().out().out().out().out().tree()",
}


def filled(**settings: Any) -> Iterator[Endpoint]:
    """The bounds are not those of filling it, which takes what it takes."""
    with endpoint() as made:
        client = made.client()
        for at in range(SIZE):
            submit(client, f"g.addV('p').property('pk', 'a').property('id', 'v{at}')")
        for one in range(SIZE):
            for other in range(SIZE):
                submit(client, f"g.V(['a', 'v{one}']).addE('k').to(g.V(['a', 'v{other}']))")
        with serving(GremlinStreams(made.gateway, GremlinSettings(**settings))) as port:
            bounded = replace(made, port=port, clients=[])
            yield bounded
            for one_client in bounded.clients:
                one_client.close()


@pytest.fixture(scope="module")
def hurried() -> Iterator[Endpoint]:
    yield from filled(seconds=1)


@pytest.fixture(scope="module")
def small() -> Iterator[Endpoint]:
    yield from filled(memory=4 * MB)


@pytest.mark.parametrize("name", ENDLESS)
def test_every_loop_ends_at_its_deadline(hurried: Endpoint, name: str) -> None:
    assert status(hurried, ENDLESS[name]) in (1009, 1003)


@pytest.mark.parametrize("name", LARGE)
def test_what_a_traversal_keeps_is_bounded(small: Endpoint, name: str) -> None:
    assert status(small, LARGE[name]) == 1003


def test_what_has_gone_its_way_does_not_count(small: Endpoint) -> None:
    """Many batches through one repeat, each of which fits."""
    script = "g.V().out().out().out().repeat(out()).times(1).path().count()"
    assert submit(small.client(), script) == [SIZE**5]


def status(made: Endpoint, script: str) -> int:
    return int(failure(made.client(), script).status_attributes["x-ms-status-code"])
