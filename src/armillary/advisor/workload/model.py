"""A workload: what an application does how often, and where each of it would go under a key.

    {"operations": [
      {"kind": "create", "rate": 500},
      {"kind": "read", "rate": 200, "by": ["/tenant", "/id"], "skew": 0.9},
      {"kind": "query", "rate": 20, "text": "SELECT * FROM c WHERE c.tenant = @t"}]}

`rate` is per second. `by` are the paths whose values the caller knows: who writes a whole item
knows all of it, who asks a query knows what its filter fixes, and a read or delete without `by`
knows `/id`. The items of a batch share the values of `by`. `skew` says which keys are asked for:
"data" as often as they occur, or a Zipf exponent over them.

`route` answers, for one key and one operation, how much of the ring must be asked:

    key      one logical partition
    keys     so many logical partitions: IN lists, unknown suffixes, several time buckets
    prefix   all keys that begin with the known levels of a hierarchical one
    all      every physical partition
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any, Final, Literal, TypeAlias

import orjson

from armillary.advisor.keys.candidates import Candidate
from armillary.advisor.workload.filters import Filters, read_filters
from armillary.advisor.workload.lenient import what_is_meant
from armillary.encoding.paths import Path, format_path, parse_path
from armillary.errors import BadInput
from armillary.keys.buckets import bucket_of, instant_of, instants_between
from armillary.keys.spec import Part
from armillary.limits import QUERY_KEYS_MAX
from armillary.values import JSON, UNDEFINED

OperationKind: TypeAlias = Literal[
    "create", "read", "upsert", "replace", "patch", "delete", "query", "batch"
]
KINDS: Final[tuple[OperationKind, ...]] = (
    "create", "read", "upsert", "replace", "patch", "delete", "query", "batch",
)  # fmt: skip
WRITES: Final = frozenset({"create", "upsert", "replace", "patch", "delete", "batch"})
#: Who does one of these has the whole item in hand.
WHOLE_ITEM: Final = frozenset({"create", "upsert"})
ID: Final[Path] = ("id",)
BATCH_ITEMS_DEFAULT: Final = 10
_MEMBERS: Final = frozenset(
    {"kind", "rate", "text", "parameters", "by", "skew", "name", "items", "results"}
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One line of a workload. `by` has the paths given in the file and those a filter fixes."""

    kind: OperationKind
    rate: float
    by: tuple[Path, ...] = ()
    text: str | None = None
    parameters: Mapping[str, JSON] = field(default_factory=dict)
    skew: float | Literal["data"] = "data"
    filters: Filters | None = None
    name: str = ""
    """What reports call it."""
    items: int = BATCH_ITEMS_DEFAULT
    """Of one batch."""
    results: float | None = None
    """Of one query, when the file says it; else it is estimated from the data."""

    @property
    def is_write(self) -> bool:
        return self.kind in WRITES

    def values_of(self, path: Path) -> int | None:
        """How many values the caller has for a path; None when he has none. For `create` and
        `upsert` it is always one."""
        if self.kind in WHOLE_ITEM:
            return 1
        if path in self.by:
            return 1
        return None if self.filters is None else self.filters.equal.get(path)


@dataclass(frozen=True, slots=True)
class Workload:
    operations: tuple[Operation, ...]
    skipped: tuple[str, ...] = ()
    """What of the file is not understood, and why."""
    assumed: bool = False
    """It was not given but made up from the data."""

    @property
    def rate(self) -> float:
        return sum(one.rate for one in self.operations)

    def scaled(self, factor: float) -> "Workload":
        faster = tuple(replace(one, rate=one.rate * factor) for one in self.operations)
        return replace(self, operations=faster)


@dataclass(frozen=True, slots=True)
class Route:
    how: Literal["key", "keys", "prefix", "all"]
    keys: int = 1
    """For `keys`: how many logical partitions. For `prefix`: how many prefixes."""
    levels: int = 0
    """For `prefix`: how many levels of the key are known."""

    @property
    def is_single(self) -> bool:
        return self.how == "key"


ONE: Final = Route("key")
ALL: Final = Route("all")


# --- routing --------------------------------------------------------------------------------------


def route(candidate: Candidate, operation: Operation) -> Route:
    """Where an operation has to go when the container has this key."""
    if candidate.synthetic is None:
        return _plain_route(candidate.paths, operation)
    if operation.kind in WHOLE_ITEM:
        return ONE
    stems = 1
    for part in candidate.synthetic.spec.parts:
        count = _part_values(part, operation)
        if count is None:
            return ALL
        stems *= count
    return _keys(stems * _suffix_values(candidate, operation))


def covers_batch(candidate: Candidate, operation: Operation) -> bool:
    """Whether the items of a batch always share one key: all it is made of is among what they
    share. A random suffix is drawn for each item."""
    return not candidate.is_random and set(candidate.made_of) <= set(operation.by)


def _plain_route(paths: tuple[Path, ...], operation: Operation) -> Route:
    count, known = 1, 0
    for path in paths:
        values = operation.values_of(path)
        if values is None:
            break
        count *= values
        known += 1
    if known == 0 or count > QUERY_KEYS_MAX:
        return ALL
    return _keys(count) if known == len(paths) else Route("prefix", count, known)


def _part_values(part: Part, operation: Operation) -> int | None:
    values = operation.values_of(part.path)
    if values is not None or part.bucket is None or operation.filters is None:
        return values
    bounds = operation.filters.ranges.get(part.path)
    if bounds is None or bounds.low is UNDEFINED or bounds.high is UNDEFINED:
        return None
    where = format_path(part.path)
    try:
        low, high = (instant_of(end, part.unit, where) for end in (bounds.low, bounds.high))
    except BadInput:
        return None
    buckets = 0
    for instant in instants_between(low, high, part.bucket):
        buckets += 1
        if buckets > QUERY_KEYS_MAX or bucket_of(instant, part.bucket) == "":
            return None
    return max(1, buckets)


def _suffix_values(candidate: Candidate, operation: Operation) -> int:
    if candidate.source is None:
        return candidate.suffixes
    values = operation.values_of(candidate.source)
    return candidate.suffixes if values is None else min(values, candidate.suffixes)


def _keys(count: int) -> Route:
    return ONE if count == 1 else Route("keys", count)


# --- the file -------------------------------------------------------------------------------------


def read_workload(file: FilePath) -> Workload:
    try:
        return parse_workload(orjson.loads(file.read_bytes()))
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{file}, line {error.lineno}: it is not JSON: {error.msg}.") from error
    except OSError as error:
        raise BadInput(f"The workload {file} can't be read: {error.strerror}.") from error


def parse_workload(given: JSON) -> Workload:
    """Operations that make no sense are left out and named in `skipped`; without any that does,
    there is no workload."""
    operations = given.get("operations") if isinstance(given, dict) else given
    if not isinstance(operations, list):
        raise BadInput("A workload is a JSON object with 'operations', a list.")
    good: list[Operation] = []
    skipped: list[str] = []
    for number, one in enumerate(operations, 1):
        try:
            operation, note = parse_operation(one)
        except BadInput as error:
            skipped.append(f"Operation {number} of the workload was skipped: {error}")
        else:
            good.append(operation)
            skipped.extend([f"Operation {number} of the workload: {note}"] * bool(note))
    if not good:
        reasons = " ".join(skipped) or "Its list of operations is empty."
        raise BadInput(f"The workload has no operation to go by. {reasons}")
    return Workload(tuple(good), tuple(skipped))


def parse_operation(given: JSON) -> tuple[Operation, str]:
    """The operation, and what of it could not be understood ("" when all was)."""
    if not isinstance(given, dict):
        raise BadInput("It is not an object.")
    kind = given.get("kind")
    if kind not in KINDS:
        raise BadInput(f"Its kind is {kind!r}; kinds are {', '.join(KINDS)}.")
    rate = _number(given, "rate", 1.0)
    text = given.get("text")
    parameters = _parameters(given.get("parameters"))
    by = _by(given.get("by"))
    if text is not None and (kind != "query" or not isinstance(text, str)):
        raise BadInput("A query has a 'text', and nothing else has.")
    if kind == "query" and text is None and by is None:
        raise BadInput("A query has a 'text', or 'by' says which values it fixes.")
    filters, note = _filters(text, parameters, by)
    unknown = sorted(given.keys() - _MEMBERS)
    if unknown:
        more = f"'{unknown[0]}' is no member, and was ignored; members are {_listed(_MEMBERS)}."
        if "rate" not in given:  # it may be what was meant by it
            raise BadInput(f"It has no 'rate', and {more}")
        note = f"{note} {more}".strip()
    if by is None:
        by = (ID,) if kind in ("read", "delete", "replace", "patch") else ()
    shown = text or f"{kind} by {', '.join(map(format_path, by))}" if by or text else str(kind)
    operation = Operation(
        kind,
        rate,
        by,
        text,
        parameters,
        _skew(given.get("skew", "data")),
        filters,
        str(given.get("name", shown)),
        round(_number(given, "items", BATCH_ITEMS_DEFAULT)),
        _number(given, "results", 0) if "results" in given else None,
    )
    return operation, note


def _filters(
    text: str | None, parameters: Mapping[str, JSON], by: tuple[Path, ...] | None
) -> tuple[Filters | None, str]:
    """A text that can't be read is not fatal for a query that says what it goes by."""
    if text is None:
        return None, ""
    try:
        return read_filters(text, parameters), ""
    except BadInput as error:
        meant = what_is_meant(text)
        try:
            return read_filters(meant, parameters), f"read as {meant!r}. {error}"
        except BadInput:
            pass
        if by is None:
            raise
        return None, f"only its 'by' was used. {error}"


def _number(given: dict[str, Any], member: str, default: float) -> float:
    value = given.get(member, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise BadInput(f"Its '{member}' is {value!r}; it must be a number, 0 or more.")
    return float(value)


def _by(given: JSON) -> tuple[Path, ...] | None:
    if given is None:
        return None
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise BadInput("Its 'by' must be a list of paths, such as ['/tenant', '/id'].")
    return tuple(parse_path(one if one.startswith("/") else f"/{one}") for one in given)


def _skew(given: JSON) -> float | Literal["data"]:
    if given == "data":
        return "data"
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 10:
        raise BadInput(f"Its 'skew' is {given!r}; it is 'data' or a Zipf exponent from 0 to 10.")
    return float(given)


def _parameters(given: JSON) -> dict[str, JSON]:
    """An object, or the list of names and values that SDKs send."""
    if given is None:
        return {}
    if isinstance(given, list):
        if not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in given):
            raise BadInput("Its 'parameters' must be objects with 'name' and 'value'.")
        return {one["name"]: one.get("value") for one in given}
    if not isinstance(given, dict):
        raise BadInput("Its 'parameters' must be an object, or a list of names and values.")
    return given


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
