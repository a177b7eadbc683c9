"""Autoscale at work: what throughput a container or database is at, and what its hours are billed.

    admission   always by the maximum: it is usable at once (`metering.py`)
    level       of each physical partition, from its consumption second by second; the sum counts
    bill        the highest level of an hour, kept in the catalog (`bills.py`)

The seconds are those that the meter counts anyway, of all processes on a data folder and all
servers on a database. They are compared with what the partition has now. Without a meter
(`enforce` off) nothing is known, and everything is at the floor. A database whose containers share
is measured as a whole.
"""

from dataclasses import dataclass
from operator import add

from armillary.engine.base import CATALOG_SPACE, Command, Engine
from armillary.partition.provisioning.autoscale import HOUR_SECONDS, HourBill, Level, level_of
from armillary.partition.provisioning.offers import AUTOSCALE_FLOOR
from armillary.partition.usage.consumption import PartitionHeat
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.records import DatabaseRecord
from armillary.store.items.containers import ContainerStore
from armillary.store.throughput.bills import JOB, find_bills
from armillary.store.throughput.offers import OfferRecord, find_offer
from armillary.store.upkeep.leases import Round


@dataclass(frozen=True, slots=True)
class Autoscale:
    """RU/s throughout."""

    maximum: int
    current: float
    """Now: between a tenth of the maximum and the maximum."""
    hour: float
    """The highest of this hour so far: what it will be billed at least."""
    billed: tuple[HourBill, ...]
    """Hours before this one that reached more than the floor, oldest first."""


def container_levels(store: ContainerStore, offer: OfferRecord) -> list[Level]:
    """Of a container with throughput of its own: each physical partition by itself."""
    state, now_s = store.refresh(), store.now_s()
    shares = offer.distribution([one.ordinal for one in state.table.ranges]).shares
    heat = {} if store.meter is None else store.meter.heat(state)
    return [_level(ru, [heat[one]] if one in heat else [], now_s) for one, ru in shares]


def database_levels(
    account: AccountStore, database: DatabaseRecord, offer: OfferRecord
) -> list[Level]:
    """Of a database: all that its containers share, as one."""
    heats: list[PartitionHeat] = []
    for record in account.list_containers(database.id):
        with account.engine.read(CATALOG_SPACE) as reader:
            is_sharing = find_offer(reader, record.rid) is None
        if is_sharing and account.meter is not None:
            state = account.container(database.id, record.id).refresh()
            heats += account.meter.heat(state).values()
    return [_level(offer.ru, heats, account.engine.now_ms() // 1000)]


def autoscale(engine: Engine, offer: OfferRecord, levels: list[Level]) -> Autoscale:
    with engine.read(CATALOG_SPACE) as reader:
        bills = find_bills(reader, offer.owner).hours
    hour = engine.now_ms() // 1000 // HOUR_SECONDS
    known = max((one.ru for one in bills if one.hour == hour), default=0.0)
    floor = offer.ru / AUTOSCALE_FLOOR
    return Autoscale(
        maximum=offer.ru,
        current=max(floor, sum(one.current for one in levels)),
        hour=max(floor, known, sum(one.peak for one in levels)),
        billed=tuple(one for one in bills if one.hour < hour),
    )


def bill_container(store: ContainerStore, leases: Round) -> None:
    offer = _autoscale_offer(store.engine, store.state.record.rid)
    if offer is not None and store.meter is not None:
        _keep_bills(store.engine, offer, container_levels(store, offer), leases)


def bill_database(account: AccountStore, database: DatabaseRecord, leases: Round) -> None:
    offer = _autoscale_offer(account.engine, database.rid)
    if offer is not None and account.meter is not None:
        _keep_bills(account.engine, offer, database_levels(account, database, offer), leases)


def _autoscale_offer(engine: Engine, owner_rid: str) -> OfferRecord | None:
    with engine.read(CATALOG_SPACE) as reader:
        offer = find_offer(reader, owner_rid)
    return offer if offer is not None and offer.kind == "autoscale" else None


def _keep_bills(engine: Engine, offer: OfferRecord, levels: list[Level], leases: Round) -> None:
    """This hour's peak and those of the hours before that are still known, if they rose."""
    hours: dict[int, float] = {}
    for level in levels:
        for one in level.hours:
            hours[one.hour] = hours.get(one.hour, 0.0) + one.ru
    with engine.read(CATALOG_SPACE) as reader:
        known = {one.hour: one.ru for one in find_bills(reader, offer.owner).hours}
    floor = offer.ru / AUTOSCALE_FLOOR
    risen = [(at, ru) for at, ru in hours.items() if ru > max(floor, known.get(at, 0.0)) + 0.5]
    if risen and leases.may(JOB):
        data = (offer.owner, risen, leases.owner, leases.epoch(JOB))
        engine.run(CATALOG_SPACE, Command("autoscale.bill", data))


def _level(maximum: float, heats: list[PartitionHeat], now_s: int) -> Level:
    if not heats:
        return level_of(maximum, now_s, (), now_s)
    seconds = list(heats[0].seconds)
    for heat in heats[1:]:
        seconds = list(map(add, seconds, heat.seconds))
    return level_of(maximum, heats[0].first_second, seconds, now_s)
