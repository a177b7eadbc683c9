"""User-defined functions of one query page: results by arguments, fetched in blocks.

    rows of a chunk ──collect──▶ calls that are not known yet ──run──▶ one block for all of them
          ▲                                                                     │
          └──────────────── evaluate again: now they are known ◀────────────────┘

A call into another process costs as much as a hundred calls inside it, while expressions are
evaluated row by row. So a chunk of rows is evaluated for its calls alone first: an unknown call is
noted and counts as undefined, then all that were noted run together. A query with several calls may
need further rounds, because one may depend on another. What was not foreseen is fetched alone, so
that values never depend on chunks.

A call with an undefined argument is undefined and not made. A function that throws fails the query
when its value is needed, not before. How a block is run is given from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from typing import Any, Final, TypeAlias

import orjson

from armillary.errors import DbError
from armillary.values import JSON, UNDEFINED

#: (number of the function, its arguments as JSON)
FunctionCall: TypeAlias = tuple[int, bytes]
#: Values in the order of the calls: JSON, UNDEFINED, or the error that it threw.
RunBlock: TypeAlias = Callable[[Sequence[FunctionCall]], Sequence[Any]]

ROUNDS_MAX: Final = 6  # calls inside calls; what is deeper is fetched alone
KNOWN_MAX: Final = 10_000


class _Unknown(Enum):
    UNKNOWN = 0


_UNKNOWN: Final = _Unknown.UNKNOWN


class UserFunctions:
    def __init__(
        self, names: Sequence[str], run: RunBlock, close: Callable[[], None] = lambda: None
    ) -> None:
        self._numbers = {name: number for number, name in enumerate(names)}
        self._run = run
        self.close = close
        self._known: dict[FunctionCall, Any] = {}
        self._wanted: dict[FunctionCall, None] | None = None
        self._missed = False
        self._places: set[Hashable] = set()
        self.calls = 0
        """That were made: known ones are not made again."""

    def caller(self, name: str, place: Hashable) -> Callable[[list[JSON]], JSON]:
        """`place`: what tells this call from others of the query."""
        number = self._numbers[name]
        self._places.add(place)

        def call(arguments: list[JSON]) -> JSON:
            """HOT: twice per row and call."""
            for one in arguments:
                if one is UNDEFINED:
                    return UNDEFINED
            asked = (number, orjson.dumps(arguments, default=_plain))
            found = self._known.get(asked, _UNKNOWN)
            if found is _UNKNOWN:
                if self._wanted is not None:
                    self._wanted[asked] = None
                    self._missed = True
                    return UNDEFINED
                self._fetch([asked])
                found = self._known[asked]
            if isinstance(found, DbError):
                if self._wanted is not None:
                    return UNDEFINED
                raise found
            return found

        return call

    def foresee(self, rows: Sequence[Any], visit: Callable[[Any], None]) -> None:
        """Fetch what `visit` will call for these rows. It is called once per row and round."""
        if len(self._known) > KNOWN_MAX:
            self._known.clear()
        waiting = list(rows)
        # A single call depends on no other: nothing is left to be seen when it is known.
        for _ in range(ROUNDS_MAX if len(self._places) > 1 else 1):
            wanted: dict[FunctionCall, None] = {}
            self._wanted = wanted
            try:
                waiting = [row for row in waiting if self._misses(row, visit)]
            finally:
                self._wanted = None
            if not wanted:
                return
            self._fetch(list(wanted))

    def _misses(self, row: Any, visit: Callable[[Any], None]) -> bool:
        self._missed = False
        try:
            visit(row)
        except DbError:
            return self._missed  # if it is still so when it counts, it is raised then
        return self._missed

    def _fetch(self, calls: list[FunctionCall]) -> None:
        self.calls += len(calls)
        self._known.update(zip(calls, self._run(calls), strict=True))


def _plain(value: Any) -> Any:
    """Inside an array or object."""
    return None if value is UNDEFINED else str(value)
