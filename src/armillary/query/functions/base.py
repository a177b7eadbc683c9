"""What a system function is, what it may know of its query, and how it reads its arguments.

A function takes JSON values and gives a JSON value or UNDEFINED; it never raises for odd input
(reference 6: a wrong type gives undefined). The two exceptions are results or patterns without a
sensible bound, which end in `BadInput`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from armillary.errors import BadInput
from armillary.limits import QUERY_ARRAY_ITEMS_MAX, QUERY_STRING_CHARACTERS_MAX
from armillary.values import JSON, UNDEFINED, Undefined

if TYPE_CHECKING:
    from armillary.query.functions.user import UserFunctions

Logic: TypeAlias = bool | Undefined
Kind: TypeAlias = Literal["scalar", "aggregate", "rank"]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class Context(msgspec.Struct, frozen=True):
    """What a function may know besides arguments. One per query, so one query sees one time."""

    now_ticks: int  # 100 ns since 1970, UTC
    random: Callable[[], float]  # the next number in [0, 1)
    geography: bool = True  # the container's geospatialConfig; False means planar geometry
    language: str = "en-US"  # of the text at hand, by the container's full-text policy
    metric: str = "cosine"  # of the vectors at hand, by the container's vector policy
    languages: Mapping[tuple[str, ...], str] = msgspec.field(default_factory=dict)  # of paths
    metrics: Mapping[tuple[str, ...], str] = msgspec.field(default_factory=dict)
    functions: "UserFunctions | None" = None  # user-defined ones, where a query has them

    def at(self, path: tuple[str, ...]) -> "Context":
        """For values that stand at a path of the item."""
        if path not in self.languages and path not in self.metrics:
            return self
        language = self.languages.get(path, self.language)
        return replace(self, language=language, metric=self.metrics.get(path, self.metric))

    def beyond_items(self) -> "Context":
        """For rows that are no items: policies speak of none of their paths."""
        if not self.languages and not self.metrics:
            return self
        return replace(self, languages={}, metrics={})


@dataclass(frozen=True, slots=True)
class Function:
    """One row of the table.

    kind       what `run` is
    scalar     `run(*arguments)`, or `run(context, *arguments)` when `context` is set
    aggregate  `run()` makes a fresh state with add, merge and result
    rank       None: only ORDER BY RANK may name it, and the executor ranks whole result sets
    """

    name: str
    min_args: int
    max_args: int | None
    run: Callable[..., Any] | None
    deterministic: bool = True
    kind: Kind = "scalar"
    context: bool = False

    @property
    def key(self) -> str:
        bare = self.name.lstrip("_")
        return self.name[: len(self.name) - len(bare)] + bare.replace("_", "").upper()


def is_number(value: JSON) -> bool:
    kind = type(value)
    return kind is int or kind is float


def integer(value: JSON) -> int | None:
    """The value as a signed 64-bit integer, when it is exactly one: 3 and 3.0, not 3.5 or 2^63."""
    kind = type(value)
    if kind is int:
        return int(value) if INT64_MIN <= value <= INT64_MAX else None
    if kind is float and value.is_integer() and INT64_MIN <= value <= INT64_MAX:
        whole = int(value)
        return whole if whole <= INT64_MAX else None  # the double nearest to 2^63 - 1 is 2^63
    return None


def strings(values: Iterable[JSON]) -> bool:
    return all(type(value) is str for value in values)


def any_of(tests: Iterable[Logic]) -> Logic:
    """OR in three values: true wins, then undefined, then false."""
    result: Logic = False
    for test in tests:
        if test is True:
            return True
        if test is UNDEFINED:
            result = UNDEFINED
    return result


def all_of(tests: Iterable[Logic]) -> Logic:
    """AND in three values: false wins, then undefined, then true."""
    result: Logic = True
    for test in tests:
        if test is False:
            return False
        if test is UNDEFINED:
            result = UNDEFINED
    return result


def check_string(characters: int) -> None:
    """Refuse before building: nested REPLACE or LET could ask for more than any machine has."""
    if characters > QUERY_STRING_CHARACTERS_MAX:
        raise BadInput(
            f"A function would return a string of {characters} characters; "
            f"at most {QUERY_STRING_CHARACTERS_MAX} are allowed."
        )


def check_array(items: int) -> None:
    if items > QUERY_ARRAY_ITEMS_MAX:
        raise BadInput(
            f"A function would return an array of {items} elements; "
            f"at most {QUERY_ARRAY_ITEMS_MAX} are allowed."
        )
