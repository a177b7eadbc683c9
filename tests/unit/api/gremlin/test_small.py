"""Small traversals are answered on the event loop; those that turn out not to be go on in a thread,
with the same answer and the same charge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from tests.support.gremlin_graphs import evaluate
from tests.unit.api.gremlin.test_sessions import Wire
from websockets.frames import Frame, Opcode

import armillary
from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import GatewaySettings
from armillary.api.core.streams import Answer, Quick, Work
from armillary.api.gremlin import execution
from armillary.api.gremlin.graph import small
from armillary.api.gremlin.graph.store import StoreGraph
from armillary.api.gremlin.length import may_be_small
from armillary.api.gremlin.service import GremlinStreams

WIDTH = 12


@pytest.fixture(scope="module")
def streams() -> Iterator[GremlinStreams]:
    """A tree of three levels; each vertex but the leaves has twelve others."""
    with armillary.open(":memory:") as account:
        account.create_database("d").create_container("g", "/pk")
        graph = StoreGraph(account.store.container("d", "g"), "pk", lambda: "")
        ids = ["r", *(f"r{n}" for n in range(WIDTH))]
        ids += [f"{one}.{n}" for one in ids[1:] for n in range(WIDTH)]
        for number, id in enumerate(ids):
            text = "g.addV('p').property('id', i).property('pk', k).property('n', n)"
            evaluate(graph, text, {"i": id, "k": f"k{number % 7}", "n": number})
        keys = {id: f"k{number % 7}" for number, id in enumerate(ids)}
        for number, id in enumerate(ids[1:]):
            above = "r" if "." not in id else id.partition(".")[0]
            evaluate(
                graph,
                "g.V([k, i]).addE('has').to(g.V([l, j])).property('id', e)",
                {"k": keys[above], "i": above, "l": keys[id], "j": id, "e": f"e{number}"},
            )
        gateway = Gateway(account.store, GatewaySettings())
        yield GremlinStreams(gateway)
        gateway.close()


class Watched(Wire):
    """It notes where its requests were answered."""

    ways: list[str]

    def feed(self, data: bytes) -> list[Any]:
        self.ways = getattr(self, "ways", [])
        out: list[bytes] = []
        for event in self.session.receive(data):
            if isinstance(event, Quick):
                answer = event.run()
                self.ways.append("loop" if answer is not None else "loop, thread")
                event = event.otherwise if answer is None else Answer(answer)
            elif isinstance(event, Work):
                self.ways.append("thread")
            if isinstance(event, Work):
                event.run(out.append)
            elif isinstance(event, Answer):
                out.append(event.data)
        self.client.receive_data(b"".join(out))
        return [
            orjson.loads(event.data)
            for event in self.client.events_received()
            if isinstance(event, Frame) and event.opcode is Opcode.BINARY
        ]


def asked(streams: GremlinStreams, text: str, bindings: dict[str, Any] | None = None) -> Any:
    """(where, messages)"""
    wire = Watched(streams)
    wire.log_in()
    wire.ways.clear()
    messages = wire.ask("eval", {"gremlin": text, "bindings": bindings or {}})
    return wire.ways, messages


def results(messages: list[Any]) -> list[Any]:
    assert [one["status"]["code"] for one in messages][:-1] == [206] * (len(messages) - 1)
    assert messages[-1]["status"]["code"] == 200
    return [one for message in messages for one in message["result"]["data"]]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("g.V(['k0', 'r'])", 1),
        ("g.V([k, i]).out('has').id()", WIDTH),
        ("g.V(['k0', 'r']).out().out().limit(100).id()", 100),
        ("g.V(['k0', 'r']).out().out()", WIDTH * WIDTH),
        ("g.V(['k0', 'r']).outE().inV().values('n')", WIDTH),
        ("g.V(['k0', 'r']).repeat(out()).times(2).path()", WIDTH * WIDTH),
        ("g.V(['k0', 'nobody'])", 0),
        ("g.E(['k0', 'e1'])", 1),
    ],
)
def test_small_reads_are_answered_on_the_loop(
    streams: GremlinStreams, monkeypatch: pytest.MonkeyPatch, text: str, count: int
) -> None:
    monkeypatch.setattr(execution, "HERE_SECONDS", 60.0)  # however slow the machine is
    monkeypatch.setattr(small, "SECONDS_MAX", 60.0)
    ways, messages = asked(streams, text, {"k": "k0", "i": "r"})
    assert ways == ["loop"]
    assert len(results(messages)) == count


@pytest.mark.parametrize("most", [0, 1, 5, 13, 20, 100])
@pytest.mark.parametrize(
    "text",
    [
        "g.V(['k0', 'r']).out().out().id()",
        "g.V(['k0', 'r']).out().out()",
        "g.V(['k0', 'r']).out().outE().inV().values('n')",
        "g.V(['k0', 'r']).out().both().dedup().count()",
    ],
)
def test_what_is_too_large_goes_on_in_a_thread(
    streams: GremlinStreams, monkeypatch: pytest.MonkeyPatch, text: str, most: int
) -> None:
    _, wanted = asked(streams, text)
    monkeypatch.setattr(small, "ELEMENTS_MAX", most)
    ways, messages = asked(streams, text)
    assert ways == ["loop, thread"]
    assert results(messages) == results(wanted)
    total = "x-ms-total-request-charge"
    assert messages[-1]["status"]["attributes"][total] == wanted[-1]["status"]["attributes"][total]


@pytest.mark.parametrize(
    "text",
    [
        "g.V('r').out().id()",
        "g.V().count()",
        "g.V(['k0', 'r']).property('n', 0)",
        "g.V(['k0', 'r']).out().as('a').addE('also').to('a')",
        "g.inject(1)",
    ],
)
def test_other_scripts_go_to_a_thread(streams: GremlinStreams, text: str) -> None:
    assert not may_be_small(text)
    ways, _ = asked(streams, text)
    assert ways == ["thread"]


@pytest.mark.parametrize(
    "text",
    [
        "g.V(['k0', 'r']).out().executionProfile()",
        "g.V([['k0', 'r'], 'r0']).id()",
        "g.V(['k0', 'r']).V().id()",
        "g.V(['k0', 'r']).inject(1).repeat(union(identity(), identity())).times(16).path().count()",
    ],
)
def test_what_is_seen_while_it_runs(streams: GremlinStreams, text: str) -> None:
    ways, messages = asked(streams, text)
    assert ways == ["loop, thread"]
    assert results(messages)


def test_large_documents_are_read_in_a_thread(
    streams: GremlinStreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the average of the range: a few megabytes would hold up every other client."""
    monkeypatch.setattr(small, "BYTES_MAX", 2000)
    for text, way in (
        ("g.V(['k0', 'r'])", "loop"),
        ("g.V(['k0', 'r']).in().id()", "loop"),
        ("g.V(['k0', 'r']).out()", "loop, thread"),
        ("g.V(['k0', 'r']).outE()", "loop, thread"),
        ("g.V(['k0', 'r'], ['k1', 'r0'], ['k2', 'r1']).id()", "loop"),
    ):
        ways, messages = asked(streams, text)
        assert ways == [way], text
        results(messages)


def test_a_wrong_script_is_answered_at_once(streams: GremlinStreams) -> None:
    ways, (message,) = asked(streams, "g.V(['a', 'b']).nothing()")
    assert (ways, message["status"]["code"]) == (["loop"], 597)
