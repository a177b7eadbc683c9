"""Every command there is, by name. A writer in another process imports this table by its path."""

from armillary.engine.base import Handler
from armillary.store import catalog, operations, upkeep

HANDLERS: dict[str, Handler] = {**catalog.HANDLERS, **operations.HANDLERS, **upkeep.HANDLERS}
HANDLERS_PATH = "armillary.store.commands:HANDLERS"
