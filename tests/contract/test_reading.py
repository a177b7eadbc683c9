"""What a reader may rely on, whatever engine holds the rows."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from tests.support.commands import LAST, command, first_rows

from armillary.engine.base import META_KEY, Engine, SpaceGone
from armillary.limits import KEY_BYTES_MAX

KEYS = [b"a", b"ab", b"b", b"b\x00", b"b\xff", b"c" * KEY_BYTES_MAX, b"d"]


@pytest.fixture
def filled(engine: Engine) -> Engine:
    engine.run(1, command(("put_many", [(key, b"v" + key) for key in KEYS])))
    engine.run(2, command(("put", b"other", b"x")))
    return engine


def test_get_finds_what_is_there_and_nothing_else(filled: Engine) -> None:
    with filled.read(1) as reader:
        assert reader.get(b"ab") == b"vab"
        assert reader.get(b"abc") is None
        assert reader.get(b"other") is None, "a row of another space"
        assert reader.get_many([b"d", b"nope", b"a", b"d"]) == [b"vd", None, b"va", b"vd"]
        assert reader.get_many([]) == []
        kind = [b"b\xff", b"b", b"b\x00", b"b\xff", b"b"]
        assert reader.get_many(kind) == [b"v" + key for key in kind]
        assert reader.get_many([*kind, b"bx", b"b" * 9]) == [
            *[b"v" + key for key in kind],
            None,
            None,
        ]


def test_get_behind_is_get_many_of_what_begins_alike(filled: Engine) -> None:
    with filled.read(1) as reader:
        tails = [b"\xff", b"", b"nope", b"\x00", b"b" * KEY_BYTES_MAX]
        assert reader.get_behind(b"b", []) == []
        assert reader.get_behind(b"b", tails) == [b"vb\xff", b"vb", None, b"vb\x00", None]


def test_a_key_no_engine_can_hold_is_simply_not_there(filled: Engine) -> None:
    with filled.read(1) as reader:
        assert reader.get(b"c" * (KEY_BYTES_MAX + 1)) is None
        assert reader.get(b"c" * 4000) is None


def test_meta_is_loaded_and_readable_like_any_row(filled: Engine) -> None:
    with filled.read(1) as reader:
        assert reader.meta == b"one:0"
        assert reader.get(META_KEY) == b"one:0"
        assert next(reader.scan(b"", LAST)) == (META_KEY, b"one:0")
        assert list(reader.scan(b"", LAST, reverse=True))[-1] == (META_KEY, b"one:0")


def test_get_via_follows_the_value(engine: Engine) -> None:
    engine.run(1, command(("put", b"id", b"7"), ("put", b"doc7", b"body"), ("put", b"odd", b"9")))
    with engine.read(1) as reader:
        assert reader.get_via(b"id", b"doc") == (b"7", b"body")
        assert reader.get_via(b"odd", b"doc") == (b"9", None)
        assert reader.get_via(b"absent", b"doc") is None
    assert engine.read_via(1, b"id", b"doc") == (b"one:0", b"7", b"body")
    assert engine.read_via(1, b"odd", b"doc") == (b"one:0", b"9", None)
    assert engine.read_via(1, b"absent", b"doc") == (b"one:0", None, None)


def test_read_few_follows_the_keys(engine: Engine) -> None:
    entries = [
        (b"ix" + term + rid, b"") for term, rid in ((b"a", b"2"), (b"a", b"9"), (b"b", b"1"))
    ]
    engine.run(1, command(("put_many", [*entries, (b"doc1", b"one"), (b"doc2", b"two")])))
    wanted = {
        (b"ixa", b"ixb", 10): (b"one:0", [b"two", b""]),
        (b"ixa", b"ixc", 10): (b"one:0", [b"one", b"two", b""]),
        (b"ixa", b"ixc", 3): (b"one:0", [b"", b"", b""]),
        (b"ixa", b"ixc", 4): (b"one:0", [b"one", b"two", b""]),
        (b"ixz", b"ixzz", 3): (b"one:0", []),
        (b"zz", b"zzz", 3): (b"one:0", []),
    }
    for (start, end, limit), values in wanted.items():
        assert engine.read_few(1, start, end, limit, 1, b"doc") == values
    with pytest.raises(SpaceGone):
        engine.read_few(77, b"a", b"b", 3, 1, b"doc")


def test_tails_are_what_follows_each_prefix_and_perhaps_more(engine: Engine) -> None:
    """A hop of a graph reads the documents they name, so others do no harm; one that is missing
    would be a lost edge."""
    rows = [(b"ax%03d%04d" % (at % 300, at), b"value") for at in range(3_000)]
    for part in (rows[::2], rows[1::2]):
        engine.run(1, command(("put_many", part)))
    with engine.read(1) as reader:
        wanted = {key[-4:] for key, _ in rows if key[2:5] in (b"007", b"299")}
        found = reader.tails([b"ax007", b"ax299", b"ax999", b"zz"], 4, 100)
        assert found is not None
        assert wanted <= found
        assert reader.tails([b"ax"], 7, 100) is None
        assert reader.tails([b"ax00"], 5, 99) is None
        assert reader.tails([], 4, 100) == set()
        whole = reader.tails([b"ax"], 7, 10_000)
        assert whole is not None
        assert {key[2:] for key, _ in rows} <= whole


def test_tails_of_a_prefix_that_is_in_itself(engine: Engine) -> None:
    """A search of bytes that jumps over what it found would miss the key that begins inside."""
    keys = [b"a" * length + b"%d" % at for length in range(2, 6) for at in range(4)]
    engine.run(1, command(("put_many", [(key, b"value") for key in keys])))
    with engine.read(1) as reader:
        for prefix in (b"aa", b"aaa", b"aaaa"):
            found = reader.tails([prefix], 2, 100)
            assert found is not None
            at = len(prefix)
            assert {key[at : at + 2] for key in keys if len(key) > at + 1} <= found


BOUNDS = [
    (b"", LAST),
    (b"a", b"d"),
    (b"a", b"d\x00"),
    (b"ab", b"b"),
    (b"b", b"b\x00"),
    (b"aa", b"aaa"),
    (b"d", b"a"),
    (b"c" * KEY_BYTES_MAX, b"c" * KEY_BYTES_MAX + b"\x00"),
    (b"c" * (KEY_BYTES_MAX + 9), b"e"),
    (b"a", b"c" * (KEY_BYTES_MAX + 9)),
    (b"zz", LAST),
]


def test_scan_is_the_slice_of_the_sorted_keys(filled: Engine) -> None:
    for start, end in BOUNDS:
        inside = [key for key in [META_KEY, *KEYS] if start <= key < end]
        for limit in (None, 0, 1, 3, 100):
            with filled.read(1) as reader:
                forward = [key for key, _ in reader.scan(start, end, limit=limit)]
                backward = [key for key, _ in reader.scan(start, end, reverse=True, limit=limit)]
            assert forward == inside[:limit], (start, end, limit)
            assert backward == inside[::-1][:limit], (start, end, limit)


def test_lists_of_a_scan_are_its_rows(filled: Engine) -> None:
    for start, end in BOUNDS:
        for rows_max in (1, 3, 100):
            with filled.read(1) as reader:
                lists = list(reader.scan_lists(start, end, rows_max))
                rows = list(reader.scan(start, end))
            assert [row for some in lists for row in some] == rows, (start, end, rows_max)
            assert all(0 < len(some) <= rows_max for some in lists)


def test_scan_streams_many_rows_in_order(engine: Engine) -> None:
    rows = [(b"k%05d" % number, b"v" * (number % 700)) for number in range(3_000)]
    engine.run(1, command(("put_many", rows)))
    engine.run(2, command(("put_many", rows[:10])))
    with engine.read(1) as reader:
        assert list(reader.scan(b"k", b"l")) == rows
        assert [row for some in reader.scan_lists(b"k", b"l", 200) for row in some] == rows
        assert list(reader.scan(b"k", b"l", reverse=True)) == rows[::-1]
        assert list(reader.scan(b"k00100", b"k02000")) == rows[100:2000]
        assert (
            list(reader.scan(b"k00100", b"k02000", reverse=True, limit=901))
            == (rows[1099 : 1999 + 1][::-1])
        )


def test_two_scans_of_one_reader_do_not_disturb_each_other(filled: Engine) -> None:
    with filled.read(1) as reader:
        up, down = reader.scan(b"a", b"e"), reader.scan(b"a", b"e", reverse=True)
        pairs = list(zip(up, down, strict=True))
    assert [first[0] for first, _ in pairs] == KEYS
    assert [second[0] for _, second in pairs] == KEYS[::-1]


def test_a_snapshot_does_not_move(engine: Engine) -> None:
    engine.run(1, command(("put", b"k", b"old"), ("put", b"gone", b"x")))
    with engine.read(1) as reader:
        change = command(("put", b"k", b"new"), ("delete", b"gone"), ("count_meta",))
        engine.submit(1, change).result()
        assert reader.get(b"k") == b"old"
        assert reader.get(b"gone") == b"x"
        assert reader.meta == b"one:0"
        assert list(reader.scan(b"a", LAST)) == [(b"gone", b"x"), (b"k", b"old")]
    with engine.read(1) as reader:
        assert reader.get(b"k") == b"new"
        assert reader.meta == b"one:1"


def test_a_snapshot_outlives_the_drop_of_its_space(engine: Engine) -> None:
    engine.run(1, command(("put", b"k", b"old")))
    with engine.read(1) as reader:
        assert reader.get(b"k") == b"old"
        dropper = threading.Thread(target=engine.drop_space, args=(1,))
        dropper.start()
        dropper.join()
        engine.create_space(3, [*first_rows("three"), (b"k", b"stranger")])
        # An engine may notice; it may never show the rows of another space.
        with suppress(SpaceGone):
            assert reader.get(b"k") == b"old"
    with pytest.raises(SpaceGone), engine.read(1):
        pass


def test_reading_a_space_that_never_was_says_gone(engine: Engine) -> None:
    with pytest.raises(SpaceGone), engine.read(99):
        pass
    with pytest.raises(SpaceGone):
        engine.read_via(99, b"k", b"p")
