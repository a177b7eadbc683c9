"""Turns of threads that compute, and how often the interpreter switches between threads."""

from __future__ import annotations

import sys

import pytest

from armillary.budget import Budget
from armillary.turns import SHORT_SECONDS, Switches, look, taking, waiting


class Noted:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def look(self) -> None:
        self.calls.append("look")

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")


def test_a_thread_without_a_turn_looks_and_waits_as_it_likes() -> None:
    look()
    with waiting():
        pass


def test_a_budget_looks_for_the_turn_of_its_thread() -> None:
    turn, budget = Noted(), Budget()
    with taking(turn):
        budget.check()
    budget.check()
    assert turn.calls == ["look"]


def test_who_waits_has_no_turn() -> None:
    turn = Noted()
    with taking(turn):
        with waiting():
            assert turn.calls == ["pause"]
            look()
            with waiting():  # of a wait inside of another, the outer one counts
                pass
        look()
    assert turn.calls == ["pause", "resume", "look"]


def test_a_turn_comes_back_after_a_wait_that_failed() -> None:
    turn = Noted()
    with taking(turn):
        with pytest.raises(ZeroDivisionError), waiting():
            raise ZeroDivisionError
        look()
    assert turn.calls == ["pause", "resume", "look"]


def test_switches_are_frequent_while_anybody_asks_and_then_as_before() -> None:
    switches, usual = Switches(), sys.getswitchinterval()
    assert usual > SHORT_SECONDS
    with switches.short():
        assert sys.getswitchinterval() == pytest.approx(SHORT_SECONDS)
        with switches.short():
            pass
        assert sys.getswitchinterval() == pytest.approx(SHORT_SECONDS)
        with pytest.raises(ZeroDivisionError), switches.short():
            raise ZeroDivisionError
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_the_most_frequent_that_is_asked_for_holds_until_that_is_over() -> None:
    switches = Switches()
    with switches.short(2 * SHORT_SECONDS):
        with switches.short():
            assert sys.getswitchinterval() == pytest.approx(SHORT_SECONDS)
        assert sys.getswitchinterval() == pytest.approx(2 * SHORT_SECONDS)


def test_switches_that_are_more_frequent_stay_so() -> None:
    usual = sys.getswitchinterval()
    try:
        sys.setswitchinterval(SHORT_SECONDS / 2)
        with Switches().short():
            assert sys.getswitchinterval() == pytest.approx(SHORT_SECONDS / 2, abs=2e-6)
    finally:
        sys.setswitchinterval(usual)


@pytest.mark.parametrize("seconds", [0.005, 0.0005, 0.0001, 0.000123])
def test_a_thousand_pieces_leave_them_as_they_were(seconds: float) -> None:
    usual = sys.getswitchinterval()
    try:
        sys.setswitchinterval(seconds)
        before, switches = sys.getswitchinterval(), Switches()
        for _ in range(1000):
            with switches.short():
                pass
        assert sys.getswitchinterval() == before
    finally:
        sys.setswitchinterval(usual)
