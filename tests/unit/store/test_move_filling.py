"""Without these, a split would leave every thread of a program with shorter turns for ever, or take
them away while another split still needs them."""

import sys

import pytest

from armillary.store.move_filling import TURN_SECONDS, Turns


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
