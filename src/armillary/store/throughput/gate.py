"""One request at the door of a physical partition: admitted, then charged whatever became of it.

The cost is computed even without a meter, because the answer carries it.
"""

from msgspec.structs import replace

from armillary.errors import DbError, Fenced, Stale, Throttled
from armillary.partition.ranges import Range
from armillary.partition.request_units import DEFAULT, Coefficients, miss_ru
from armillary.store.catalog.state import ContainerState
from armillary.store.items.requests import Done, Failed
from armillary.store.throughput.charges import charge_of
from armillary.store.throughput.meter import Meter, Ticket


class Gate:
    __slots__ = ("_key", "_meter", "_operation", "_owner", "_state", "_ticket", "profile")

    def __init__(
        self,
        meter: Meter | None,
        state: ContainerState,
        owner: Range,
        key: bytes,
        operation: str,
        profile: Coefficients = DEFAULT,
        ticket: Ticket | None = None,
    ) -> None:
        self._meter = meter
        self._state = state
        self._owner = owner
        self._key = key
        self._operation = operation
        self.profile = profile
        self._ticket = ticket

    def admit(self) -> None:
        if self._meter is not None:
            self._ticket = self._meter.admit(self._state, self._owner, self._operation)

    def passed(self, done: Done, patched_paths: int = 0) -> Done:
        ru = self._cost(done, patched_paths)
        self.charge(ru, status=_STATUS.get(done.outcome, 200))
        return replace(done, charge_ru=ru)

    def passed_all(self, all_done: list[Done]) -> list[Done]:
        priced = [replace(done, charge_ru=self._cost(done)) for done in all_done]
        self.charge(sum(done.charge_ru for done in priced))
        return priced

    def passed_unread(self, all_done: list[Done]) -> float:
        """The same where only the sum is wanted: what all of them cost."""
        return self.passed_for(sum(map(self._cost, all_done)))

    def passed_for(self, ru: float) -> float:
        """The same where the cost is known already."""
        self.charge(ru)
        return ru

    def failed(self, error: DbError) -> DbError:
        """A refusal costs a little too, and says so; being sent elsewhere costs nothing."""
        if not isinstance(error, Fenced | Stale | Throttled):
            ru = miss_ru(profile=self.profile)
            self.charge(ru, status=400)
            error.facts["charge_ru"] = ru
        return error

    def failed_batch(self, failed: Failed) -> Failed:
        """Every operation up to the one that failed was looked at, as one that finds nothing is."""
        ru = miss_ru(profile=self.profile) * (failed.position + 1)
        self.charge(ru, status=400)
        name, message, facts = failed.refusal
        return failed._replace(refusal=(name, message, facts | {"charge_ru": ru}))

    def charge(self, ru: float, *, status: int = 200) -> None:
        if self._meter is not None:
            self._meter.charge(
                self._state, self._owner, self._key, ru, self._operation, status, self._ticket
            )

    def _cost(self, done: Done, patched_paths: int = 0) -> float:
        constraints = len(self._state.definition.document["uniqueKeyPolicy"]["uniqueKeys"])
        return charge_of(done, constraints, patched_paths=patched_paths, profile=self.profile)


_STATUS = {"created": 201, "deleted": 204}
