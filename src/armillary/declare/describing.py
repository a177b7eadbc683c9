"""A running account as declarations: what `armillary.toml` would have to say to make it again.

What the service fills in by itself (a default policy) is left out, so that the result is what a
person would have written. Items are not part of it.
"""

from collections.abc import Iterator
from typing import Any

from armillary.clock import new_random
from armillary.declare.declared import DeclaredContainer, DeclaredDatabase, DeclaredScript, Place
from armillary.engine.opening import is_there, open_engine
from armillary.errors import BadInput, NotFound
from armillary.partition.provisioning.offers import RULES
from armillary.scripts.scripts import RESOURCES
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.definitions import parse_container
from armillary.store.catalog.records import ContainerRecord, DatabaseRecord
from armillary.store.catalog.resources import ResourceStore
from armillary.store.catalog.tables import api_of
from armillary.store.commands import HANDLERS
from armillary.store.rows.layout import PACKED, SEALED
from armillary.store.throughput.provisioned import read_offer

NOWHERE = Place("", 0)


def describe_address(address: str) -> tuple[DeclaredDatabase, ...]:
    """Of the account in a folder or a PostgreSQL database, which has to be there."""
    if not is_there(address):
        raise BadInput(f"There is no account in {address}.")
    engine = open_engine(address, HANDLERS, packed=PACKED, sealed=SEALED)
    try:
        return describe(AccountStore(engine, random=new_random()))
    finally:
        engine.close()


def describe(account: AccountStore) -> tuple[DeclaredDatabase, ...]:
    return tuple(_database(account, one) for one in account.list_databases())


def _database(account: AccountStore, database: DatabaseRecord) -> DeclaredDatabase:
    throughput, autoscale_max = _offer(account, database.rid, own=True)
    records = sorted(account.list_containers(database.id), key=lambda one: one.id)
    shares = throughput is not None or autoscale_max is not None
    containers = tuple(_container(account, one, shares) for one in records)
    return DeclaredDatabase(database.id, NOWHERE, throughput, autoscale_max, containers)


def _container(account: AccountStore, record: ContainerRecord, shares: bool) -> DeclaredContainer:
    throughput, autoscale_max = _offer(account, record.rid, own=shares)
    body = essential(record.definition)
    return DeclaredContainer(
        record.id,
        body,
        NOWHERE,
        throughput,
        autoscale_max,
        fixed=record.fixed,
        scripts=tuple(_scripts(account, record)),
        api=api_of(record),
    )


def _scripts(account: AccountStore, record: ContainerRecord) -> Iterator[DeclaredScript]:
    for kind, resource in RESOURCES.items():
        for one in ResourceStore(account.engine, resource, record.rid).list():
            yield DeclaredScript(kind, one.body, NOWHERE)


def essential(definition: dict[str, Any]) -> dict[str, Any]:
    """The definition without what is there by default."""
    plain = parse_container({"id": definition["id"], "partitionKey": definition["partitionKey"]})
    return {
        name: value
        for name, value in definition.items()
        if name in ("id", "partitionKey") or plain.document.get(name) != value
    }


def _offer(account: AccountStore, rid: str, *, own: bool = False) -> tuple[int | None, int | None]:
    """(manual RU/s, maximum of autoscale), as a person would write them."""
    try:
        offer = read_offer(account.engine, rid)
    except NotFound:
        return None, None
    if offer.kind == "autoscale":
        return None, offer.ru
    # The smallest is what a container gets without asking; a database shares only what it asks for,
    # and in one that shares a container has its `own` only if it asks.
    return (None if offer.ru == RULES["manual"].floor and not own else offer.ru), None
