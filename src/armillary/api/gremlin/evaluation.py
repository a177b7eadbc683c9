"""A program on a graph: results as they come.

text, bindings ─▶ parse ─▶ build ─▶ run ─▶ batches of results
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from random import Random
from typing import Any

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.graph.base import Graph
from armillary.api.gremlin.language.parser import parse
from armillary.api.gremlin.machine.running import Run, run_all
from armillary.api.gremlin.machine.traverser import Traverser
from armillary.api.gremlin.steps.building import Builder, Program, walk
from armillary.api.gremlin.steps.moves import ElementsStep
from armillary.api.gremlin.steps.side_effects import InjectStep
from armillary.api.gremlin.steps.writes import AddEdgeStep, AddVertexStep
from armillary.budget import Budget
from armillary.limits import GREMLIN_BATCH_TRAVERSERS


def compile_script(
    text: str, bindings: Mapping[str, Any] | None = None, *, strict: bool = True
) -> Program:
    return Builder(bindings or {}, strict).program(parse(text))


def new_run(
    program: Program, graph: Graph, budget: Budget, random: Random, *, strict: bool = True
) -> Run:
    if program.partition_name not in (None, graph.partition_name):
        raise ScriptError(
            f"The partition key of this graph is '{graph.partition_name}', "
            f"not '{program.partition_name}'.",
        )
    run = Run(
        graph,
        budget,
        random,
        tracked=program.tracked,
        strict=strict,
        system=program.system,
        partitions=program.partitions,
        write_partition=program.write_partition,
    )
    for step in walk(program.steps):
        step.prepare(run)
    return run


def results(program: Program, run: Run) -> Iterator[list[Any]]:
    """Batches of results, as the traversal makes them. One that counts for millions comes in
    pieces."""
    first, *rest = program.steps
    for batch in run_all(rest, _first(first, run), run):
        count = len(batch)
        if count <= GREMLIN_BATCH_TRAVERSERS and sum([one.bulk for one in batch]) == count:
            run.budget.spend(count)  # HOT: each is one result
            yield [one.object for one in batch]
            continue
        objects = (one.object for one in batch for _ in range(one.bulk))
        while piece := list(islice(objects, GREMLIN_BATCH_TRAVERSERS)):
            run.budget.spend(len(piece))
            yield piece


def _first(step: Any, run: Run) -> Iterator[list[Traverser]]:
    note, clock = run.note, run.clock
    if isinstance(step, ElementsStep):
        pages = step.first(run)
    elif isinstance(step, InjectStep | AddVertexStep | AddEdgeStep):
        pages = iter([step.first(run)])
    else:
        raise AssertionError(step.name)
    if note is None or clock is None:
        yield from pages
        return
    while True:
        began = clock()
        page = next(pages, None)
        if page is None:
            return
        note(step, len(page), clock() - began)
        yield page
