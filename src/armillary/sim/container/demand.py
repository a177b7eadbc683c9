"""What clients ask for at a moment: of the container, of a region, of each range and heavy key.

With several regions each has its part of the reads; every write is charged in each region. When a
region is lost, its readers go on to the others at once, and its writes wait for the failover.
"""

import math

from armillary.sim.container.state import State
from armillary.sim.window import Load

DAY = 86_400.0


class Demand:
    """Operations per second over time."""

    def __init__(self, state: State) -> None:
        self._state = state
        given = state.scenario
        #: An absolute demand is a rate of operations: their cost may change with the ranges.
        self._rate = (
            None
            if given.demand <= 1
            else given.demand / given.workload.operation_ru(len(state.layout))
        )
        self._loads = [one for one in given.events if one.kind == "load"]

    def factor(self, t: float) -> float:
        given = self._state.scenario
        # The lowest at six in the morning, the highest at six in the evening.
        swing = 1 + given.daily * math.sin(2 * math.pi * (t / DAY - 0.5))
        grown = math.exp(math.log1p(given.load_growth) * t / DAY)
        events: float = math.prod(one.number for one in self._loads if one.at_s <= t < one.end_s)
        return swing * grown * events

    def operations(self, t: float) -> float:
        """Per second, of all clients."""
        state = self._state
        given = state.scenario
        if self._rate is not None:
            return self._rate * self.factor(t)
        cost = given.workload.operation_ru(len(state.layout))
        return given.demand * state.throughput / cost * self.factor(t)

    def load(self, t: float) -> Load:
        """Of one region; all that are alive have the same."""
        state = self._state
        work = state.scenario.workload
        mix = work.mix
        rate = self.operations(t)
        regions = len(state.alive)
        reads = rate * mix.read / regions
        writes = rate * (mix.create + mix.replace) if state.takes_writes(t) else 0.0
        single = reads + writes
        ru = (reads * work.read_ru + writes * work.write_ru) / single if single else work.single_ru
        ranges = len(state.layout)
        return Load(
            tail_ops=state.tail_ru * single,
            heavy_ops=state.population.ru.heavy * single,
            owners=state.owners,
            single_ru=ru,
            queries=rate * mix.query / regions,
            query_range_ru=work.query_ru(ranges) / ranges,
        )

    def unavailable(self, t: float) -> float:
        """Writes per second that no region takes."""
        if self._state.takes_writes(t):
            return 0.0
        mix = self._state.scenario.workload.mix
        return self.operations(t) * (mix.create + mix.replace)
