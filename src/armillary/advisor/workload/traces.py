"""Operations with their moments, from JSON Lines.

    {"ts": "2026-04-09T13:05:59.1Z", "op": "create", "id": "7", "tenant": "a", "bytes": 812}
    {"ts": 1775739959150, "op": "read", "id": "7", "tenant": "a", "ru": 1.0}
    {"ts": 1775739959.2, "op": "query", "text": "SELECT * FROM c WHERE c.tenant = @t",
     "parameters": {"@t": "a"}, "results": 12, "bytes": 900}

`ts` is an ISO date and time, or seconds or milliseconds since 1970. `op` is the kind. `bytes` are
those of the item (of a query: of one result), `ru` what it cost; both may be missing. `id` and
every other member are values of the item, as far as they are known; members that would be mistaken
for one of ours stand in an object `"fields"`. A batch has its items in `"items"`. What can't be
read is counted by reason and never fatal.
"""

import gzip
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import IO, Any, Final

import orjson

from armillary.advisor.data.moments import milliseconds
from armillary.advisor.data.sample import flattened
from armillary.advisor.workload.filters import NO_FILTERS
from armillary.advisor.workload.model import ID, KINDS, Operation, parse_operation
from armillary.advisor.workload.operations import TimedOperation
from armillary.advisor.workload.places import Fields
from armillary.advisor.workload.playing import Played
from armillary.encoding.paths import Path, parse_path
from armillary.errors import BadInput
from armillary.values import JSON

GZIP: Final = b"\x1f\x8b"
OURS: Final = frozenset(
    {"ts", "op", "kind", "bytes", "ru", "text", "parameters", "results", "items", "fields"}
)
BYTES_DEFAULT: Final = 1024
TEMPLATES_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Trace:
    operations: tuple[TimedOperation, ...]
    """In the order of their times."""
    lines: int
    skipped: Mapping[str, int]
    """Reason → how many lines."""

    @property
    def seconds(self) -> float:
        """At least one: the budgets of partitions are for seconds."""
        if not self.operations:
            return 1.0
        span_ms = self.operations[-1].ts_ms - self.start_ms
        return max(1.0, math.ceil((span_ms + 1) / 1000))

    @property
    def start_ms(self) -> float:
        return self.operations[0].ts_ms // 1000 * 1000 if self.operations else 0.0

    def played(self) -> Played:
        return Played(self.operations, 1.0, self.start_ms, self.seconds)

    @property
    def problems(self) -> list[str]:
        return [
            f"{count:,} {'line was' if count == 1 else 'lines were'} skipped: {why}"
            for why, count in self.skipped.items()
        ]


def read_trace(file: FilePath | str) -> Trace:
    """`-` is standard input; gzip is recognised."""
    with opened(file) as lines:
        return parse_trace(lines)


def parse_trace(lines: Iterable[bytes]) -> Trace:
    reader = _Reader()
    skipped: Counter[str] = Counter()
    operations: list[TimedOperation] = []
    count = 0
    for line in lines:
        if not line.strip():
            continue
        count += 1
        try:
            operations.append(reader.read(orjson.loads(line)))
        except orjson.JSONDecodeError:
            skipped["not JSON"] += 1
        except BadInput as error:
            skipped[str(error)] += 1
    operations.sort(key=lambda one: one.ts_ms)
    return Trace(tuple(operations), count, dict(skipped.most_common()))


@contextmanager
def opened(file: FilePath | str) -> Iterator[IO[bytes]]:
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    try:
        with open(file, "rb") as plain:
            head = plain.read(2)
            plain.seek(0)
            if head == GZIP:
                with gzip.open(plain) as unpacked:
                    yield unpacked  # type: ignore[misc]
            else:
                yield plain
    except OSError as error:
        raise BadInput(f"{file} can't be read: {error.strerror or error}.") from error


class _Reader:
    def __init__(self) -> None:
        self._templates: dict[str, Operation] = {}

    def read(self, line: JSON) -> TimedOperation:
        if not isinstance(line, dict):
            raise BadInput("no object")
        kind = str(line.get("op", line.get("kind", ""))).lower()
        if kind not in KINDS:
            raise BadInput(f"'op' is {kind!r}; it is one of {', '.join(KINDS)}")
        at = milliseconds(line.get("ts"))
        if at is None:
            raise BadInput("'ts' is no time: ISO 8601, or seconds or milliseconds since 1970")
        size = _number(line, "bytes")
        ru = _number(line, "ru")
        known = fields_of(line)
        if kind == "query":
            return self._query(line, at, known, size, ru)
        items = line.get("items") or []
        if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
            raise BadInput("'items' is no list of objects")
        parts = tuple(flattened(one) for one in items)
        whole = size if size is not None else BYTES_DEFAULT * max(1, len(parts))
        name = known.get(ID)
        return TimedOperation(
            at, kind, known, None if name is None else str(name), int(whole), ru, items=parts
        )

    def _query(
        self, line: dict[str, Any], at: float, known: Fields, size: float | None, ru: float | None
    ) -> TimedOperation:
        text, parameters = line.get("text"), _parameters(line.get("parameters"))
        given = _number(line, "results")
        results = 1 if given is None else int(given)
        size = int(size if size is not None else BYTES_DEFAULT)
        if not isinstance(text, str):
            return TimedOperation(at, "query", known, None, size, ru, None, results)
        template = self._template(text)
        alternatives = list(_known(template, parameters, known))
        if len(alternatives) == 1:
            return TimedOperation(at, "query", alternatives[0], None, size, ru, template, results)
        return TimedOperation(
            at, "query", known, None, size, ru, template, results, tuple(alternatives)
        )

    def _template(self, text: str) -> Operation:
        found = self._templates.get(text)
        if found is None:
            try:
                found, _ = parse_operation({"kind": "query", "text": text})
            except BadInput as error:
                raise BadInput(f"a query that can't be read: {error}") from error
            if len(self._templates) < TEMPLATES_KEPT:
                self._templates[text] = found
        return found


def fields_of(line: Mapping[str, JSON]) -> dict[Path, JSON]:
    """The values of the item that a line has."""
    plain = {name: value for name, value in line.items() if name not in OURS}
    given = line.get("fields")
    if isinstance(given, dict):
        # Names, or paths with a slash in front.
        for name, value in given.items():
            if not name.startswith("/"):
                plain[name] = value
    found = flattened(plain)
    if isinstance(given, dict):
        found |= {parse_path(n): value for n, value in given.items() if n.startswith("/")}
    return found


def _known(template: Operation, parameters: Mapping[str, JSON], known: Fields) -> Iterator[Fields]:
    """What the filter fixes once its parameters have values; one for each combination."""
    filters = template.filters or NO_FILTERS
    combined: list[dict[Path, JSON]] = [dict(known)]
    for path, count in filters.equal.items():
        values = filters.values_of(path, parameters)
        if path in known or len(values) != count:
            continue
        combined = [{**one, path: value} for one in combined for value in values]
    yield from combined


def _parameters(given: JSON) -> dict[str, JSON]:
    if isinstance(given, list):
        return {one["name"]: one.get("value") for one in given if isinstance(one, dict)}
    return given if isinstance(given, dict) else {}


def _number(line: Mapping[str, JSON], name: str) -> float | None:
    value = line.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise BadInput(f"{name!r} is no number of 0 or more")
    return value
