"""Rows of one kind, all of them: what a list of databases, offers or users is made of."""

from __future__ import annotations

from collections.abc import Iterator

from armillary.budget import Budget, checked
from armillary.engine.base import Reader
from armillary.store.rows.layout import after


def rows_under(reader: Reader, prefix: bytes, budget: Budget | None = None) -> Iterator[bytes]:
    """The values whose keys begin so, in the order of their keys."""
    within = checked(budget)
    for _, row in reader.scan(prefix, after(prefix)):
        within.spend()
        yield row
