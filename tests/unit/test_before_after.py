"""What benchmarks print is read into one table. Without this a row could be missing from it, or a
rate that fell could count as a cost that fell."""

from bench.before_after import Number, numbers, rows

REPORTED = """2 cores, x86_64, Python 3.11.7, load 0.10 before the run
point read as bytes, 10^5 items, 4,000 ids                      144,698 /s       note x
ready, on an empty folder                                        0.62 s         best of 5
point query, 10,000 items: ours                                 3,105 /s       items 10000
point query, 10,000 items: SQLite                               9,105 /s       ratio 0.3
"""
SPLIT = """quiet     20.0 s  reads   43,465/s p50  0.011  writes    267/s longest stop   39 ms
split    115.0 s  reads   30,802/s p50  0.011 max 58.2 ms  writes    214/s longest stop  189 ms, x
point read in process, CPU: unmetered 5.2 µs (1.00), metered, in slices 8.3 µs (1.60)
"""


def test_lines_of_reports_are_read() -> None:
    found = list(numbers("store", REPORTED))
    assert found == [
        Number("store: point read as bytes, 10^5 items, 4,000 ids", 144698.0, "/s"),
        Number("store: ready, on an empty folder", 0.62, "s"),
        Number("store: point query, 10,000 items: ours", 3105.0, "/s"),
    ]


def test_lines_of_a_split_are_read() -> None:
    found = {one.what: (one.value, one.unit) for one in numbers("split", SPLIT)}
    assert found == {
        "split: reads while quiet": (43465.0, "/s"),
        "split: writes while quiet": (267.0, "/s"),
        "split: reads meanwhile": (30802.0, "/s"),
        "split: writes meanwhile": (214.0, "/s"),
        "split: longest stop of a writer": (189.0, "ms"),
        "split: point read in process, CPU": (5.2, "us"),
    }


def test_what_became_worse_is_marked() -> None:
    def seen(old: float, new: float, unit: str) -> dict[str, list[Number]]:
        return {"old": [Number("x", old, unit)], "new": [Number("x", new, unit)]}

    found = list(rows({"slower": seen(100, 90, "/s"), "larger": seen(100, 104, "MB")}))
    assert found == [
        "| slower | 100 /s | 90 /s | 1.11 | worse |",
        "| larger | 100 MB | 104 MB | 1.04 |  |",
    ]
