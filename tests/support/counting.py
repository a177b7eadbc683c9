"""The smallest honest workload for engine tests: commands that count in the fence.

`add` takes the next number from the meta row, as an LSN is taken, and logs its data under it; so a
lost update is a hole or a double in the log. Run as a program it adds from another process:

    python -m tests.support.counting <address> <space> <how many> <label>
"""

from __future__ import annotations

import sys
from typing import Any

from armillary.engine.base import META_KEY, Command, Engine, Handler, Handlers, Writer
from armillary.engine.opening import open_engine

LOG = b"\x91"
LOG_END = b"\x92"


def log_key(number: int) -> bytes:
    return LOG + b"%08d" % number


def _add(writer: Writer, data: bytes) -> int:
    number = int(writer.meta) + 1
    writer.put(META_KEY, b"%d" % number)
    writer.put(log_key(number), data)
    return number


def _move(writer: Writer, data: tuple[bytes, bytes]) -> None:
    source, target = data
    value = writer.get(source)
    assert value is not None
    writer.delete(source)
    writer.put(target, value)


def _read_then_add(writer: Writer, data: bytes) -> int:
    writer.get(b"\x77never announced")
    return _add(writer, data)


def _refuse_after_write(writer: Writer, data: Any) -> None:
    writer.put(b"\x66spoiled", b"")
    raise ValueError("refused")


COUNTING: Handlers = {
    "add": Handler(_add),
    "move": Handler(_move, keys=lambda data: [data[0]]),
    "read_then_add": Handler(_read_then_add),
    "refuse_after_write": Handler(_refuse_after_write),
}


def logged_after(engine: Engine, space: int, number: int) -> list[int]:
    """What a reader of the change feed does: everything after the last number it saw."""
    with engine.read(space) as reader:
        return [int(key[1:]) for key, _ in reader.scan(log_key(number + 1), LOG_END)]


def main(address: str, space: str, count: str, label: str) -> None:
    engine = open_engine(address, COUNTING)
    try:
        for _ in range(int(count)):
            engine.run(int(space), Command("add", label.encode()))
    finally:
        engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
