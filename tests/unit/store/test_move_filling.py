"""Without these, a split would leave every thread of a program with shorter turns for ever, or take
them away while another split still needs them."""

import sys

import pytest

from armillary.limits import MOVE_PIECE_BYTES, MOVE_PIECE_BYTES_MIN, MOVE_PIECE_ROWS
from armillary.partition.ranges import Range
from armillary.store.moves.filling import LOAD_ROWS, TURN_SECONDS, Filling, Turns


def test_turns_are_short_while_anybody_asks_and_then_as_before() -> None:
    turns, usual = Turns(), sys.getswitchinterval()
    assert usual > TURN_SECONDS
    with turns.short():
        assert sys.getswitchinterval() == pytest.approx(TURN_SECONDS)
        with turns.short():
            pass
        assert sys.getswitchinterval() == pytest.approx(TURN_SECONDS)
        with pytest.raises(ZeroDivisionError), turns.short():
            raise ZeroDivisionError
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_turns_that_are_shorter_stay_so() -> None:
    usual = sys.getswitchinterval()
    try:
        sys.setswitchinterval(TURN_SECONDS / 2)
        with Turns().short():
            assert sys.getswitchinterval() == pytest.approx(TURN_SECONDS / 2, abs=2e-6)
    finally:
        sys.setswitchinterval(usual)


@pytest.mark.parametrize("seconds", [0.005, 0.0005, 0.0001, 0.000123])
def test_a_thousand_pieces_leave_them_as_they_were(seconds: float) -> None:
    usual = sys.getswitchinterval()
    try:
        sys.setswitchinterval(seconds)
        before, turns = sys.getswitchinterval(), Turns()
        for _ in range(1000):
            with turns.short():
                pass
        assert sys.getswitchinterval() == before
    finally:
        sys.setswitchinterval(usual)


def test_a_small_piece_has_few_rows_however_short_they_are() -> None:
    """Alongside a busy reader a row may cost the writer 50 µs: thousands block all writers."""
    one = Range(1, 7, b"", b"\xff", 1, ())
    filling = Filling([one], [one])
    keys = [b"\x51%06d" % n for n in range(9_000)]
    for key in keys:
        filling.gathered[7]._rows.put(key, 1, b"")
    pieces = []
    while filling.loading:
        pieces.append([key for key, _ in filling.next_rows()[1]])
        filling._piece_bytes = MOVE_PIECE_BYTES if len(pieces) > 2 else MOVE_PIECE_BYTES_MIN
    assert [key for piece in pieces for key in piece] == keys
    small = MOVE_PIECE_ROWS * MOVE_PIECE_BYTES_MIN // MOVE_PIECE_BYTES
    assert [len(piece) for piece in pieces[:4]] == [small] * 3 + [MOVE_PIECE_ROWS]
    assert small % LOAD_ROWS == 0
