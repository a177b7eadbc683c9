"""Operations from exported diagnostic logs of the original, or from the request log of this server.

    CDBPartitionKeyRUConsumption   who used how much: the key of every operation, and its RU
    CDBDataPlaneRequests           status and sizes                   ┐ joined by ActivityId
    CDBQueryRuntimeStatistics      the text of a query                ┘
    CDBPartitionKeyStatistics      bytes of the largest keys

As CSV, a JSON array, JSON Lines (also those of a storage account, with `properties`), or the answer
of a query for logs (`tables`); several tables may lie in one file or in several. Logs name keys by
value only, so the present key has to be said: its paths are all that is known of an item, and only
keys made of them can be distinguished. What can't be used is counted by reason.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Final

import orjson

from armillary.advisor.data.moments import milliseconds
from armillary.advisor.data.sample import Sample
from armillary.advisor.workload.model import Operation, OperationKind, parse_operation
from armillary.advisor.workload.operations import TimedOperation
from armillary.advisor.workload.traces import BYTES_DEFAULT, Trace, opened
from armillary.encoding.paths import Path
from armillary.errors import BadInput
from armillary.values import JSON, UNDEFINED

Row = dict[str, Any]

#: What the logs call an operation → what it is here.
KINDS: Final[dict[str, OperationKind]] = {
    "create": "create", "read": "read", "upsert": "upsert", "replace": "replace", "patch": "patch",
    "delete": "delete", "query": "query", "sqlquery": "query", "readfeed": "query",
    "batch": "batch", "head": "read",
}  # fmt: skip
REFUSED: Final = "429"
#: Columns of the older table for all services end in their type.
_TYPES: Final = ("_s", "_d", "_g", "_t")
_TIMES: Final = ("timegenerated", "time", "timestamp", "timegenerated [utc]")


@dataclass(slots=True)
class Logs:
    trace: Trace
    sizes: dict[str, float] = field(default_factory=dict)
    """Partition key as JSON → bytes."""
    paths: tuple[Path, ...] = ()

    def sample(self) -> Sample | None:
        """The keys whose size is known, as items of that size."""
        if not self.sizes:
            return None
        items = [dict(zip(self.paths, _key(key), strict=False)) for key in self.sizes]
        sizes = [int(size) for size in self.sizes.values()]
        return Sample(items, sizes, len(items), float(sum(sizes)))


def is_log(file: FilePath | str) -> bool:
    """Whether a file has logs rather than a trace of ours. Standard input is taken for a trace."""
    if str(file) == "-":
        return False
    with opened(file) as stream:
        head = stream.read(65_536).lstrip(b"\xef\xbb\xbf \r\n\t")
    first = head.split(b"\n", 1)[0].lower()
    if not first or b'"op"' in first:
        return False
    return not first.startswith(b"{") or b"operationname" in head.lower()


def read_logs(files: Sequence[FilePath | str], paths: Sequence[Path]) -> Logs:
    """`paths`: of the present partition key."""
    if not paths:
        raise BadInput(
            "Logs name partition keys by their values: say which key these are values of "
            "(--key /tenant)."
        )
    reader = _Reader(tuple(paths))
    for file in files:
        with opened(file) as stream:
            for row in rows_of(stream.read()):
                reader.add(row)
    return reader.result()


def rows_of(content: bytes) -> Iterator[Row]:
    """The rows of an export, whatever its form, with plain names of columns."""
    text = content.lstrip(b"\xef\xbb\xbf").strip()
    if not text.startswith((b"{", b"[")):
        for row in csv.DictReader(io.StringIO(text.decode("utf-8", "replace"))):
            yield _plain(row)
        return
    try:
        whole = orjson.loads(text)
    except orjson.JSONDecodeError:
        whole = [_line(line) for line in text.splitlines() if line.strip()]
    for row in _tables(whole):
        yield _plain(row) if isinstance(row, dict) else {"broken": True}


def _tables(whole: JSON) -> Iterable[JSON]:
    if isinstance(whole, dict) and isinstance(whole.get("tables"), list):
        for table in whole["tables"]:
            names = [column["name"] for column in table["columns"]]
            yield from (dict(zip(names, row, strict=False)) for row in table["rows"])
    elif isinstance(whole, dict) and isinstance(whole.get("records"), list):
        yield from whole["records"]
    else:
        yield from whole if isinstance(whole, list) else [whole]


def _line(line: bytes) -> JSON:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _plain(row: Mapping[Any, Any]) -> Row:
    found: Row = {}
    inner = row.get("properties")
    for name, value in {**row, **(inner if isinstance(inner, dict) else {})}.items():
        key = str(name).lower()
        key = next((key.removesuffix(end) for end in _TYPES if key.endswith(end)), key)
        if value not in (None, "") and not isinstance(value, dict):
            found[key] = value
    return found


class _Reader:
    def __init__(self, paths: tuple[Path, ...]) -> None:
        self.paths = paths
        self.keyed: list[Row] = []
        self.requests: dict[str, Row] = {}
        self.alone: list[Row] = []
        self.texts: dict[str, str] = {}
        self.sizes: dict[str, float] = {}
        self.skipped: Counter[str] = Counter()
        self.lines = 0
        self._templates: dict[str, Operation | None] = {}

    def add(self, row: Row) -> None:
        self.lines += 1
        activity = str(row.get("activityid", ""))
        if row.get("broken"):
            self.skipped["not a row of a log"] += 1
        elif "sizekb" in row and "partitionkey" in row:
            size = _number(row, "sizekb") or 0.0
            key = str(row["partitionkey"])
            self.sizes[key] = max(size * 1024, self.sizes.get(key, 0.0))
        elif "querytext" in row:
            self.texts[activity] = str(row["querytext"])
        elif "partitionkey" in row and "operationname" in row:
            self.keyed.append(row)
        elif "operationname" in row and "statuscode" in row:
            if activity:
                self.requests[activity] = row
            else:
                self.alone.append(row)
        else:
            self.skipped["a row of none of the four tables"] += 1

    def result(self) -> Logs:
        operations: list[TimedOperation] = []
        used = {str(row.get("activityid", "")) for row in self.keyed}
        others = [row for activity, row in self.requests.items() if activity not in used]
        for row in (*self.keyed, *others, *self.alone):
            try:
                operations.append(self._operation(row))
            except BadInput as error:
                self.skipped[str(error)] += 1
        operations.sort(key=lambda one: one.ts_ms)
        trace = Trace(tuple(operations), self.lines, dict(self.skipped.most_common()))
        return Logs(trace, self.sizes, self.paths)

    def _operation(self, row: Row) -> TimedOperation:
        activity = str(row.get("activityid", ""))
        request = {**self.requests.get(activity, {}), **row}
        name = str(row["operationname"]).rpartition("/")[2].lower()
        kind = KINDS.get(name)
        if kind is None:
            raise BadInput(f"operations called '{row['operationname']}'")
        if str(request.get("statuscode", "")) == REFUSED:
            raise BadInput("429s: the retries that succeeded are in the log too")
        at = next((milliseconds(_time(row[name])) for name in _TIMES if name in row), None)
        if at is None:
            raise BadInput("a row without a time")
        key = _key(row["partitionkey"]) if "partitionkey" in row else None
        if key is None and kind != "query":
            raise BadInput("no key: CDBPartitionKeyRUConsumption has none for this operation")
        fields = dict(zip(self.paths, key or (), strict=False))
        size = self._size(request, kind)
        template = self._template(self.texts.get(activity)) if kind == "query" else None
        ru = _number(request, "requestcharge")
        # Every item its own id: it is not logged, and two are hardly ever the same.
        return TimedOperation(at, kind, fields, f"{activity}-{len(fields)}", size, ru, template)

    def _size(self, request: Row, kind: OperationKind) -> int:
        name = "responselength" if kind in ("read", "query") else "requestlength"
        found = _number(request, name)
        return int(found) if found else BYTES_DEFAULT

    def _template(self, text: str | None) -> Operation | None:
        if text is None:
            return None
        if text not in self._templates:
            try:
                self._templates[text] = parse_operation({"kind": "query", "text": text})[0]
            except BadInput:
                self._templates[text] = None  # obfuscated; its key is known all the same
        return self._templates[text]


def _key(text: Any) -> list[JSON]:
    """`["a",7]` as it is logged, or a bare value."""
    try:
        found = orjson.loads(text) if isinstance(text, str) else text
    except orjson.JSONDecodeError:
        return [text]
    values = found if isinstance(found, list) else [text]
    return [UNDEFINED if value == {} else value for value in values]


def _time(value: Any) -> Any:
    """CSV has numbers as text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def _number(row: Mapping[str, Any], name: str) -> float | None:
    try:
        return float(row[name])
    except (KeyError, TypeError, ValueError):
        return None
