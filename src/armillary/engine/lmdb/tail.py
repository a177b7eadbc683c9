"""What readers see of the redo log: its records on top of the snapshot that they belong to.

    head (base, end) ─▶ view: { space: { key: value } } ─▶ snapshot ─▶ is its number the base?
                                                                        yes: through the view
                                                                        no: it has all of it

The head is read before the snapshot begins, so a snapshot is never older than the base. One that is
newer was committed with every record of the view in it. LMDB takes the number of a snapshot and its
roots one after the other; that they are of one state is sure while the head still has that base.

A view is made by the first reader after a group, from the new records alone, and never changes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from armillary.engine.base import META_KEY, Reader
from armillary.engine.lmdb.redo_log import RedoLog
from armillary.engine.overlay import OverlayWriter
from armillary.errors import DataDamaged

LOOKS_MAX: Final = 10_000  # at a head that moves on while its records are read


class Layer:
    """The changes of one space, and their keys in order once they are asked for."""

    __slots__ = ("_keys", "changes")

    def __init__(self, changes: Mapping[bytes, bytes | None]) -> None:
        self.changes = changes
        #: Some of the keys, in order, and the others. Replaced as one: several threads may ask.
        self._keys: tuple[list[bytes], list[bytes]] = [], [*changes]

    def after(self, new: dict[bytes, bytes | None]) -> Layer:
        made, known = Layer({}), self.changes
        ordered, others = self._keys
        made.changes = {**known, **new}
        made._keys = ordered, [*others, *(key for key in new if key not in known)]
        return made

    # HOT: every query while writes go to the redo log.
    def order(self) -> list[bytes]:
        ordered, others = self._keys
        if others:
            # A new list, because the layer before may have the older one. Mostly sorted, and so
            # quickly sorted.
            ordered = [*ordered, *others]
            ordered.sort()
            self._keys = ordered, []
        return ordered


class View:
    __slots__ = ("base", "end", "layers", "mark")

    def __init__(self, base: int, end: int, mark: bytes, layers: dict[int, Layer]) -> None:
        self.base = base
        self.end = end
        self.mark = mark
        self.layers = layers


class Tail:
    """Of one process."""

    def __init__(self, log: RedoLog) -> None:
        self._log = log
        self._view = View(0, 0, b"", {})
        self._lock = threading.Lock()
        self._head = log.head

    # HOT: once per read.
    def view(self) -> View | None:
        """To be asked for before the snapshot begins. None: there are no records."""
        base, end, mark = self._head()
        if not end:
            return None
        view = self._view
        if view.end == end and view.base == base and view.mark == mark:
            return view
        return self._catch_up()

    def is_still(self, view: View) -> bool:
        """Whether the log still has these records; asked for after a snapshot began. Without them
        a second commit may have followed the one that has them, on the same base."""
        base, end, mark = self._head()
        return base == view.base and mark == view.mark and end >= view.end

    def _catch_up(self) -> View | None:
        with self._lock:
            for _ in range(LOOKS_MAX):
                base, end, mark = self._head()
                if not end:
                    return None
                view = self._view
                if view.base != base or view.mark != mark or view.end > end:
                    view = View(base, 0, mark, {})
                if view.end == end:
                    return view
                records = self._log.records(view.end, end, mark)
                if records is None:
                    continue
                layers = dict(view.layers)
                for parts in records:
                    for space, keys, values in parts:
                        known, new = layers.get(space), dict(zip(keys, values, strict=True))
                        layers[space] = Layer(new) if known is None else known.after(new)
                self._view = View(base, end, mark, layers)
                return self._view
        raise DataDamaged("The redo log is damaged: its records do not agree with its head.")


class TailReader(OverlayWriter):
    """A snapshot with a layer of the redo log on top. Nothing is written through it."""

    __slots__ = ("_layer",)

    def __init__(self, base: Reader, layer: Layer) -> None:
        super().__init__(base)
        self._layer = layer
        self._changes = layer.changes  # type: ignore[assignment]  # nothing changes it
        meta = layer.changes.get(META_KEY)
        if meta is not None:
            self.meta = meta

    def _sorted(self) -> list[bytes]:
        return self._layer.order()

    def _within(self, start: bytes, end: bytes) -> list[bytes]:
        self._scanned = True  # the order is kept for others
        return super()._within(start, end)
