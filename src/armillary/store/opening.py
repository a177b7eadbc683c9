"""The composition root: from an engine and its address to the account over it, metered. In process,
server, simulator and tests differ only in what they pass in."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from armillary.engine.address import Address
from armillary.engine.base import Engine
from armillary.limits import DATABASES_AND_CONTAINERS
from armillary.partition.budgets.ledger import Ledger
from armillary.partition.budgets.opening import open_ledger
from armillary.partition.provisioning.partitions import PartitionLimits
from armillary.partition.request_units import PROFILES
from armillary.partition.usage.statistics import open_statistics
from armillary.store.catalog.accounts import AccountStore
from armillary.store.throughput.meter import Enforce, Meter


class Opened(NamedTuple):
    store: AccountStore
    ledger: Ledger | None
    """None: nothing is metered."""


def open_store(
    engine: Engine,
    address: Address,
    *,
    random: Random,
    limits: PartitionLimits,
    enforce: Enforce,
    metered: bool,
    burst: bool = False,
    serverless: bool = False,
    metadata: bool = False,
    profile: str = "default",
    stopwatch: Callable[[], float] | None = None,
    wait: Callable[[float], None] = time.sleep,
    range_wait: Callable[[float], None] = time.sleep,
    resources_max: int = DATABASES_AND_CONTAINERS,
) -> Opened:
    """`metered`: count what is done, also where nothing is refused. `wait` passes the time
    while waiting for another process, `range_wait` while a request waits for a frozen range."""
    meter = ledger = None
    if metered:
        ledger = open_ledger(address, enforce)
        meter = Meter(
            engine,
            ledger,
            statistics=open_statistics(address, engine.now_ms()),
            enforce=enforce,
            burst=burst,
            serverless=serverless,
            metadata=metadata,
            limits=limits,
            stopwatch=stopwatch,
        )
    store = AccountStore(
        engine,
        random=random,
        limits=limits,
        classic=profile == "classic",
        profile=PROFILES[profile],
        serverless=serverless,
        meter=meter,
        wait=wait,
        range_wait=range_wait,
        resources_max=resources_max,
    )
    return Opened(store, ledger)
