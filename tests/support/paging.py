"""What tests do to a container between two pages of a query."""

from __future__ import annotations

from tests.support.accounts import store_of

from armillary.container import Container
from armillary.errors import BadInput, NotSplittable
from armillary.store.moves.runner import begin_merge, begin_split


def split_first(container: Container) -> None:
    """Split the first range that can be split; none when there is no such range."""
    store = store_of(container)
    for owner in store.refresh().table.ranges:
        try:
            begin_split(store, owner.ordinal).run()
        except (NotSplittable, BadInput):
            continue
        return


def merge_first(container: Container) -> None:
    first, second, *_ = store_of(container).refresh().table.ranges
    begin_merge(store_of(container), [first.ordinal, second.ordinal]).run()
