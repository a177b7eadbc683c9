"""Scripts for tests: a container of its own, and procedures run by their text."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

import armillary
from armillary.account import Account
from armillary.container import Container
from armillary.encoding.partition_key import coerce
from armillary.scripts.children.bounds import Bounds
from armillary.scripts.executing import Executed, execute_procedure
from armillary.scripts.runtime import Runtime
from armillary.store.catalog.resources import ResourceRecord

#: Short enough for a test that waits for their end, long enough for a busy machine to begin.
QUICK = Bounds(seconds=0.2, heap_bytes=16 * 2**20)
#: For scripts that are to end by themselves, however busy the machine is.
CALM = Bounds(seconds=600.0)


class World:
    """A container, and what runs scripts on it."""

    def __init__(self, account: Account, container: Container, bounds: Bounds) -> None:
        self.account = account
        self.container = container
        self.runtime = Runtime(bounds)

    def run(self, text: str, *arguments: Any, pk: Any = "a", **options: Any) -> Any:
        """The response body of a procedure that is not kept."""
        return orjson.loads(self.execute(text, *arguments, pk=pk, **options).response)

    def execute(self, text: str, *arguments: Any, pk: Any = "a", **options: Any) -> Executed:
        return self.begin(text, *arguments, pk=pk, **options).result()

    def begin(self, text: str, *arguments: Any, pk: Any = "a", **options: Any) -> Future[Executed]:
        return execute_procedure(
            self.runtime,
            self.container._store,
            script(text),
            coerce(pk),
            orjson.dumps(arguments),
            **options,
        )


def script(text: str, id: str = "p") -> ResourceRecord:
    return ResourceRecord("sproc", "", id, text[:200], {"id": id, "body": text}, "", 0, 0)


@contextmanager
def world(
    address: str | Path = ":memory:", bounds: Bounds | None = None, **options: Any
) -> Iterator[World]:
    with armillary.open(address, **options) as account:
        container = account.create_database("d").create_container("c", "/pk")
        made = World(account, container, bounds or CALM)
        try:
            yield made
        finally:
            made.runtime.close()
