"""The future of a command on its way: as one of `concurrent.futures`, without its lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

import pytest
from tests.support.waiting import until

from armillary.engine.lmdb.process.pending import Pending


def test_it_answers_who_asks_afterwards() -> None:
    good, bad = Pending(), Pending()
    assert (good.done(), good.running(), good.cancel()) == (False, True, False)
    good.set_result(7)
    bad.set_exception(KeyError("k"))
    assert good.done()
    assert good.result() == 7
    assert good.exception() is None
    assert isinstance(bad.exception(), KeyError)
    with pytest.raises(KeyError):
        bad.result()
    with pytest.raises(TimeoutError):
        Pending().result(0.001)


@pytest.mark.parametrize("ask", [Pending.result, Pending.exception, lambda one: wait([one])])
def test_it_wakes_who_waits_in_a_thread(ask: Callable[[Pending], Any]) -> None:
    pending = Pending()
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(ask(pending)))
    thread.start()
    until(lambda: pending._made is not None)
    assert answers == []
    pending.set_result(1)
    thread.join()
    assert len(answers) == 1


def test_it_calls_back_once_before_and_after_the_answer() -> None:
    pending = Pending()
    called: list[Future[Any]] = []

    def failing(_: Future[Any]) -> None:
        raise RuntimeError("one that fails is not in the way of others")

    pending.add_done_callback(failing)
    pending.add_done_callback(called.append)
    assert called == []
    pending.set_result(1)
    pending.add_done_callback(called.append)
    assert called == [pending, pending]


def test_no_waiter_is_missed() -> None:
    """Asking and answering at the same moment, many times."""
    asked: list[Pending] = [Pending() for _ in range(300)]
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.extend(one.result() for one in asked))
    thread.start()
    for number, one in enumerate(asked):
        one.set_result(number)
    thread.join()
    assert found == list(range(300))
