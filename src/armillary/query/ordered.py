"""The next rows by sort order from one view.

Without an index of that order: all items are looked at and the first few kept, so memory is that
of a page and time that of a scan.
"""

from __future__ import annotations

from armillary.query.consume import OrderedRow, take_ordered
from armillary.query.execute import View
from armillary.query.order import Sortable, Sorter
from armillary.query.program import Program


def fetch_ordered(
    view: View, program: Program, sorter: Sorter, after: Sortable | None, need: int
) -> list[OrderedRow]:
    return take_ordered(view.feed(program, b""), program, sorter, after, need)
