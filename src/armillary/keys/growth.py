"""Changing a synthetic key in use: write by the newest specification, read by all of them.

An item keeps the key it was written with. After k grows, the newest specification computes another
suffix for the same source, so that a read must look in the old place too. Hence k only grows by
adding a specification, and old ones stay until their items are gone or rewritten.
"""

from collections.abc import Sequence
from dataclasses import replace

from armillary.encoding.paths import Path
from armillary.errors import BadInput
from armillary.keys.synthetic import Interval, Item, SyntheticKey, narrowed
from armillary.keys.views import Among
from armillary.values import JSON


def check_successor(old: SyntheticKey, new: SyntheticKey) -> None:
    """Refuses a new specification that is more than a larger k (or a first suffix)."""
    if replace(old.spec, suffix=None) != replace(new.spec, suffix=None):
        raise BadInput(
            "Only the suffix of a synthetic key can change; its path, parts, separator and escape "
            "are fixed."
        )
    before, after = old.spec.suffix, new.spec.suffix
    if before is None or before == after:
        return
    if after is None or after.k < before.k:
        raise BadInput(
            f"The number of suffixes can only grow: it is {old.k}, and {new.k} was asked for."
        )
    if (before.kind, before.source) != (after.kind, after.source):
        raise BadInput("The kind and the source of a suffix can't change.")


def candidates_over(
    keys: Sequence[SyntheticKey],
    known: Item,
    *,
    among: Among | None = None,
    between: Interval | None = None,
) -> list[str]:
    """The keys an item may have under any of the specifications, each once, in their order: with
    the newest specification first, the likeliest key is asked first.
    """
    return narrowed(_same_path(keys), known, keys, among, between)


def group_over(
    keys: Sequence[SyntheticKey],
    known: Item,
    *,
    among: Among | None = None,
    between: Interval | None = None,
) -> list[str]:
    found = (key.group(known, among=among, between=between) for key in keys)
    return list(dict.fromkeys(value for values in found for value in values))


def fits_any(keys: Sequence[SyntheticKey], item: Item, value: JSON) -> bool:
    return any(key.fits(item, value) for key in keys)


def _same_path(keys: Sequence[SyntheticKey]) -> Path:
    paths = {key.path for key in keys}
    if len(paths) != 1:
        raise BadInput("Specifications that are read together store the key at one path.")
    return paths.pop()
