"""The container as one run sees it, for queries and pages: same interface, another place to look.

Queries and paging ask a `ContainerStore` to look at a physical partition. This one looks at the
transaction's overlay, so that a run sees its own writes in everything, and counts what it costs
without charging it: a run is charged as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from armillary.encoding.partition_key import KeyValues
from armillary.engine.base import Reader
from armillary.partition.ranges import Range
from armillary.scripts.transactions.transaction import Transaction
from armillary.store.catalog.state import ContainerState
from armillary.store.items.containers import ContainerStore
from armillary.store.items.requests import Key
from armillary.store.items.routing import Cost

T = TypeVar("T")


class OverlayStore(ContainerStore):
    def __init__(self, transaction: Transaction) -> None:
        store = transaction.store
        super().__init__(
            store.engine,
            store.database,
            store.name,
            random=store.random,
            logical_bytes_max=store.logical_bytes_max,
            profile=store.profile,
        )
        self._transaction = transaction
        self.known_state = transaction.state
        self.functions = store.functions

    def refresh(self) -> ContainerState:
        return self._transaction.state

    def look(
        self,
        epk: bytes,
        read: Callable[[ContainerState, Range, Reader], T],
        *,
        cost: Cost[T] | None = None,
        operation: str = "read",
    ) -> T:
        found = self._transaction.look(read)
        if cost is not None:
            self._transaction.charge_ru += cost(found, self.profile)
        return found

    def look_at_key(
        self,
        values: KeyValues,
        read: Callable[[ContainerState, Key, Reader], T],
        *,
        cost: Cost[T] | None = None,
        operation: str = "read",
    ) -> T:
        key = self._transaction.key
        return self.look(b"", lambda state, owner, reader: read(state, key, reader), cost=cost)

    def charge(self, epk: bytes, ru: float, *, operation: str) -> None:
        self._transaction.charge_ru += ru
