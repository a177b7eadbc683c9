"""What concurrent clients did and what they were answered, as a history that can be judged.

    recorder = Recorder()
    call = recorder.invoke("client 3", "key7", WRITE, "v42")     before the request is sent
    call.returned(version=lsn)                                   it was done
    call.refused()                                               a condition did not hold
    call.unknown()                                               no answer: done now, later or never
    call.forget()                                                certainly without effect, as a 429

`linear.check` and `sessions.check` judge `recorder.history()`. A key is one register: an item,
absent at first unless the check is told otherwise. Values written to a key are all different, so
that a read says which write it saw. One session has one operation under way at a time; after
`unknown` it goes on.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

READ: Final = "read"
WRITE: Final = "write"
"""Puts a value, whatever is there (upsert)."""
CREATE: Final = "create"
"""Puts a value where nothing is; refused: something is there."""
DELETE: Final = "delete"
"""Refused: nothing is there."""
SWAP: Final = "swap"
"""Puts a value where `expected` is (a write under an etag); refused: something else is there."""
KINDS: Final = (READ, WRITE, CREATE, DELETE, SWAP)

Value = str | int | None
"""None: no item."""


@dataclass(frozen=True, slots=True)
class Operation:
    session: str
    key: str
    kind: str
    invoked: int
    returned: int | None
    """None: the outcome is unknown; it may take effect at any time after `invoked`, or never."""
    value: Value = None
    """What a write puts; what a read found."""
    expected: Value = None
    done: bool = True
    """Whether the condition of a create, delete or swap held."""
    version: int | None = None
    """Of a write: its place in the order of the key's writes, as the server says (an LSN)."""

    def __str__(self) -> str:
        end = "?" if self.returned is None else str(self.returned)
        what = {READ: f"read {self.value!r}", DELETE: "delete"}.get(
            self.kind, f"{self.kind} {self.value!r}"
        )
        what += f" over {self.expected!r}" if self.kind == SWAP else ""
        outcome = "" if self.done else ", refused"
        return f"[{self.invoked} … {end}] {self.session}: {what}{outcome} ({self.key})"


class Call:
    """One operation under way; exactly one of its methods is called."""

    def __init__(self, recorder: Recorder, begun: Operation) -> None:
        self._recorder = recorder
        self._begun = begun

    def returned(self, value: Value = None, *, version: int | None = None) -> None:
        """`value`: what a read found."""
        self._end(done=True, value=value, version=version)

    def refused(self) -> None:
        self._end(done=False, value=None, version=None)

    def unknown(self) -> None:
        if self._begun.kind != READ:  # a read without an answer says nothing
            self._recorder.add(self._begun)

    def forget(self) -> None:
        """It certainly did nothing."""

    def _end(self, *, done: bool, value: Value, version: int | None) -> None:
        begun = self._begun
        found = value if begun.kind == READ else begun.value
        self._recorder.add(
            Operation(
                begun.session,
                begun.key,
                begun.kind,
                begun.invoked,
                self._recorder.now(),
                found,
                begun.expected,
                done,
                version,
            )
        )


class Recorder:
    """May be used by many threads."""

    def __init__(self, now: Callable[[], int] = time.monotonic_ns) -> None:
        self.now = now
        self._lock = threading.Lock()
        self._operations: list[Operation] = []

    def invoke(
        self, session: str, key: str, kind: str, value: Value = None, expected: Value = None
    ) -> Call:
        assert kind in KINDS, kind
        return Call(self, Operation(session, key, kind, self.now(), None, value, expected))

    def add(self, operation: Operation) -> None:
        with self._lock:
            self._operations.append(operation)

    def __len__(self) -> int:
        return len(self._operations)

    def history(self) -> list[Operation]:
        with self._lock:
            return sorted(self._operations, key=lambda one: one.invoked)


def by_key(history: Iterable[Operation]) -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = {}
    for one in history:
        found.setdefault(one.key, []).append(one)
    return found


def save(path: Path, history: Iterable[Operation]) -> None:
    """One line of JSON for each, for another checker."""
    with path.open("w", encoding="utf-8") as file:
        for one in history:
            file.write(json.dumps(asdict(one)) + "\n")


def load(path: Path) -> list[Operation]:
    return [Operation(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
