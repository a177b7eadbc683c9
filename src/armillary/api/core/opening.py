"""From an engine and settings to the account that every protocol of one worker serves."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from armillary.api.core.gateway import Gateway
from armillary.api.core.regions import Region, Regions
from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings, told_apart
from armillary.clock import LoopAwareWait, new_random
from armillary.config import Settings, named
from armillary.engine.address import parse_address
from armillary.engine.base import Engine
from armillary.engine.lagged import lagged_replica
from armillary.engine.replicas import Replica
from armillary.partition.provisioning.partitions import PartitionLimits
from armillary.store.catalog.controls import SharedControls
from armillary.store.catalog.records import ensure_catalog
from armillary.store.opening import open_store
from armillary.store.upkeep.housekeeper import ROUND_SECONDS, SPARE_ROUND_SECONDS, Housekeeper


def open_gateway(
    engine: Engine, settings: Settings, *, keys: Sequence[str] = (), first: bool = True
) -> Gateway:
    """`keys`: the lines of a key file; without any, the well-known one of the emulator. `first`:
    this worker looks often for background work, the others only where they have written."""
    limits = PartitionLimits(
        settings.partition.bytes, settings.partition.ru, settings.partition.logical_bytes
    )
    throughput, address = settings.throughput, parse_address(settings.engine.url)
    ensure_catalog(engine)
    shared = SharedControls(engine, address.folder, polls=not address.is_local)
    wait = LoopAwareWait()
    account, ledger = open_store(
        engine,
        address,
        random=new_random(),
        limits=limits,
        enforce=throughput.enforce,
        metered=True,
        burst=throughput.burst,
        serverless=throughput.serverless,
        metadata=throughput.metadata,
        profile=throughput.profile,
        stopwatch=perf_counter,
        range_wait=wait,
        resources_max=settings.api.resources_max,
    )
    full, read_only = told_apart(keys)
    gateway = GatewaySettings(
        keys=full or (EMULATOR_KEY,),
        read_only_keys=read_only,
        login=settings.server.account,
        logs_requests=settings.log.requests,
        consistency=settings.api.consistency,
        cors_origins=settings.api.cors_origins,
        trust_forwarded=settings.api.trust_forwarded,
        accept_entra=settings.api.accept_entra,
        advertise=tuple(f"{one.rstrip('/')}/" for one in settings.server.advertise),
        gateway_merge=settings.query.gateway_merge,
        reads_ids_twice=settings.api.ids == "routing-gateway",
        former_ranges_s=settings.api.former_ranges_s,
        # Fast paths know one copy of the data and one region.
        quick_reads=address.is_local and not settings.regions.endpoints,
        loop_reads=not (address.is_local or settings.regions.endpoints or settings.replicas.urls),
        region=settings.regions.here,
        script_seconds=settings.scripts.seconds,
        script_heap_bytes=settings.scripts.memory,
        script_processes=settings.scripts.processes,
    )
    regions = _open_regions(engine, settings, shared)
    # Every worker knows best where it has written; leases see to it that one of them does the work.
    round_s = ROUND_SECONDS if first else SPARE_ROUND_SECONDS
    housekeeper = Housekeeper(account, ledger=ledger, round_s=round_s)
    return Gateway(
        account, gateway, shared=shared, housekeeper=housekeeper, regions=regions, wait=wait
    )


def _open_regions(engine: Engine, settings: Settings, shared: SharedControls) -> Regions:
    asked = settings.regions
    places = [
        Region(name, f"{url.rstrip('/')}/")
        for name, url in named("regions.endpoints", asked.endpoints).items()
    ]
    replicas: dict[str, Replica] = {}
    try:
        for name, url in named("replicas.urls", settings.replicas.urls).items():
            replicas[name] = engine.open_replica(name, url, readers_max=settings.replicas.readers)
        for name, lag in named("regions.lag_ms", asked.lag_ms).items():
            replicas[name] = lagged_replica(engine, name, int(lag))
    except BaseException:
        for one in replicas.values():
            one.close()
        raise
    return Regions(
        engine,
        shared,
        here=asked.here,
        places=places,
        replicas=replicas,
        staleness_s=asked.staleness_s,
    )
