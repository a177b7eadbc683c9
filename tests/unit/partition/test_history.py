"""What was consumed when. Without these an idle night would show the evening before, or a second
would be counted twice.
"""

from armillary.partition.usage.history import History, Minute

DAY_MS = 24 * 3600 * 1000


def test_seconds_are_summed_and_aligned() -> None:
    history = History(400, 0)
    for now_ms, ru in ((100, 5.0), (900, 6.0), (1000, 7.0), (3500, 8.0)):
        history.record(now_ms, ru)
    assert history.seconds(4000, 4) == [11, 7, 0, 8]


def test_the_second_under_way_is_not_shown() -> None:
    history = History(400, 0)
    history.record(500, 9)
    assert history.seconds(999, 1) == [0]
    assert history.seconds(1000, 1) == [9]


def test_a_minute_has_its_busiest_second_and_its_sums() -> None:
    history = History(400, 0)
    history.record(1000, 100)
    history.record(2000, 200)
    history.record(2100, 100)
    history.refuse(2200)
    history.record(60_000, 1)
    assert history.minutes(60_000, 1) == [Minute(0, 75, 400, 4, 1)]
    assert history.minutes(120_000, 2) == [Minute(0, 75, 400, 4, 1), Minute(1, 0.25, 1, 1, 0)]


def test_a_full_second_is_one_hundred_however_much_it_was() -> None:
    history = History(400, 0)
    history.record(0, 4000)
    assert history.minutes(60_000, 1)[0].normalised == 100


def test_an_idle_day_forgets_everything() -> None:
    history = History(400, 0)
    for second in range(400):
        history.record(1000 * second, 100)
    assert history.seconds(DAY_MS, 300) == [0] * 300
    idle = history.minutes(DAY_MS)
    assert idle == [Minute(DAY_MS // 60_000 - 60 + i) for i in range(60)]


def test_a_slot_of_five_minutes_ago_is_not_taken_for_now() -> None:
    history = History(400, 0)
    history.record(0, 50)
    history.record(299_000, 1)
    assert history.seconds(300_000, 300)[0] == 50
    assert history.seconds(301_000, 300)[0] == 0
    assert history.seconds(301_000, 300)[-1] == 0


def test_the_hour_keeps_sixty_minutes() -> None:
    history = History(100, 0)
    for minute in range(70):
        history.record(60_000 * minute, minute)
    kept = history.minutes(70 * 60_000)
    assert [minute.ru for minute in kept] == list(range(10, 70))
    assert [minute.minute for minute in kept] == list(range(10, 70))


def test_looking_changes_nothing() -> None:
    history = History(400, 0)
    history.record(100, 5)
    assert history.seconds(5000, 5) == history.seconds(5000, 5) == [5, 0, 0, 0, 0]
    history.record(5500, 2)
    assert history.seconds(6000, 6) == [5, 0, 0, 0, 0, 2]
    assert history.minutes(60_000, 1) == [Minute(0, 1.25, 7, 2, 0)]


def test_a_late_record_counts_in_the_newest_second() -> None:
    history = History(400, 0)
    history.record(5000, 1)
    history.record(3000, 2)
    assert history.seconds(6000, 3) == [0, 0, 3]


def test_each_second_is_measured_against_the_budget_it_had() -> None:
    history = History(1000, 0)
    history.record(0, 500)
    history.change(1000, 100)
    history.record(1000, 20)
    assert history.minutes(60_000, 1)[0].normalised == 50


def test_a_budget_lowered_within_a_second_does_not_make_it_full() -> None:
    history = History(1000, 0)
    history.record(100, 500)
    history.change(200, 100)
    history.record(300, 60)
    assert history.seconds(1000, 1) == [560]
    assert history.minutes(60_000, 1) == [Minute(0, 60, 560, 2, 0)]


def test_it_begins_at_the_time_it_is_given() -> None:
    start_ms = 1_700_000_040_000
    history = History(400, start_ms)
    history.record(start_ms, 100)
    history.record(start_ms + 1000, 40)
    assert history.seconds(start_ms + 2000, 2) == [100, 40]
    assert history.minutes(start_ms + 60_000, 1)[0].ru == 140


def test_refusals_and_looks_do_not_cut_a_second_in_two() -> None:
    history = History(400, 0)
    history.record(100, 200)
    history.refuse(200)
    history.seconds(300, 1)
    history.minutes(400, 1)
    history.change(500, 400)
    history.record(600, 200)
    assert history.minutes(60_000, 1) == [Minute(0, 100, 400, 3, 1)]
