"""The runtime of an account, made when the first script runs: an account without scripts pays for
nothing but this object."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from armillary import limits
from armillary.store.items.containers import ContainerStore

if TYPE_CHECKING:
    from armillary.scripts.runtime import Runtime


class LazyRuntime:
    def __init__(
        self,
        seconds: float = limits.SCRIPT_SECONDS,
        heap_bytes: int = limits.SCRIPT_HEAP_BYTES,
        processes: int = limits.SCRIPT_CHILDREN,
    ) -> None:
        self._bounds = (seconds, heap_bytes, processes)
        self._made: Runtime | None = None
        self._lock = Lock()

    def get(self) -> Runtime:
        if self._made is None:
            from armillary.scripts.children.bounds import Bounds
            from armillary.scripts.runtime import Runtime

            with self._lock:
                if self._made is None:
                    self._made = Runtime(Bounds(*self._bounds))
        return self._made

    def serve_queries(self, store: ContainerStore) -> ContainerStore:
        """Queries over the container may call its user-defined functions."""

        def opened(names: Sequence[str]) -> Any:
            from armillary.scripts.functions import open_functions

            return open_functions(self.get(), store, names)

        store.functions = opened
        return store

    @property
    def is_used(self) -> bool:
        return self._made is not None

    def close(self) -> None:
        """Idempotent; what is used afterwards begins anew."""
        with self._lock:
            made, self._made = self._made, None
        if made is not None:
            made.close()
