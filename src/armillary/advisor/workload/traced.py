"""What a trace says alongside its operations: a workload of their templates, and items it wrote."""

from collections.abc import Iterator
from dataclasses import replace

from armillary.advisor.workload.model import WHOLE_ITEM, Operation, Workload
from armillary.advisor.workload.operations import TimedOperation
from armillary.advisor.workload.traces import Trace
from armillary.encoding.paths import Path
from armillary.errors import BadInput
from armillary.keys.views import put
from armillary.values import JSON

_Same = tuple[str, tuple[Path, ...], str | None]


def workload_of(trace: Trace) -> Workload:
    """Every template with the rate at which it occurred."""
    found: dict[_Same, Operation] = {}
    counts: dict[_Same, int] = {}
    for one in trace.operations:
        template = one.template or Operation(one.kind, 0.0, tuple(one.fields), name=one.kind)
        same = (template.kind, tuple(sorted(template.by)), template.text)
        found.setdefault(same, template)
        counts[same] = counts.get(same, 0) + 1
    if not found:
        raise BadInput(f"The trace has no operation to go by. {' '.join(trace.problems)}")
    operations = [replace(one, rate=counts[same] / trace.seconds) for same, one in found.items()]
    return Workload(tuple(operations), tuple(trace.problems))


def items_of(trace: Trace) -> Iterator[dict[str, JSON]]:
    """The items that the trace wrote; where it wrote none, what it knows of those it read."""
    written = [one for one in trace.operations if one.kind in WHOLE_ITEM or one.items]
    for one in written or trace.operations:
        yield from _items(one)


def _items(one: TimedOperation) -> Iterator[dict[str, JSON]]:
    for fields in one.items or (one.fields,):
        item: dict[str, JSON] = {} if one.id is None else {"id": one.id}
        for path, value in fields.items():
            item = put(item, path, value)
        if item:
            yield item
