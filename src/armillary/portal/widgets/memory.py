"""What the browser remembers for the user: drafts, the history of queries. Nothing of it reaches
the server's disk, and it is there again after the portal's process ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from nicegui import ui

PREFIX: Final = "armillary:"
ENTRIES_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class Kept:
    name: str

    @property
    def key(self) -> str:
        return PREFIX + self.name

    @property
    def _key(self) -> str:
        return json.dumps(self.key)

    async def get(self) -> Any:
        try:
            text = await ui.run_javascript(f"localStorage.getItem({self._key})", timeout=10.0)
        except TimeoutError:  # the browser has gone; what it kept is still there
            return None
        try:
            return json.loads(text) if isinstance(text, str) else None
        except ValueError:  # written by another version, or by hand
            return None

    def put(self, value: Any) -> None:
        ui.run_javascript(f"localStorage.setItem({self._key}, {json.dumps(json.dumps(value))})")

    async def push(self, entry: Any) -> None:
        """To the front of a list, once."""
        found = await self.get()
        entries = [one for one in found if one != entry] if isinstance(found, list) else []
        self.put([entry, *entries][:ENTRIES_MAX])
