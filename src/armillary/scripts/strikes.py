"""Scripts that go over their bounds again and again are blocked. Facts: scripts 1.2, 3.

Counted per process and per version of a script, so that creating or replacing it begins anew.
"""

from __future__ import annotations

import threading

from armillary.errors import ScriptBlocked
from armillary.limits import SCRIPT_STRIKES_KEPT, SCRIPT_STRIKES_MAX
from armillary.store.catalog.resources import ResourceRecord


class Strikes:
    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def check(self, script: ResourceRecord) -> None:
        if self._counts.get((script.rid, script.etag), 0) >= SCRIPT_STRIKES_MAX:
            raise ScriptBlocked(ScriptBlocked.text.format(script.id))

    def add(self, script: ResourceRecord) -> None:
        with self._lock:
            if len(self._counts) >= SCRIPT_STRIKES_KEPT:
                self._counts.clear()
            at = (script.rid, script.etag)
            self._counts[at] = self._counts.get(at, 0) + 1
