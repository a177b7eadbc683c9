"""Consumption that outlives splits and merges: what a range used goes on in its descendants.

    range 0   RU 900, 12 refusals,     split     range 1   the keys below the cut, their part
              keys a 500, b 100   ──────────▶    range 2   the others, and the rest

Every former range is divided once among the ranges of today that descend from it, so sums over the
container stay what they were. Its known keys say where its consumption belongs; what no key
explains is divided evenly. Numbers that can't be divided (a latency, the dearest request) are kept
as they were measured. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import add

from armillary.partition.usage.consumption import TOP_KEYS, PartitionHeat
from armillary.partition.usage.heat import KeyHeat
from armillary.partition.usage.history import Minute
from armillary.partition.usage.normalised import normalised_minute

#: Which range of today a key belongs to; None when it is not known.
Place = Callable[[str], int | None]


def with_inherited(
    own: Mapping[int, PartitionHeat],
    former: Mapping[int, PartitionHeat],
    descendants: Mapping[int, Sequence[int]],
    place: Place,
    budgets: Mapping[int, float],
) -> dict[int, PartitionHeat]:
    """`own`: by range of today; `former`: by range that is no more; `descendants`: by whom it is
    inherited; `budgets`: RU/s of the ranges of today, 0 for none."""
    parts: dict[int, list[PartitionHeat]] = {one: [heat] for one, heat in own.items()}
    for ancestor, heat in former.items():
        heirs = descendants[ancestor]
        for heir, part in zip(heirs, _divided(heat, heirs, place), strict=True):
            parts.setdefault(heir, []).append(part)
    return {
        one: found[0] if len(found) == 1 and one in own else _joined(one, found, budgets[one])
        for one, found in parts.items()
    }


def divided(count: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers that are about `shares` of `count`, and exactly `count` together."""
    edges = [0]
    for share in shares[:-1]:
        edges.append(min(count, edges[-1] + round(count * share)))
    return [end - start for start, end in pairwise([*edges, count])]


def _divided(heat: PartitionHeat, heirs: Sequence[int], place: Place) -> list[PartitionHeat]:
    keys: dict[int, list[KeyHeat]] = {one: [] for one in heirs}
    for key in heat.top_keys:
        where = place(key.key)
        if where in keys:
            keys[where].append(key)
    shares = _shares(keys)
    requests = {name: divided(count, shares) for name, count in heat.requests.items()}
    refused = divided(heat.throttled_last_min, shares)
    minutes = [_minutes(minute, shares) for minute in heat.minutes]
    return [
        replace(
            heat,
            partition=heir,
            ru_last_s=heat.ru_last_s * share,
            ru_total=heat.ru_total * share,
            requests={name: counts[at] for name, counts in requests.items() if counts[at]},
            throttled_last_min=refused[at],
            minutes=tuple(minute[at] for minute in minutes),
            top_keys=tuple(replace(key, share=key.share / share) for key in keys[heir]),
            seconds=tuple(second * share for second in heat.seconds),
        )
        for at, (heir, share) in enumerate(zip(heirs, shares, strict=True))
    ]


def _shares(keys: Mapping[int, Sequence[KeyHeat]]) -> list[float]:
    """Of the consumption, by heir. `share` of a key is of all that its range used."""
    known = {heir: sum(key.share for key in found) for heir, found in keys.items()}
    rest = max(0.0, 1.0 - sum(known.values())) / len(known)
    shares = [share + rest for share in known.values()]
    total = sum(shares)
    return [share / total for share in shares]


def _minutes(minute: Minute, shares: Sequence[float]) -> list[Minute]:
    requests, refused = divided(minute.requests, shares), divided(minute.refused, shares)
    return [
        minute._replace(ru=minute.ru * share, requests=requests[at], refused=refused[at])
        for at, share in enumerate(shares)
    ]


def _joined(partition: int, parts: Sequence[PartitionHeat], ru: float) -> PartitionHeat:
    return replace(_normalised(reduce(_add, parts), ru), partition=partition)


def _add(one: PartitionHeat, other: PartitionHeat) -> PartitionHeat:
    requests = dict(one.requests)
    for name, count in other.requests.items():
        requests[name] = requests.get(name, 0) + count
    measured = one if one.requests else other
    dearest = max(one, other, key=lambda heat: heat.dearest_ru)
    return PartitionHeat(
        partition=one.partition,
        ru_last_s=one.ru_last_s + other.ru_last_s,
        ru_total=one.ru_total + other.ru_total,
        requests=requests,
        throttled_last_min=one.throttled_last_min + other.throttled_last_min,
        latency_p50_ms=measured.latency_p50_ms,
        latency_p99_ms=measured.latency_p99_ms,
        minutes=tuple(map(_add_minutes, one.minutes, other.minutes)),
        top_keys=_add_keys(one.top_keys, other.top_keys),
        seconds=tuple(map(add, one.seconds, other.seconds)),
        dearest_ru=dearest.dearest_ru,
        dearest_operation=dearest.dearest_operation,
    )


def _add_minutes(one: Minute, other: Minute) -> Minute:
    return Minute(
        one.minute,
        0.0,  # said anew, when all parts are there
        one.ru + other.ru,
        one.requests + other.requests,
        one.refused + other.refused,
    )


def _add_keys(one: Sequence[KeyHeat], other: Sequence[KeyHeat]) -> tuple[KeyHeat, ...]:
    total = sum(found[0].ru / found[0].share for found in (one, other) if found)
    used: dict[str, float] = {}
    for key in (*one, *other):
        used[key.key] = used.get(key.key, 0.0) + key.ru
    heaviest = sorted(used.items(), key=lambda row: -row[1])[:TOP_KEYS]
    return tuple(KeyHeat(key, ru, ru / total) for key, ru in heaviest)


def _normalised(heat: PartitionHeat, ru: float) -> PartitionHeat:
    if ru <= 0:
        return heat
    minutes = tuple(
        minute._replace(normalised=normalised_minute(heat.seconds[60 * i : 60 * (i + 1)], ru))
        for i, minute in enumerate(heat.minutes)
    )
    return replace(heat, minutes=minutes)
