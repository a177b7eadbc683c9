"""Every command there is, by name. A writer in another process imports this table by its path."""

from armillary.engine.base import Handler
from armillary.store import (
    bills,
    catalog,
    controls,
    leasing,
    move_records,
    moving,
    notes,
    offers,
    operations,
    rekey_records,
    resources,
    restore,
    seeds,
    upkeep,
)

HANDLERS: dict[str, Handler] = {
    **catalog.HANDLERS,
    **controls.HANDLERS,
    **leasing.HANDLERS,
    **bills.HANDLERS,
    **operations.HANDLERS,
    **upkeep.HANDLERS,
    **move_records.HANDLERS,
    **moving.HANDLERS,
    **offers.HANDLERS,
    **resources.HANDLERS,
    **restore.HANDLERS,
    **seeds.HANDLERS,
    **rekey_records.HANDLERS,
    **notes.HANDLERS,
}
HANDLERS_PATH = "armillary.store.commands:HANDLERS"
