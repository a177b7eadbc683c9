"""The container of a request on the short way, as its link names it: what `reads.py`,
`queries.py` and `creates.py` keep a template for.

Not hot: once per container and state of it, and after every doubt.
"""

from __future__ import annotations

from collections.abc import Mapping

from armillary.api.core.gateway import Gateway
from armillary.errors import DbError
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore


def known_store(gateway: Gateway, names: bytes) -> ContainerStore | None:
    """`names`: dbs/<database>/colls/<container>. None: the long way has not met it yet."""
    _, database, _, name = names.decode().split("/")
    return gateway.known_container(database, name)


def known_state(gateway: Gateway, names: bytes) -> tuple[ContainerStore, ContainerState] | None:
    store = known_store(gateway, names)
    try:
        return None if store is None else (store, store.state)
    except DbError:
        return None


def header_lines(headers: Mapping[str, str | None]) -> str:
    return "".join(f"{name}: {text}\r\n" for name, text in headers.items() if text is not None)
