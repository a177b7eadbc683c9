"""Armillary: a partitioned, multi-model database that speaks the Azure Cosmos DB protocols."""

import importlib
from typing import TYPE_CHECKING, Any

from armillary.version import VERSION

if TYPE_CHECKING:
    from armillary.account import Account, Database
    from armillary.account import open_account as open
    from armillary.container import Container
    from armillary.values import UNDEFINED

__version__ = VERSION

__all__ = ["UNDEFINED", "Account", "Container", "Database", "__version__", "open"]

#: Name → where it is. Looked up when first asked for: a server imports this package in each of its
#: processes, and not one of them needs all of it at once.
_HOMES = {
    "UNDEFINED": ("armillary.values", "UNDEFINED"),
    "Account": ("armillary.account", "Account"),
    "Container": ("armillary.container", "Container"),
    "Database": ("armillary.account", "Database"),
    "open": ("armillary.account", "open_account"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value
