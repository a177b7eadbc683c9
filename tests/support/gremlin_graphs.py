"""Small graphs that tests know by heart, and how to run a script on any graph."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from armillary.api.gremlin.evaluation import compile_script, new_run, results
from armillary.api.gremlin.graph.base import Graph
from armillary.budget import unbounded

#: TinkerPop's graph of six: people, what they made, and two of them in one country.
MODERN = (
    "g.addV('person').property('id','1').property('pk','a').property('name','marko').property('age',29)",
    "g.addV('person').property('id','2').property('pk','a').property('name','vadas').property('age',27)",
    "g.addV('software').property('id','3').property('pk','b').property('name','lop').property('lang','java')",
    "g.addV('person').property('id','4').property('pk','b').property('name','josh').property('age',32)",
    "g.addV('software').property('id','5').property('pk','c').property('name','ripple').property('lang','java')",
    "g.addV('person').property('id','6').property('pk','c').property('name','peter').property('age',35)",
    "g.V('1').addE('knows').to(g.V('2')).property('id','7').property('weight',0.5)",
    "g.V('1').addE('knows').to(g.V('4')).property('id','8').property('weight',1.0)",
    "g.V('1').addE('created').to(g.V('3')).property('id','9').property('weight',0.4)",
    "g.V('4').addE('created').to(g.V('5')).property('id','10').property('weight',1.0)",
    "g.V('4').addE('created').to(g.V('3')).property('id','11').property('weight',0.4)",
    "g.V('6').addE('created').to(g.V('3')).property('id','12').property('weight',0.2)",
)  # fmt: skip


def evaluate(
    graph: Graph, text: str, bindings: Mapping[str, Any] | None = None, *, strict: bool = True
) -> list[Any]:
    program = compile_script(text, bindings, strict=strict)
    run = new_run(program, graph, unbounded(), Random(1), strict=strict)
    return [one for batch in results(program, run) for one in batch]


def fill(graph: Graph, scripts: tuple[str, ...] = MODERN) -> Graph:
    for text in scripts:
        evaluate(graph, text)
    return graph
