"""Cosmos DB in tests: the official SDK over a database in the same process, or a server to start.

    from armillary.testing import Cosmos

    with Cosmos(containers={"orders": "/customerId"}) as cosmos:
        client = cosmos.client()  # azure.cosmos.CosmosClient; no socket, no server

With pytest the fixtures of `pytest_plugin` do this for every test. `start_server` is for clients
that need a port: another process, another language. See docs/testing.md.

Names are looked up when first asked for: pytest imports this package at every start, also where no
test needs a database.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from armillary.testing.inprocess import Cosmos
    from armillary.testing.process import Server, start_server

__all__ = ["Cosmos", "Server", "start_server"]

_HOMES = {
    "Cosmos": "armillary.testing.inprocess",
    "Server": "armillary.testing.process",
    "start_server": "armillary.testing.process",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
