"""Throughput that the containers of a database share. Changing it needs no splits: its budgets are
not tied to the ranges of any one container."""

from dataclasses import replace

from armillary.encoding.etags import matches
from armillary.errors import PreconditionFailed
from armillary.partition.provisioning.offers import check_kind_change, check_throughput
from armillary.partition.provisioning.partitions import OfferKind
from armillary.store.catalog.accounts import AccountStore
from armillary.store.catalog.records import DatabaseRecord
from armillary.store.throughput.offers import OfferRecord
from armillary.store.throughput.provisioned import minimum, read_offer, save_offer, stored_bytes


def shared_minimum(account: AccountStore, database: DatabaseRecord, offer: OfferRecord) -> int:
    """Rises with the data and the number of containers."""
    containers = account.list_containers(database.id)
    stores = (account.container(database.id, one.id) for one in containers)
    size_bytes = sum(sum(stored_bytes(store).values()) for store in stores)
    return minimum(offer, size_bytes, shared_containers=len(containers))


def change_shared_throughput(
    account: AccountStore,
    database: DatabaseRecord,
    ru: int,
    *,
    kind: OfferKind,
    if_match: str | None = None,
) -> OfferRecord:
    offer = read_offer(account.engine, database.rid)
    if if_match is not None and not matches(if_match, offer.etag):
        raise PreconditionFailed
    check_kind_change(offer.kind, kind)
    check_throughput(ru, offer.kind, minimum=shared_minimum(account, database, offer))
    return save_offer(account.engine, replace(offer, ru=ru))
