"""The ring buffers against a plain list of everything that happened."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from armillary.partition.provisioning.autoscale import HourBill, Meter
from armillary.partition.usage.history import History

PAUSE_MS = st.one_of(st.integers(0, 2_000), st.integers(0, 400_000), st.integers(0, 10_000_000))


@given(events=st.lists(st.tuples(PAUSE_MS, st.integers(0, 200), st.booleans()), max_size=80))
def test_it_tells_what_a_full_record_would(events: list[tuple[int, int, bool]]) -> None:
    history = History(100, 0)
    seconds: dict[int, int] = defaultdict(int)
    requests: dict[int, int] = defaultdict(int)
    refused: dict[int, int] = defaultdict(int)
    now_ms = 0
    for pause_ms, ru, refuse in events:
        now_ms += pause_ms
        requests[now_ms // 60_000] += 1
        if refuse:
            history.refuse(now_ms)
            refused[now_ms // 60_000] += 1
        else:
            history.record(now_ms, ru)
            seconds[now_ms // 1000] += ru
    now = now_ms // 1000
    assert history.seconds(now_ms, 300) == [seconds.get(s, 0) for s in range(now - 300, now)]
    for found in history.minutes(now_ms):
        own = [seconds.get(s, 0) for s in range(60 * found.minute, 60 * found.minute + 60)]
        assert found.normalised == min(100, max(own))
        assert found.ru == sum(own)
        assert found.requests == requests.get(found.minute, 0)
        assert found.refused == refused.get(found.minute, 0)


@given(
    events=st.lists(
        st.tuples(
            st.one_of(st.just(1), st.just(1), st.integers(1, 9), st.integers(1, 4_000)),
            st.integers(0, 5),
        ),
        max_size=60,
    )
)
def test_a_meter_bills_the_highest_level_of_five_seconds(events: list[tuple[int, int]]) -> None:
    meter = Meter(100, 0)
    shares: dict[int, float] = {}
    second, bills = 0, []
    for pause, quarters in events:
        second += pause
        shares[second] = min(1.0, quarters / 4)
        bills += meter.observe(second, quarters / 4)
    end = second // 3600 + 1
    bills += meter.finish(3600 * end)
    for hour, bill in zip(range(end), bills, strict=True):
        levels = [
            min(shares.get(s - back, 0.0) for back in range(5))
            for s in range(3600 * hour, 3600 * hour + 3600)
            if s in shares
        ]
        assert bill == HourBill(hour, max(10.0, *(100 * level for level in levels), 0.0))
