"""The counters of several processes as one picture."""

from armillary.partition.usage.consumption import combine, refusals
from armillary.partition.usage.counters import Recorder

NOW = 1_700_000_000_000


def test_refusals_are_those_of_the_heat() -> None:
    """Events read the fast path what reports read in full: both must tell the same."""
    one, other = Recorder(), Recorder()
    for recorder, times in ((one, 3), (other, 2)):
        for _ in range(times):
            recorder.record(7, b"k", 0.0, 429, 0.0, "create", NOW)
            recorder.record(7, b"k", 5.0, 201, 0.0, "create", NOW)
            recorder.record(8, b"k", 0.0, 429, 0.0, "read", NOW)
    blocks = [*one.blocks(), *other.blocks()]
    heat = combine(blocks, [], NOW, {7: 400.0, 8: 400.0})
    counted = {
        partition: sum(n for (_, status), n in found.requests.items() if status == 429)
        for partition, found in heat.items()
    }
    assert refusals(blocks, {7, 8}) == counted == {7: 5, 8: 5}
    assert refusals(blocks, {7}) == {7: 5}
