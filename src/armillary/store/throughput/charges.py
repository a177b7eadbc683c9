"""What an operation costs, by the one formula, from the facts it left behind."""

from typing import Final

from armillary.partition.request_units import (
    DEFAULT,
    Coefficients,
    create_ru,
    delete_ru,
    patch_ru,
    read_ru,
    replace_ru,
)
from armillary.store.items.requests import Done

READ_PRICES_MAX: Final = 4_096


def charge_of(
    done: Done,
    unique_keys: int = 0,
    *,
    patched_paths: int = 0,
    profile: Coefficients = DEFAULT,
) -> float:
    match done.outcome:
        case "read":
            return read_ru(done.old_bytes, profile=profile)
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


class ReadPrices(dict[int, float]):
    """What a point read of so many bytes costs, computed once for each size."""

    def __init__(self, profile: Coefficients) -> None:
        super().__init__()
        self._curve = profile.read

    def __missing__(self, body_bytes: int) -> float:
        if len(self) >= READ_PRICES_MAX:
            self.clear()
        ru = self[body_bytes] = self._curve.at(body_bytes)
        return ru
