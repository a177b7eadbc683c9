"""Normalised consumption: how close a partition came to its budget, in per cent.

    NRU(range, minute) = the highest of its seconds of min(100, 100 · consumed / r)
    NRU(container)     = the highest of its ranges

The maximum and not the mean, because a second at 100 % is a second with refusals. Two ranges of
10,000 RU/s that use 6,000 and 8,000 in one second are at 60 % and 80 %, and the container at 80 %.
"""

from collections.abc import Iterable

CHART_RANGES_MAX = 50  # range ids that a chart lists


def normalised(consumed_ru: float, ru: float) -> float:
    """Of one second."""
    return min(100.0, 100.0 * consumed_ru / ru)


def normalised_minute(seconds_ru: Iterable[float], ru: float) -> float:
    """Of one range in one minute, from what its seconds consumed."""
    return normalised(max(seconds_ru, default=0.0), ru)


def normalised_container(ranges: Iterable[float]) -> float:
    return max(ranges, default=0.0)
