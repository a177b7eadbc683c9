"""What is recorded can be read again, second by second. Without these the portal and the detector
would show somebody else's numbers.
"""

from __future__ import annotations

import struct
import threading

import pytest

from armillary.errors import StorageFull
from armillary.limits import (
    COUNTER_KEY_BYTES_WAITING,
    COUNTER_KEYS,
    COUNTER_KEYS_SECONDS,
    COUNTER_SKETCHES_MAX,
)
from armillary.partition.usage import counters
from armillary.partition.usage.consumption import PartitionHeat, combine, find_hot
from armillary.partition.usage.counters import BLOCK_BYTES, SECONDS, MemoryBoard, Recorder, Sketches
from armillary.partition.usage.heat import Cause

T0 = 1_700_000_040_000  # the beginning of a minute
BUDGETS = {1: 400.0, 2: 400.0}


def record(
    recorder: Recorder,
    now_ms: int,
    ru: float = 5.0,
    *,
    partition: int = 1,
    key: bytes = b'["a"]',
    status: int = 200,
    latency_ms: float = 1.0,
    operation: str = "read",
) -> None:
    recorder.record(partition, key, ru, status, latency_ms, operation, now_ms)


def look(recorder: Recorder, now_ms: int) -> dict[int, PartitionHeat]:
    return combine(recorder.blocks(), [recorder.sketches(now_ms)], now_ms, BUDGETS)


def test_requests_are_counted_by_operation_and_status() -> None:
    recorder = Recorder()
    record(recorder, T0, operation="create", status=201)
    record(recorder, T0, operation="create", status=201)
    record(recorder, T0, operation="query")
    record(recorder, T0, operation="dance", status=418)
    heat = look(recorder, T0)[1]
    assert heat.requests == {("create", 201): 2, ("query", 200): 1, ("other", 0): 1}
    assert heat.request_count == 4
    assert heat.ru_total == 20.0


def test_partitions_are_apart() -> None:
    recorder = Recorder()
    record(recorder, T0, 3.0, partition=1)
    record(recorder, T0, 4.0, partition=2)
    heat = look(recorder, T0 + 1000)
    assert {p: h.ru_last_s for p, h in heat.items()} == {1: 3.0, 2: 4.0}


def test_the_last_second_is_the_last_whole_one() -> None:
    recorder = Recorder()
    record(recorder, T0 + 999, 7.0)
    record(recorder, T0 + 1000, 9.0)
    assert look(recorder, T0 + 1500)[1].ru_last_s == 7.0
    assert look(recorder, T0 + 2500)[1].ru_last_s == 9.0
    assert look(recorder, T0 + 3500)[1].ru_last_s == 0.0


def test_normalised_is_the_busiest_second_of_the_minute_over_all_processes() -> None:
    one, two = Recorder(), Recorder()
    record(one, T0 + 1000, 100.0)
    record(two, T0 + 1000, 60.0)
    record(one, T0 + 2000, 120.0)
    record(two, T0 + 3000, 130.0)
    now_ms = T0 + 59_000
    heat = combine([*one.blocks(), *two.blocks()], [], now_ms, BUDGETS)[1]
    assert heat.minutes[-1].normalised == 40.0  # not (120 + 130) / 400
    assert heat.minutes[-1].ru == 410.0
    assert heat.minutes[-1].requests == 4
    assert heat.normalised == 40.0


def test_an_hour_is_kept_minute_by_minute() -> None:
    recorder = Recorder()
    for minute in range(100):
        record(recorder, T0 + 60_000 * minute, float(minute + 1))
    now_ms = T0 + 60_000 * 99
    minutes = look(recorder, now_ms)[1].minutes
    assert [m.minute for m in minutes] == list(range(now_ms // 60_000 - 60, now_ms // 60_000 + 1))
    assert [m.ru for m in minutes] == [float(m) for m in range(40, 101)]
    assert {m.requests for m in minutes} == {1}


@pytest.mark.parametrize("idle_s", [1, 59, 60, 61, 3_599, SECONDS - 1, SECONDS, 10 * SECONDS])
def test_time_that_passed_idle_is_empty(idle_s: int) -> None:
    recorder = Recorder()
    for second in range(0, SECONDS, 7):
        record(recorder, T0 + 1000 * second, 1.0)
    newest = (SECONDS - 1) // 7 * 7
    later = newest + idle_s
    record(recorder, T0 + 1000 * later, 50.0)
    minutes = look(recorder, T0 + 1000 * later)[1].minutes
    first = (T0 // 1000 + later) // 60 * 60 - 3_600 - T0 // 1000
    expected = sum(1.0 for second in range(0, SECONDS, 7) if second >= first)
    assert sum(m.ru for m in minutes) == expected + 50.0
    assert sum(m.requests for m in minutes) == expected + 1


def test_what_is_read_long_after_is_over() -> None:
    recorder = Recorder()
    record(recorder, T0, 50.0)
    heat = look(recorder, T0 + 2 * 3_600_000)[1]
    assert sum(m.ru for m in heat.minutes) == 0.0
    assert heat.ru_total == 50.0
    assert heat.top_keys == ()


def test_a_clock_that_stepped_back_counts_in_the_newest_second() -> None:
    recorder = Recorder()
    record(recorder, T0 + 5_000, 1.0)
    record(recorder, T0, 2.0)
    assert look(recorder, T0 + 6_000)[1].ru_last_s == 3.0


def test_refusals_are_counted_but_heat_no_key() -> None:
    recorder = Recorder()
    record(recorder, T0 - 61_000, 0.0, status=429)
    record(recorder, T0 - 1, 0.0, status=429, key=b'["b"]')
    record(recorder, T0, 0.0, status=429)
    record(recorder, T0, 1.0)
    heat = look(recorder, T0)[1]
    assert heat.throttled_last_min == 2
    assert [m.refused for m in heat.minutes[-3:]] == [1, 1, 1]
    assert [key.key for key in heat.top_keys] == ['["a"]']


@pytest.mark.parametrize("latency_ms", [0.003, 0.05, 0.7, 1.0, 3.0, 20.0, 450.0, 9_000.0])
def test_latency_is_right_to_a_fifth(latency_ms: float) -> None:
    recorder = Recorder()
    for _ in range(98):
        record(recorder, T0, latency_ms=latency_ms)
    for _ in range(2):
        record(recorder, T0, latency_ms=30 * latency_ms)
    heat = look(recorder, T0)[1]
    assert heat.latency_p50_ms == pytest.approx(latency_ms, rel=0.2)
    assert heat.latency_p99_ms == pytest.approx(30 * latency_ms, rel=0.2)


def test_latencies_beyond_all_buckets_are_in_the_last() -> None:
    recorder = Recorder()
    record(recorder, T0, latency_ms=1e12)
    record(recorder, T0, latency_ms=0.0)
    assert look(recorder, T0)[1].latency_p99_ms > 1e6


def test_the_heaviest_keys_have_their_share() -> None:
    recorder = Recorder()
    for i in range(1_000):
        record(recorder, T0, 1.0, key=b'["%d"]' % i)
    record(recorder, T0, 1_000.0, key=b'["hot"]')
    top = look(recorder, T0)[1].top_keys
    assert top[0].key == '["hot"]'
    assert top[0].share == pytest.approx(0.5, abs=1 / COUNTER_KEYS)
    assert len(top) == 20


def test_long_keys_are_not_held_by_the_thousand() -> None:
    """A key may have 2 KB, and a process 200 such lists."""
    recorder = Recorder()
    for i in range(900):
        record(recorder, T0, 1.0, key=b'["%02000d"]' % i)
        record(recorder, T0, 1.0, key=b'["%d"]' % i)
    (sketch,) = recorder._sketches.values()
    held = [*sketch._counts, *sketch._waiting]
    assert sum(len(key) > COUNTER_KEY_BYTES_WAITING for key in held) <= COUNTER_KEYS
    record(recorder, T0, 1_800.0, key=b'["%02000d"]' % 7)
    assert look(recorder, T0)[1].top_keys[0].key == f'["{7:02000}"]'


def test_old_keys_are_forgotten() -> None:
    recorder = Recorder()
    window_ms = 1000 * COUNTER_KEYS_SECONDS
    begin = T0 // window_ms * window_ms
    for window, key in enumerate((b'["a"]', b'["b"]', b'["c"]')):
        record(recorder, begin + window * window_ms, 1.0, key=key)
    top = look(recorder, begin + 2 * window_ms)[1].top_keys
    assert {key.key for key in top} == {'["b"]', '["c"]'}
    assert {key.share for key in top} == {0.5}
    assert look(recorder, begin + 9 * window_ms)[1].top_keys == ()


def test_partitions_beyond_the_limit_are_dropped_and_said_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counters, "COUNTER_PARTITIONS_MAX", 2)
    recorder = Recorder()
    for partition in (1, 2, 3, 1):
        record(recorder, T0, partition=partition)
    assert sorted(look(recorder, T0)) == [1, 2]
    assert recorder.dropped == 1


def test_on_a_full_disk_requests_are_served_uncounted_and_counted_when_there_is_room() -> None:
    class FullBoard(MemoryBoard):
        room = False

        def block(self) -> memoryview:
            if not self.room:
                raise StorageFull("planted")
            return super().block()

        def publish(self, sketches: Sketches, now_ms: int) -> None:
            raise StorageFull("planted")

    board = FullBoard()
    recorder = Recorder(board)
    record(recorder, T0)
    recorder.flush(T0)
    assert recorder.dropped == 1
    board.room = True
    record(recorder, T0)
    assert recorder.dropped == 1
    assert look(recorder, T0)[1].requests == {("read", 200): 1}


def test_sketches_are_bounded_and_every_key_gets_another_chance() -> None:
    recorder = Recorder()
    for partition in range(COUNTER_SKETCHES_MAX + 5):
        record(recorder, T0, partition=partition)
    assert len(recorder.sketches(T0)) == COUNTER_SKETCHES_MAX
    later = T0 + 2000 * COUNTER_KEYS_SECONDS
    record(recorder, later, partition=COUNTER_SKETCHES_MAX + 4)
    assert list(recorder.sketches(later)) == [COUNTER_SKETCHES_MAX + 4]


def test_threads_lose_nothing() -> None:
    recorder = Recorder()

    def work() -> None:
        for _ in range(2_000):
            record(recorder, T0, 1.0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    heat = look(recorder, T0 + 1000)[1]
    assert (heat.request_count, heat.ru_total, heat.ru_last_s) == (8_000, 8_000.0, 8_000.0)


def test_the_bytes_of_a_block_are_as_documented() -> None:
    recorder = Recorder()
    record(recorder, T0, 5.5, status=429, operation="query", latency_ms=1.0, partition=6)
    (block,) = recorder.blocks()
    second = T0 // 1000
    assert len(block) == BLOCK_BYTES == 20_480
    expected = bytearray(BLOCK_BYTES)
    struct.pack_into("<QQddd", expected, 0, 7, second, 5.5, 5.5, 7 * 16)
    struct.pack_into("<Q", expected, 64 + 8 * (7 * 16 + 14), 1)
    struct.pack_into("<Q", expected, 2112 + 8 * 20, 1)  # 1,000 squared has 20 bits
    struct.pack_into("<II", expected, 2624 + 8 * (second // 60 % 64), 1, 1)
    struct.pack_into("<f", expected, 3136 + 4 * (second % 3840), 5.5)
    assert bytes(block) == bytes(expected)


def test_a_hot_partition_is_found_from_what_was_recorded() -> None:
    recorder = Recorder()
    for second in range(600):
        now_ms = T0 + 1000 * second
        record(recorder, now_ms, 390.0, key=b'["celebrity"]', partition=1)
        record(recorder, now_ms, 10.0, key=b'["other"]', partition=1)
        record(recorder, now_ms, 40.0, key=b'["x"]', partition=2)
    (hot,) = find_hot(look(recorder, T0 + 600_000), minutes=10)
    assert (hot.ordinal, hot.cause, hot.percent) == (1, Cause.ONE_KEY, 100.0)
    assert hot.keys[0].key == '["celebrity"]'
