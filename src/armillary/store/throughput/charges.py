"""What an operation costs, by the one formula, from the facts it left behind."""

from collections.abc import Iterable

from armillary.partition.request_units import (
    DEFAULT,
    Coefficients,
    create_ru,
    delete_ru,
    feed_ru,
    patch_ru,
    read_ru,
    replace_ru,
)
from armillary.store.items.requests import Done


def charge_of(
    done: Done,
    unique_keys: int = 0,
    *,
    patched_paths: int = 0,
    strong: bool = False,
    profile: Coefficients = DEFAULT,
) -> float:
    match done.outcome:
        case "read":
            return read_ru(done.old_bytes, strong=strong, profile=profile)
        case "created":
            return create_ru(done.new_bytes, done.leaves_added, unique_keys, profile=profile)
        case "deleted":
            return delete_ru(done.old_bytes, done.leaves_removed, unique_keys, profile=profile)
        case "replaced":
            sizes = (done.old_bytes, done.new_bytes, done.leaves_removed, done.leaves_added)
            if patched_paths:
                return patch_ru(*sizes, patched_paths, unique_keys, profile=profile)
            return replace_ru(*sizes, unique_keys, profile=profile)
        case outcome:
            raise AssertionError(outcome)


def feed_charge(
    bodies_bytes: Iterable[int], *, strong: bool = False, profile: Coefficients = DEFAULT
) -> float:
    return feed_ru(bodies_bytes, strong=strong, profile=profile)
