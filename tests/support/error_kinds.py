"""Which errors there are: what the wire table and the documents have to cover."""

from armillary.errors import DbError


def every_kind(root: type[DbError] = DbError) -> set[type[DbError]]:
    """The subclasses this package declares, grandchildren too (tests make others)."""
    found = {kind for child in root.__subclasses__() for kind in {child} | every_kind(child)}
    return {kind for kind in found if kind.__module__.startswith("armillary.")}
