"""How far long work has come: a small JSON file that is replaced whole, so a crash leaves the last
one that was written. It says what work it belongs to; another one does not go on with it."""

import json
import os
from pathlib import Path
from typing import Any


class Journal:
    def __init__(self, path: Path, work: dict[str, Any]) -> None:
        self.path = path
        self._work = work

    def load(self) -> dict[str, Any] | None:
        """The last state of the same work."""
        try:
            found = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(found, dict) or found.get("work") != self._work:
            return None
        state = found.get("state")
        return state if isinstance(state, dict) else None

    def save(self, **state: Any) -> None:
        new = self.path.with_name(self.path.name + ".new")
        with new.open("w", encoding="utf-8") as file:
            json.dump({"work": self._work, "state": state}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
