"""Steps that see all traversers of their scope: order, dedup, limit, range, tail, sample."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, Final

from armillary.api.gremlin.errors import ScriptError
from armillary.api.gremlin.language.nodes import Enum
from armillary.api.gremlin.machine.running import TRAVERSER_BYTES, LooksAt, Run, Stage, Step
from armillary.api.gremlin.machine.traverser import Traverser, each, start
from armillary.api.gremlin.machine.values import (
    Entry,
    Map,
    Path,
    hash_key,
    is_number,
    order_key,
    type_name,
)
from armillary.api.gremlin.steps.base import (
    IDENTITY,
    MISSING,
    Args,
    By,
    LocalStep,
    Modulated,
    Spec,
    cycled,
)
from armillary.api.gremlin.steps.select import scope_value

INT32_MAX: Final = 2**31 - 1
WEIGHT_MAX: Final = 1e200  # of one of a sample: their sum is to be a number


class Keeping(Stage):
    """Keeps everything until the end."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.kept: list[Traverser] = []

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        self.kept += traversers
        self.run.budget.hold(TRAVERSER_BYTES * len(traversers))
        return []

    def taken(self) -> list[Traverser]:
        kept, self.kept = self.kept, []
        self.run.budget.release(TRAVERSER_BYTES * len(kept))
        return kept


# --- order ----------------------------------------------------------------------------------------


class OrderStep(Modulated):
    name = "order"
    stateful = True

    def begin(self, run: Run) -> Stage:
        return _Ordering(self, run)


class _Ordering(Keeping):
    def __init__(self, step: OrderStep, run: Run) -> None:
        super().__init__(run)
        self._bys = step.bys or [IDENTITY]

    def end(self) -> list[Traverser]:
        kept = self.taken()
        self.run.budget.check()
        return sorted_by(kept, self._bys, self.run)


def sorted_by(traversers: list[Traverser], bys: Sequence[By], run: Run) -> list[Traverser]:
    order = list(range(len(traversers)))
    for by in reversed(bys):
        if by.order == "shuffle":
            run.random.shuffle(order)
            continue
        keys = [_sortable(value) for value in by.needed(traversers, run)]
        order.sort(key=keys.__getitem__, reverse=by.order == "decr")
    return [traversers[at] for at in order]


def _sortable(value: Any) -> tuple[int, Any]:
    if isinstance(value, list):
        raise ScriptError("Cannot order by a list of values.")
    return order_key(value)


class LocalOrderStep(Modulated):
    name = "order"

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        return [one.at(self._of(one.object, run), run.tracked) for one in traversers]

    def _of(self, object: Any, run: Run) -> Any:
        bys = self.bys or [By()]
        if isinstance(object, list):
            items = [start(one, run.tracked) for one in object]
            return [one.object for one in sorted_by(items, bys, run)]
        if isinstance(object, Map):
            entries = [start(Entry(key, value), run.tracked) for key, value in object.items()]
            found = [one.object for one in sorted_by(entries, bys, run)]
            return Map((one.key, one.value) for one in found)
        return object


# --- dedup ----------------------------------------------------------------------------------------


class DedupStep(Modulated):
    name = "dedup"
    stateful = True
    bys_max = 1

    def __init__(self, labels: tuple[str, ...]) -> None:
        super().__init__()
        self.names = labels

    @property
    def looks_at(self) -> LooksAt:  # type: ignore[override]
        return "documents" if self.names or self.bys else "nothing"

    @property
    def looks_back(self) -> bool:
        return bool(self.names)

    def begin(self, run: Run) -> Stage:
        return _Deduplicating(self, run)


class _Deduplicating(Stage):
    def __init__(self, step: DedupStep, run: Run) -> None:
        self._step = step
        self._run = run
        self._seen: set[Hashable] = set()

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        found = []
        before = len(self._seen)
        for one, key in zip(traversers, self._keys(traversers), strict=True):
            if key is None or key in self._seen:
                continue
            self._seen.add(key)
            if one.bulk > 1:
                one = one.copy()
                one.bulk = 1
            found.append(one)
        self._run.budget.hold(TRAVERSER_BYTES * (len(self._seen) - before))
        return found

    def _keys(self, traversers: list[Traverser]) -> list[Hashable]:
        names, run, by = self._step.names, self._run, cycled(self._step.bys, 0)
        if not names:
            return [(hash_key(value),) for value in by.needed(traversers, run)]
        keys: list[Hashable] = []
        for one in traversers:
            row = [scope_value(one, name, run) for name in names]
            if any(value is MISSING for value in row):
                keys.append(None)
                continue
            keys.append(tuple(hash_key(value) for value in by.of_objects(row, run)))
        return keys


class LocalDedupStep(Step):
    name = "dedup"

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        return [one.at(_distinct(one.object), run.tracked) for one in traversers]


def _distinct(object: Any) -> Any:
    if not isinstance(object, list):
        return object
    return list({hash_key(one): one for one in reversed(object)}.values())[::-1]


# --- parts of the stream --------------------------------------------------------------------------


class RangeStep(Step):
    """limit, range, skip."""

    stateful = True
    looks_at = "nothing"

    def __init__(self, name: str, low: int, high: int) -> None:
        self.name = name
        self.low = low
        self.high = high
        """-1: no end."""

    def begin(self, run: Run) -> Stage:
        return _Ranging(self)


class _Ranging(Stage):
    def __init__(self, step: RangeStep) -> None:
        self._low = step.low
        self._high = step.high
        self._seen = 0
        self.full = step.high == 0

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        count = len(traversers)
        if not self.full and sum([one.bulk for one in traversers]) == count:  # each is one
            begin = self._seen
            self._seen += count
            if self._high >= 0:
                self.full = self._seen >= self._high
                count = min(count, self._high - begin)
            return traversers[max(0, self._low - begin) : count]
        found = []
        for one in traversers:
            if self.full:
                break
            low, high = self._seen, self._seen + one.bulk
            self._seen = high
            if self._high >= 0:
                self.full = high >= self._high
                high = min(high, self._high)
            bulk = high - max(low, self._low)
            if bulk <= 0:
                continue
            if bulk < one.bulk:
                one = one.copy()
                one.bulk = bulk
            found.append(one)
        return found


class TailStep(Step):
    name = "tail"
    stateful = True
    looks_at = "nothing"

    def __init__(self, count: int) -> None:
        self.count = count

    def begin(self, run: Run) -> Stage:
        return _Tailing(self.count, run)


class _Tailing(Stage):
    def __init__(self, count: int, run: Run) -> None:
        self._count = count
        self._kept: list[Traverser] = []

    def feed(self, traversers: list[Traverser]) -> list[Traverser]:
        kept = [*self._kept, *each(traversers)]
        self._kept = kept[len(kept) - self._count :] if len(kept) > self._count else kept
        return []

    def end(self) -> list[Traverser]:
        kept, self._kept = self._kept, []
        return kept


class LocalRangeStep(LocalStep):
    """limit(local, n), range(local, a, b), tail(local, n)."""

    def __init__(self, name: str, low: int, high: int) -> None:
        self.name = name
        self.low = low
        self.high = high

    def of(self, object: Any) -> Any:
        if isinstance(object, Path):
            low, high = self._bounds(len(object.objects))
            return Path(object.objects[low:high], object.labels[low:high])
        if isinstance(object, Map):
            low, high = self._bounds(len(object))
            return Map(list(object.items())[low:high])
        if not isinstance(object, list | tuple):
            return object
        low, high = self._bounds(len(object))
        part = list(object[low:high])
        if self._is_single():
            return part[0] if part else MISSING
        return part

    def _is_single(self) -> bool:
        return self.low == 1 if self.name == "tail" else self.high - self.low == 1

    def _bounds(self, size: int) -> tuple[int, int]:
        if self.name == "tail":
            return max(0, size - self.low), size
        return self.low, size if self.high < 0 else self.high


class SampleStep(Modulated):
    name = "sample"
    stateful = True
    bys_max = 1

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def begin(self, run: Run) -> Stage:
        return _Sampling(self, run)


class _Sampling(Keeping):
    def __init__(self, step: SampleStep, run: Run) -> None:
        super().__init__(run)
        self._step = step

    def end(self) -> list[Traverser]:
        kept = each(self.taken())
        run, count = self.run, self._step.count
        if not self._step.bys:
            return kept if len(kept) <= count else run.random.sample(kept, count)
        weights = [_weight(one) for one in self._step.bys[0].needed(kept, run)]
        chosen: list[Traverser] = []
        while kept and len(chosen) < count:
            at = run.random.choices(range(len(kept)), [w or 1e-12 for w in weights])[0]
            chosen.append(kept.pop(at))
            weights.pop(at)
        return chosen


def _weight(value: Any) -> float:
    """Chosen by chance: what is not a weight (less than nothing, no number at all, too large) would
    be a choice of its own."""
    if not is_number(value):
        raise ScriptError(f"{type_name(value)} is not a number: {value!r}")
    try:
        weight = float(value)
    except OverflowError:
        weight = math.inf
    return min(weight, WEIGHT_MAX) if weight > 0.0 else 0.0  # NaN is not


class LocalSampleStep(Step):
    name = "sample"

    def __init__(self, count: int) -> None:
        self.count = count

    def apply(self, traversers: list[Traverser], run: Run) -> list[Traverser]:
        def of(object: Any) -> Any:
            if isinstance(object, list) and len(object) > self.count:
                return run.random.sample(object, self.count)
            return object

        return [one.at(of(one.object), run.tracked) for one in traversers]


class BarrierStep(Step):
    name = "barrier"
    stateful = True
    looks_at = "nothing"

    def begin(self, run: Run) -> Stage:
        return _Barrier(run)


class _Barrier(Keeping):
    def end(self) -> list[Traverser]:
        return self.taken()


# --- making them ----------------------------------------------------------------------------------


def _scope(args: Args) -> tuple[bool, list[Any]]:
    values = list(args.values)
    if values and isinstance(values[0], Enum) and values[0].type == "Scope":
        return values.pop(0).name == "local", values
    return False, values


def _order(args: Args) -> Step:
    local, rest = _scope(args)
    if rest:
        raise args.bad()
    return LocalOrderStep() if local else OrderStep()


def _dedup(args: Args) -> Step:
    local, rest = _scope(args)
    if local:
        return LocalDedupStep()
    return DedupStep(args.strings(rest))


def _count(args: Args, value: Any) -> int:
    if type(value) is not int or not -INT32_MAX - 1 <= value <= INT32_MAX:
        raise args.bad()
    return value


def _range(args: Args) -> Step:
    local, rest = _scope(args)
    if len(rest) != (2 if args.name == "range" else 1):
        raise args.bad()
    numbers = [_count(args, one) for one in rest]
    match args.name:
        case "range":
            low, high = numbers
        case "limit":
            low, high = 0, numbers[0]
        case _:
            low, high = numbers[0], -1
    if low < 0 or high < -1 or (high >= 0 and low > high):
        raise ScriptError(f"Not a legal range: [{low}, {high}]", "syntax", args.at)
    return LocalRangeStep(args.name, low, high) if local else RangeStep(args.name, low, high)


def _tail(args: Args) -> Step:
    local, rest = _scope(args)
    if len(rest) > 1:
        raise args.bad()
    count = _count(args, rest[0]) if rest else 1
    if count < 0:
        raise ScriptError(f"Not a legal range: [{count}]", "syntax", args.at)
    return LocalRangeStep("tail", count, -1) if local else TailStep(count)


def _sample(args: Args) -> Step:
    local, rest = _scope(args)
    if len(rest) != 1:
        raise args.bad()
    count = max(0, _count(args, rest[0]))  # as TinkerPop: nothing is chosen
    return LocalSampleStep(count) if local else SampleStep(count)


def _barrier(args: Args) -> Step:
    return BarrierStep()


SPECS = (
    Spec(
        "order",
        _order,
        "([local]).by(x[, incr|decr])",
        "sorts, stable; several by() break ties; types before values",
    ),
    Spec("dedup", _dedup, "(label..).by(..)", "each object, or tuple of labelled values, once"),
    Spec("limit", _range, "([local,] n)", "the first n"),
    Spec("range", _range, "([local,] a, b)", "from a until b; -1: to the end"),
    Spec("skip", _range, "([local,] n)", "all but the first n", extra=True),
    Spec("tail", _tail, "([local,] n)", "the last n"),
    Spec("sample", _sample, "([local,] n).by(..)", "n by chance, by() is their weight"),
    Spec("barrier", _barrier, "()", "all of them before the first goes on", extra=True),
)
