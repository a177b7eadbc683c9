"""Autoscale: what throughput a container is at, and what the hour costs.

The maximum is usable at once, so admission always works with it; "scaling" decides only what is
billed. The throughput of a second is the share of the maximum that was consumed without a break in
the five seconds that end with it, never below a tenth:

    consumed   20 % 100 % 100 % 100 % 100 % 100 %  30 %
    level        …    …     …    20 %  20 % 100 %  30 %      the maximum takes five full seconds

An hour is billed at the highest level it reached. One `Meter` per container, fed with the busiest
range; with dynamic autoscale one per range and region, each with its own share, and the bill is
their sum. (That the lowest of five seconds counts at every level is our reading; the original says
so of the maximum.)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from armillary.partition.provisioning.offers import AUTOSCALE_FLOOR
from armillary.partition.provisioning.partitions import OfferKind

SUSTAINED_SECONDS = 5
HOUR_SECONDS = 3600
BREAK_EVEN = 2 / 3  # mean hourly peak, as a share of the maximum: 1 / 1.5


class HourBill(NamedTuple):
    hour: int
    """Hours since 1970."""
    ru: float
    """The highest throughput of the hour."""


class Meter:
    """Consumption in, second by second; billed hours out. Seconds left out were idle."""

    __slots__ = ("_hour", "_last", "_maximum", "_peak", "_second")

    def __init__(self, maximum_ru: float, second: int) -> None:
        self._maximum = float(maximum_ru)
        self._second = second - 1
        self._last: list[float] = [0.0] * SUSTAINED_SECONDS
        self._hour = second // HOUR_SECONDS
        self._peak = self._floor

    @property
    def _floor(self) -> float:
        return self._maximum / AUTOSCALE_FLOOR

    @property
    def ru(self) -> float:
        """The throughput of the last second observed."""
        return max(self._floor, self._maximum * min(self._last))

    @property
    def peak(self) -> float:
        """The highest throughput of this hour so far."""
        return self._peak

    def observe(self, second: int, share: float) -> list[HourBill]:
        """`share` of the maximum consumed in this second: 1.0 and above is all of it. Answers the
        hours that ended before it.
        """
        assert second > self._second, "seconds come in order, each once"
        bills = self._close(second // HOUR_SECONDS)
        idle = min(SUSTAINED_SECONDS, second - self._second - 1)
        self._last = [*self._last, *([0.0] * idle), min(1.0, share)][-SUSTAINED_SECONDS:]
        self._second = second
        self._peak = max(self._peak, self.ru)
        return bills

    def finish(self, second: int) -> list[HourBill]:
        """The hours that ended before `second`, when nothing was consumed since."""
        return self._close(second // HOUR_SECONDS)

    def change(self, maximum_ru: float) -> None:
        """Another maximum from the next second on; this hour is billed at least for its floor."""
        self._maximum = float(maximum_ru)
        self._peak = max(self._peak, self._floor)

    def _close(self, hour: int) -> list[HourBill]:
        bills = []
        for ended in range(self._hour, hour):
            bills.append(HourBill(ended, self._peak))
            self._peak = self._floor
        self._hour = max(self._hour, hour)
        return bills


@dataclass(frozen=True, slots=True)
class Level:
    """Where something with a maximum is, by what it consumed."""

    current: float
    hours: tuple[HourBill, ...]
    """The highest of each hour that is known, this one last."""

    @property
    def peak(self) -> float:
        return self.hours[-1].ru


def level_of(
    maximum_ru: float, first_second: int, seconds_ru: Sequence[float], now_s: int
) -> Level:
    """From the RU of each second since `first_second`. The current second is not over: it does not
    count yet.
    """
    meter = Meter(maximum_ru, min(first_second, now_s))
    ended: list[HourBill] = []
    for second, ru in enumerate(seconds_ru, first_second):
        if ru > 0.0 and second < now_s - 1:
            ended += meter.observe(second, ru / maximum_ru)
    if first_second < now_s:
        last = now_s - 1 - first_second
        used = seconds_ru[last] if last < len(seconds_ru) else 0.0
        ended += meter.observe(now_s - 1, used / maximum_ru)
    ended += meter.finish(now_s)
    return Level(meter.ru, (*ended, HourBill(now_s // HOUR_SECONDS, meter.peak)))


# --- what an hour is billed for, from peaks -------------------------------------------------------


def billed_ru(maximum_ru: float, peaks: Sequence[Sequence[float]]) -> float:
    """`peaks[region][range]`: the highest sustained RU/s of the hour. Every region is billed like
    the busiest range of any of them.
    """
    share = max(
        (peak / (maximum_ru / len(region)) for region in peaks for peak in region), default=0.0
    )
    return len(peaks) * maximum_ru * _bounded(share)


def billed_ru_dynamic(maximum_ru: float, peaks: Sequence[Sequence[float]]) -> float:
    """Every range of every region by itself."""
    return sum(
        maximum_ru / len(region) * _bounded(peak / (maximum_ru / len(region)))
        for region in peaks
        for peak in region
    )


def _bounded(share: float) -> float:
    return min(1.0, max(1 / AUTOSCALE_FLOOR, share))


# --- money ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prices:
    """US list prices, dollars per 100 RU/s and hour, per million RU, per GB and month."""

    manual: float = 0.008
    autoscale: float = 0.012
    multi_write: float = 0.016
    """Either kind, when every region takes writes."""
    serverless_million: float = 0.25
    storage_gb_month: float = 0.25


PRICES = Prices()


def hour_cost(
    ru: float, kind: OfferKind, *, multi_write: bool = False, prices: Prices = PRICES
) -> float:
    rates = {"manual": prices.manual, "autoscale": prices.autoscale}
    return ru / 100 * (prices.multi_write if multi_write else rates[kind])


def cheaper_kind(
    maximum_ru: float,
    hourly_ru: Iterable[float],
    *,
    multi_write: bool = False,
    prices: Prices = PRICES,
) -> OfferKind:
    """The kind to prefer for hours with these peaks, against the maximum provisioned by hand.
    Autoscale below two thirds of mean utilisation; with multi-region writes it never costs more.
    """
    hours = [max(maximum_ru / AUTOSCALE_FLOOR, ru) for ru in hourly_ru]
    scaled = sum(hour_cost(ru, "autoscale", multi_write=multi_write, prices=prices) for ru in hours)
    flat = len(hours) * hour_cost(maximum_ru, "manual", multi_write=multi_write, prices=prices)
    return "autoscale" if scaled < flat else "manual"
