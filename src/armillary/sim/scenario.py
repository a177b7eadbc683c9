"""A container to simulate, as one value, and how it is read from files and options.

Keys of a file are the names of the options with underscores; `events` is a list, `workload` a
table.
"""

import json
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from armillary import limits
from armillary.errors import BadInput
from armillary.partition.provisioning.offers import RULES
from armillary.partition.provisioning.partitions import GB, LIMITS, OfferKind, PartitionLimits
from armillary.sim.container.growth import Growth, parse_growth
from armillary.sim.container.population import Skew, parse_skew
from armillary.sim.happenings import Happening, parse_happening
from armillary.sim.quantities import parse_bytes, parse_count, parse_seconds, parse_share
from armillary.sim.workload import Workload, parse_workload

DAY = 86_400.0
HOUR = 3600.0
START = datetime(2026, 1, 1, tzinfo=UTC)
BANDWIDTH = 100e6  # bytes a second at which one range is rewritten
DAYS_MAX = 3660
RANGES_MAX = 50_000
WINDOW_SECONDS_MAX = 3600
WINDOWS_MAX = 200
UNIFORM = Skew()
WORKLOAD = Workload()


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str = "scenario"
    about: str = ""
    storage: float = 100 * GB
    """Bytes at the beginning, index included."""
    throughput: float = 10_000
    """RU/s; the maximum with autoscale."""
    kind: OfferKind = "manual"
    keys: int = 1_000_000
    skew: Skew = UNIFORM
    """Of request units."""
    bytes_skew: Skew | None = None
    """Of bytes; without it the same."""
    partitions: int | None = None
    """At the beginning; without it as the rules give."""
    days: float = 30.0
    growth: str = "none"
    ttl_s: float | None = None
    demand: float = 0.7
    """RU/s that clients ask for; up to 1, a share of the throughput."""
    load_growth: float = 0.0
    """Of the demand, per day."""
    daily: float = 0.0
    """How far the demand swings about its mean in a day."""
    workload: Workload = WORKLOAD
    burst: bool = False
    regions: tuple[str, ...] = ("home",)
    multi_write: bool = False
    failover_s: float = HOUR
    """Until another region takes the writes of a lost one."""
    split_at: float = 0.95
    """Of the size of a partition: headroom."""
    bandwidth: float = BANDWIDTH
    limits: PartitionLimits = LIMITS
    throughput_max: float = 100_000_000
    """By the default quota 1,000,000; more is given on request."""
    events: tuple[Happening, ...] = ()
    windows: int = 6
    """Looked at second by second, evenly over the time; one more at each event."""
    window_s: int = 60
    seed: int = 1
    start: datetime = START

    @property
    def end_s(self) -> float:
        return self.days * DAY

    @property
    def grows(self) -> Growth:
        return parse_growth(self.growth, self.storage, self.end_s, self.ttl_s)


def _whole(low: float, high: float) -> Callable[[object, str], int]:
    def read(value: object, name: str) -> int:
        number = parse_count(value, name)
        if not low <= number <= high or number != int(number):
            raise BadInput(f"{name} is {value!r}; it has to be from {low:,.0f} to {high:,.0f}.")
        return int(number)

    return read


def _positive(read: Callable[[object, str], float]) -> Callable[[object, str], float]:
    def checked(value: object, name: str) -> float:
        number = read(value, name)
        if number <= 0:
            raise BadInput(f"{name} is {value!r}; it has to be above 0.")
        return number

    return checked


def _demand(value: object, name: str) -> float:
    """A share of the throughput, or RU/s."""
    if isinstance(value, str) and value.strip().endswith("%"):
        return parse_share(value, name)
    return parse_count(value, name)


def _days(value: object, name: str) -> float:
    days = parse_seconds(value, name) / DAY
    if not 0 < days <= DAYS_MAX:
        raise BadInput(f"{name} is {value!r}; it has to be above 0 and at most {DAYS_MAX} days.")
    return days


def _truth(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{name} is {value!r}; it has to be true or false.")
    return value


def _regions(value: object, name: str) -> tuple[str, ...]:
    if isinstance(value, str) and not value.strip().isdecimal():
        value = [part.strip() for part in value.split(",")]
    if isinstance(value, list) and value and all(isinstance(v, str) and v for v in value):
        found = tuple(value)
    else:
        count = _whole(1, 30)(value, name)
        found = ("home", *(f"region-{i}" for i in range(2, count + 1)))
    if len(set(found)) != len(found):
        raise BadInput(f"{name} has the same name twice.")
    return found


def _date(value: object, name: str) -> datetime:
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError as error:
        raise BadInput(f"{name} is {value!r}; it has to be a date like 2026-01-01.") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _text(value: object, name: str) -> str:
    return str(value)


#: How each key of a file, and each option, is read: (field, reader).
READERS: dict[str, tuple[str, Callable[[object, str], Any]]] = {
    "name": ("name", _text),
    "about": ("about", _text),
    "storage": ("storage", parse_bytes),
    "throughput": ("throughput", _positive(parse_count)),
    "autoscale": ("kind", lambda v, n: "autoscale" if _truth(v, n) else "manual"),
    "keys": ("keys", _whole(1, 1e13)),
    "skew": ("skew", lambda v, _: parse_skew(v)),
    "bytes_skew": ("bytes_skew", lambda v, _: parse_skew(v)),
    "partitions": ("partitions", _whole(1, RANGES_MAX)),
    "days": ("days", _days),
    "growth": ("growth", _text),
    "ttl": ("ttl_s", _positive(parse_seconds)),
    "demand": ("demand", _positive(_demand)),
    "load_growth": ("load_growth", parse_share),
    "daily": ("daily", parse_share),
    "workload": ("workload", lambda v, n: parse_workload(_table(v, n))),
    "burst": ("burst", _truth),
    "regions": ("regions", _regions),
    "multi_write": ("multi_write", _truth),
    "failover": ("failover_s", parse_seconds),
    "split_at": ("split_at", _positive(parse_share)),
    "bandwidth": ("bandwidth", _positive(parse_bytes)),
    "partition_bytes": ("partition_bytes", _positive(parse_bytes)),
    "partition_ru": ("partition_ru", _positive(parse_count)),
    "logical_bytes": ("logical_bytes", _positive(parse_bytes)),
    "events": ("events", lambda v, n: tuple(parse_happening(one) for one in _list(v, n))),
    "windows": ("windows", _whole(0, WINDOWS_MAX)),
    "window": ("window_s", lambda v, n: _window(v, n)),
    "seed": ("seed", _whole(0, 2**31)),
    "start": ("start", _date),
}


def _window(value: object, name: str) -> int:
    seconds = parse_seconds(value, name) if not isinstance(value, int) else float(value)
    if not 1 <= seconds <= WINDOW_SECONDS_MAX:
        raise BadInput(f"{name} is {value!r}; it has to be from 1 s to {WINDOW_SECONDS_MAX} s.")
    return int(seconds)


def _table(value: object, name: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise BadInput(f"{name} has to be a table.")
    return value


def _list(value: object, name: str) -> list[object]:
    if not isinstance(value, list):
        raise BadInput(f"{name} has to be a list.")
    return value


def apply(base: Scenario, given: Mapping[str, object]) -> Scenario:
    """`base` with what a file or the options say."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in READERS:
            raise BadInput(f"A scenario has no {name!r}; it has {', '.join(READERS)}.")
        field, read = READERS[name]
        found[field] = read(value, name)
    of = {
        name: int(found.pop(f"partition_{name}" if name != "logical_bytes" else name))
        for name in ("bytes", "ru", "logical_bytes")
        if (f"partition_{name}" if name != "logical_bytes" else name) in found
    }
    if of:
        found["limits"] = replace(base.limits, **of)
    return check(replace(base, **found))


def check(scenario: Scenario) -> Scenario:
    """What only shows when all of it is known."""
    step = RULES[scenario.kind].step
    if scenario.throughput % step or scenario.throughput < RULES[scenario.kind].floor:
        raise BadInput(
            f"The throughput is {scenario.throughput:g} RU/s; {scenario.kind} throughput goes in "
            f"steps of {step} from {RULES[scenario.kind].floor} on."
        )
    growth = scenario.grows  # says what is wrong with it
    largest = max(growth.live(scenario.end_s), scenario.storage) / scenario.limits.bytes
    if 2 * max(largest, scenario.throughput / scenario.limits.ru) > RANGES_MAX:
        raise BadInput(
            f"That would be more than {RANGES_MAX // 2:,} physical partitions; a simulation has at "
            f"most {RANGES_MAX // 2:,}."
        )
    for one in scenario.events:
        if one.kind == "region" and one.name not in scenario.regions:
            raise BadInput(f"An event names the region {one.name!r}; there are {scenario.regions}.")
    if sum(one.kind == "region" for one in scenario.events) and len(scenario.regions) < 2:
        raise BadInput("The loss of a region needs a second one: give regions.")
    if math.isinf(growth.written(scenario.end_s)):
        raise BadInput("The growth leaves every scale before the end.")
    return scenario


def read_file(path: Path) -> dict[str, object]:
    """A scenario as TOML or JSON."""
    text = _read(path)
    try:
        found = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path} can't be read: {error}.") from error
    if not isinstance(found, dict):
        raise BadInput(f"{path} has to be a table of settings.")
    return found


def read_events(path: Path) -> list[object]:
    """JSON Lines, or a JSON array."""
    text = _read(path)
    try:
        if text.lstrip().startswith("["):
            return _list(json.loads(text), str(path))
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except json.JSONDecodeError as error:
        raise BadInput(f"{path} can't be read: {error}.") from error


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadInput(f"{path} can't be read: {reason}.") from error


assert Scenario().throughput_max >= limits.THROUGHPUT_RU_MAX
