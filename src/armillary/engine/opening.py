"""Open the engine that an address names (`address.py`): memory, LMDB, or PostgreSQL, which needs
the `postgres` extra.

Drivers are imported only by who uses them, so that an extra stays optional.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from armillary.clock import Clock
from armillary.engine.address import parse_address
from armillary.engine.base import Durability, Engine, Handlers
from armillary.engine.lmdb.format import STAMP_NAME
from armillary.errors import BadInput, NotSupported
from armillary.version import install_hint


def is_there(given: str) -> bool:
    """Whether a folder holds an account. For who only looks: opening would make one. A database is
    taken to be there; opening it says if it is not."""
    folder = parse_address(given).folder
    return folder is None or (folder / STAMP_NAME).is_file()


def open_engine(
    given: str | Path,
    handlers: Handlers,
    *,
    durability: Durability = "full",
    clock: Clock | None = None,
    packed: bytes | None = None,
    sealed: bytes = b"",
    keep_format: bool = False,
    writer_process: tuple[str, str] | None = None,
    **options: Any,
) -> Engine:
    """`options` are those of the engine that the address names. `packed`, `sealed` and
    `keep_format` are for LMDB; the others have no runs and their own checksums. So is
    `writer_process`, the import paths of handlers and codecs: it writes in a process of its own,
    so that preparing and writing have a core each."""
    if durability not in ("full", "relaxed"):
        raise BadInput(f"The durability is full or relaxed, not {durability!r}.")
    address = parse_address(given)
    if address.kind == "memory":
        from armillary.engine.memory import MemoryEngine

        return MemoryEngine(handlers, clock=clock, **options)
    if address.kind == "postgres":
        return _open_postgres(address.text, handlers, {"durability": durability, **options})
    if writer_process is not None:
        from armillary.engine.lmdb.process.worker import open_with_writer_process

        return open_with_writer_process(
            Path(address.text),
            *writer_process,
            durability=durability,
            packed=packed,
            sealed=sealed,
            **options,
        )
    from armillary.engine.lmdb.engine import LmdbEngine

    return LmdbEngine(
        Path(address.text),
        handlers,
        durability=durability,
        clock=clock,
        packed=packed,
        sealed=sealed,
        keep_format=keep_format,
        **options,
    )


def _open_postgres(address: str, handlers: Handlers, options: dict[str, Any]) -> Engine:
    try:
        from armillary.engine.postgres import engine as postgres
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("psycopg"):
            raise
        raise NotSupported(f"PostgreSQL needs its driver: {install_hint('postgres')}.") from error
    return cast(Engine, postgres.PostgresEngine(address, handlers, **options))
