"""Every command there is, by name. A writer in another process imports this table by its path."""

from armillary.engine.base import Handler
from armillary.engine.messages import Codec
from armillary.store.catalog import controls, notes, resources, restore, seeds
from armillary.store.catalog import records as catalog
from armillary.store.inserts import handler as inserts
from armillary.store.inserts import loads
from armillary.store.inserts.requests import NewItems
from armillary.store.items import atomic, operations, script_writes
from armillary.store.items.requests import Context, Done, Failed, Key, Op, Refusal
from armillary.store.migration import records as rekey_records
from armillary.store.moves import handlers as moving
from armillary.store.moves import records as move_records
from armillary.store.snapshots import holds
from armillary.store.throughput import bills, offers
from armillary.store.upkeep import leases as leasing
from armillary.store.upkeep import pieces as upkeep

HANDLERS: dict[str, Handler] = {
    **catalog.HANDLERS,
    **controls.HANDLERS,
    **leasing.HANDLERS,
    **bills.HANDLERS,
    **operations.HANDLERS,
    **atomic.HANDLERS,
    **holds.HANDLERS,
    **inserts.HANDLERS,
    **loads.HANDLERS,
    **upkeep.HANDLERS,
    **move_records.HANDLERS,
    **moving.HANDLERS,
    **offers.HANDLERS,
    **resources.HANDLERS,
    **restore.HANDLERS,
    **script_writes.HANDLERS,
    **seeds.HANDLERS,
    **rekey_records.HANDLERS,
    **notes.HANDLERS,
}
#: Where a writer in another process finds the tables.
HANDLERS_PATH = "armillary.store.commands:HANDLERS"
CODECS_PATH = "armillary.store.commands:CODECS"

#: Commands whose data goes to the writer process without a pickle.
CODECS: dict[str, Codec] = {
    operations.BULK: Codec(
        tuple[list[tuple[Key, Op]], bool],
        tuple[list[Done | None], dict[int, Refusal]],
        Context,
    ),
    operations.WRITE: Codec(tuple[Key, list[Op]], Done, Context),
    atomic.ATOMIC: Codec(tuple[Key, list[Op]], tuple[list[Done], Failed | None], Context),
    inserts.INSERT: Codec(tuple[Key, NewItems], tuple[Failed | None], Context),
    loads.LOAD: Codec(tuple[loads.Load, bool], loads.Loaded, Context),
    script_writes.COMMIT: Codec(script_writes.Commit, list[Done]),
}
