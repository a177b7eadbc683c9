"""Every command there is, by name. A writer in another process imports this table by its path."""

from armillary.engine.base import Handler
from armillary.engine.messages import Codec
from armillary.store import (
    bills,
    catalog,
    controls,
    leasing,
    move_records,
    moving,
    offers,
    operations,
    rekey_records,
    resources,
    restore,
    seeds,
    upkeep,
)
from armillary.store.requests import Context, Done, Key, Op

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
}
HANDLERS_PATH = "armillary.store.commands:HANDLERS"

#: Commands whose data goes to the writer process without a pickle.
CODECS: dict[str, Codec] = {
    operations.WRITE: Codec(tuple[Context, Key, list[Op]], Done),
}
