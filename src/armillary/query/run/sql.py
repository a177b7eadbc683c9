"""Run a SQL query, one page at a time: the door for the HTTP API, the CLI and Python callers.

    run_query    the answer of the whole container (or of one key), merged from all its parts
    run_range    the answer of one part of the hash space, for clients that merge themselves

Text becomes a plan here (kept, with what is known about it); `pages.py` runs it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Any

from armillary.budget import Budget
from armillary.encoding.partition_key import KeyValues
from armillary.limits import QUERIES_KEPT_MAX, QUERY_KEPT_CHARACTERS_MAX
from armillary.query.access.order import has_order_index
from armillary.query.expr.queries import BoundQuery
from armillary.query.plan.computed import with_computed
from armillary.query.plan.nodes import Plan
from armillary.query.problems import QueryError, RefusedQuery
from armillary.query.run import pages
from armillary.query.run.consume import Clock
from armillary.query.run.continuation import query_digest
from armillary.query.run.pages import NO_PARAMETERS, QueryPage
from armillary.query.sql.binder import bind
from armillary.query.sql.computed import computed_of
from armillary.query.sql.parser import parse
from armillary.query.sql.planning import is_fixed, make_plan
from armillary.store.items.containers import ContainerStore
from armillary.values import JSON

NO_COMPOSITE = (
    "The order by query does not have a corresponding composite index that it can be served from."
)

__all__ = ["QueryPage", "bound_query", "plan_of", "run_plan", "run_query", "run_range"]


def bound_query(text: str) -> BoundQuery:
    """The text parsed and bound. Raises BadQuery."""
    return _bound_query(text) if len(text) <= QUERY_KEPT_CHARACTERS_MAX else bind(parse(text))


@lru_cache(maxsize=QUERIES_KEPT_MAX)
def _bound_query(text: str) -> BoundQuery:
    return bind(parse(text))


@lru_cache(maxsize=QUERIES_KEPT_MAX)
def _fixed_plan(text: str) -> Plan | None:
    """The plan of a text, if it is the same for all parameters. Literals are part of a text: who
    asks often with other values gives parameters.
    """
    bound = bound_query(text)
    return make_plan(bound, NO_PARAMETERS) if is_fixed(bound) else None


def plan_of(text: str, parameters: Mapping[str, JSON]) -> Plan:
    """Kept with what is known about it, so that a repeated query pays for its execution only."""
    kept = _fixed_plan(text) if len(text) <= QUERY_KEPT_CHARACTERS_MAX else None
    return kept or make_plan(bound_query(text), parameters)


def run_query(
    store: ContainerStore,
    text: str,
    parameters: Mapping[str, JSON] = NO_PARAMETERS,
    *,
    partition_key: KeyValues | None = None,
    continuation: str | None = None,
    max_items: int = -1,
    page_per_range: bool = False,
    texts: bool = False,
    clock: Clock = time.monotonic,
    random: Random | None = None,
    budget: Budget | None = None,
) -> QueryPage:
    """One page of the query's answer over everything, or over one partition key (or the beginning
    of a hierarchical one). `page_per_range`: no page has rows of two physical partitions, unless
    they have to be merged. `texts`: rows as JSON, see `pages.run_plan`.
    """
    plan = plan_of(text, parameters)
    return run_plan(
        store,
        plan,
        parameters,
        text=text,
        query=query_digest(text),
        partition_key=partition_key,
        continuation=continuation,
        max_items=max_items,
        page_per_range=page_per_range,
        texts=texts,
        clock=clock,
        random=random,
        budget=budget,
    )


def run_range(
    store: ContainerStore,
    text: str,
    parameters: Mapping[str, JSON] = NO_PARAMETERS,
    *,
    start: bytes,
    end: bytes,
    key: KeyValues | None = None,
    continuation: str | None = None,
    max_items: int = -1,
    texts: bool = False,
    clock: Clock = time.monotonic,
    random: Random | None = None,
    budget: Budget | None = None,
) -> QueryPage:
    """One page of the query's answer over the hashes from `start` to `end` alone."""
    plan = plan_of(text, parameters)
    return run_plan(
        store,
        plan,
        parameters,
        text=text,
        # Clients that merge sorted ranges resume them with another filter in the text.
        query=b"" if plan.order else query_digest(text),
        start=start,
        end=end,
        partition_key=key,
        continuation=continuation,
        max_items=max_items,
        texts=texts,
        clock=clock,
        random=random,
        budget=budget,
    )


def run_plan(
    store: ContainerStore, plan: Plan, parameters: Mapping[str, JSON] = NO_PARAMETERS, **how: Any
) -> QueryPage:
    """`pages.run_plan` with the computed properties of the container, whose definitions are SQL."""
    plan = with_computed(plan, computed_of(store.state.definition.document))
    _check_order(plan, store)
    return pages.run_plan(store, plan, parameters, **how)


def _check_order(plan: Plan, store: ContainerStore) -> None:
    """Several sort keys need their composite index; the policy may be newer than our picture."""
    if plan.fold is not None or not plan.reads_items or len(plan.order) < 2:
        return
    known = has_order_index(plan, store.state.plan)
    if not known and not has_order_index(plan, store.refresh().plan):
        raise RefusedQuery.of([QueryError(None, NO_COMPOSITE)])
