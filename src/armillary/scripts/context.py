"""What a script of each kind is given: links, request, response. Facts: scripts 2.2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from armillary.budget import Budget, unbounded
from armillary.scripts.running import Asked, Result
from armillary.scripts.transactions.operations import Operations
from armillary.scripts.transactions.transaction import Transaction
from armillary.values import JSON

OPERATION_TYPES: Final = {
    "create": "Create",
    "replace": "Replace",
    "upsert": "Upsert",
    "delete": "Delete",
}


@dataclass(slots=True)
class ScriptContext:
    """A run inside a transaction."""

    name: str
    transaction: Transaction
    alt_link: str
    request: dict[str, JSON]
    request_writable: tuple[str, ...] = ()
    response: dict[str, JSON] | None = None
    logging: bool = False
    allowed_ru: Callable[[], float] = field(default=lambda: float("inf"))
    budget: Budget = field(default_factory=unbounded)
    _operations: Operations | None = None

    def setup(self) -> dict[str, Any]:
        state = self.transaction.state
        return {
            "self_link": state.self_link,
            "alt_link": self.alt_link,
            "usage": usage(self.transaction),
            "quota": quota(self.transaction),
            "has_response": self.response is not None,
            "request": self.request,
            "request_writable": self.request_writable,
            "response": self.response or {},
            "logging": self.logging,
            "geography": state.told["geography"],
        }

    def execute(self, asked: Asked) -> Result:
        if self._operations is None:
            self._operations = Operations(
                self.transaction, self.transaction.state.self_link, self.alt_link, self.budget
            )
        return self._operations.execute(asked)

    def accepts(self) -> bool:
        return self.transaction.charge_ru < self.allowed_ru()


def usage(transaction: Transaction) -> str:
    return "documentSize=0;documentsSize=0;documentsCount=-1;collectionSize=0;"


def quota(transaction: Transaction) -> str:
    size_kb = transaction.store.logical_bytes_max // 1024
    return f"documentSize=2048;documentsSize={size_kb};documentsCount=-1;collectionSize={size_kb};"


def alt_link_of(transaction: Transaction) -> str:
    return f"dbs/{transaction.store.database}/colls/{transaction.store.name}"
