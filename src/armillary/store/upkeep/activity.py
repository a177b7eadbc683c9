"""Which containers were written to lately: so that background work looks there and nowhere else."""

import threading


class Activity:
    """Noting a write costs a set lookup; only the first one after a pause wakes the listener."""

    def __init__(self) -> None:
        self._written: set[tuple[str, str]] = set()
        self._event = threading.Event()

    def note(self, database: str, container: str) -> None:
        name = (database, container)
        if name not in self._written:
            self._written.add(name)
            self._event.set()

    def wake(self) -> None:
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """True when something was noted, False when the time passed."""
        return self._event.wait(seconds)

    def take(self) -> set[tuple[str, str]]:
        """What was noted since the last time."""
        self._event.clear()
        written, self._written = self._written, set()
        return written
