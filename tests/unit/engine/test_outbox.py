"""Messages to another process go out in order, and together where the sender has turns."""

from __future__ import annotations

import os
import pickle
import select
import threading
from collections.abc import Callable, Iterator
from socket import socket, socketpair

import pytest

from armillary.engine.lmdb.process.outbox import Outbox, receive

WAIT_SECONDS = 60


@pytest.fixture
def ends() -> Iterator[tuple[Outbox, socket]]:
    ours, theirs = socketpair()
    outbox = Outbox(ours, "test")
    yield outbox, theirs
    outbox.close()
    ours.close()
    theirs.close()


def has_input(end: socket, seconds: float = 0) -> bool:
    return bool(select.select([end], [], [], seconds)[0])


def put(outbox: Outbox, *numbers: int, soon: bool = True) -> None:
    for number in numbers:
        outbox.put(pickle.dumps(number), soon=soon)


def test_without_turns_a_message_goes_out_at_once(ends: tuple[Outbox, socket]) -> None:
    outbox, theirs = ends
    put(outbox, 1)
    assert has_input(theirs, WAIT_SECONDS)
    assert received(theirs, 1) == [1]


def received(theirs: socket, count: int) -> list[int]:
    """In as many pieces as they come: the thread may be awake at any time."""
    found: list[int] = []
    while len(found) < count:
        assert has_input(theirs, WAIT_SECONDS)
        found += [pickle.loads(one) for one in receive(theirs) or ()]
    return found


def test_the_thread_is_woken_once_for_a_turn(ends: tuple[Outbox, socket]) -> None:
    outbox, theirs = ends
    planned: list[Callable[[], None]] = []
    outbox.defer(planned.append, threading.get_ident())
    for turn in (0, 10):
        put(outbox, turn, turn + 1, turn + 2)
        (wake,) = planned
        planned.clear()
        wake()
        assert received(theirs, 3) == [turn, turn + 1, turn + 2]


def test_another_thread_does_not_wait_for_the_turn_and_does_not_overtake(
    ends: tuple[Outbox, socket],
) -> None:
    outbox, theirs = ends
    outbox.defer(lambda wake: None, threading.get_ident())
    put(outbox, 1)
    other = threading.Thread(target=put, args=(outbox, 2))
    other.start()
    other.join(WAIT_SECONDS)
    assert received(theirs, 2) == [1, 2]


def test_who_waits_for_an_answer_does_not_wait_for_the_turn(
    ends: tuple[Outbox, socket],
) -> None:
    """An event loop that waited for a message of its own next turn would wait for ever."""
    outbox, theirs = ends
    outbox.defer(lambda wake: None, threading.get_ident())
    put(outbox, 1)
    put(outbox, 2, soon=False)
    assert received(theirs, 2) == [1, 2]


def test_who_has_no_turns_any_more_leaves_nothing_behind(ends: tuple[Outbox, socket]) -> None:
    outbox, theirs = ends
    outbox.defer(lambda wake: None, threading.get_ident())
    put(outbox, 1)
    outbox.defer(None, threading.get_ident())
    assert received(theirs, 1) == [1]
    put(outbox, 2)
    assert received(theirs, 1) == [2]


def test_closing_sends_what_waits_for_its_turn() -> None:
    ours, theirs = socketpair()
    outbox = Outbox(ours, "test")
    outbox.defer(lambda wake: None, threading.get_ident())
    put(outbox, 1)
    outbox.close()
    assert received(theirs, 1) == [1]
    ours.close()
    theirs.close()


def test_what_is_held_goes_out_in_the_thread_that_sends_it(ends: tuple[Outbox, socket]) -> None:
    """A lone writer's answer does not wait for another thread to be woken."""
    outbox, theirs = ends
    for number in (1, 2):
        outbox.hold(pickle.dumps(number))
    assert not has_input(theirs)
    outbox.send_now()
    assert has_input(theirs)
    assert [pickle.loads(one) for one in receive(theirs) or ()] == [1, 2]
    outbox.send_now()
    assert not has_input(theirs)


def test_what_the_socket_does_not_take_is_left_to_the_thread(
    ends: tuple[Outbox, socket],
) -> None:
    outbox, theirs = ends
    large = [bytes((number,)) * 300_000 for number in range(5)]
    for one in large:
        outbox.hold(one)
    outbox.send_now()  # returns, though nobody reads
    found: list[bytes] = []
    while len(found) < len(large):
        assert has_input(theirs, WAIT_SECONDS)
        found += receive(theirs) or ()
    assert found == large


def test_large_messages_go_out_over_a_socket_that_an_event_loop_reads_from() -> None:
    """Such a loop makes the socket one that does not wait, for both of its ends in this process."""
    ours, theirs = socketpair()
    outbox = Outbox(ours, "test")
    os.set_blocking(ours.fileno(), False)
    large = [bytes((number,)) * 300_000 for number in range(5)]
    for one in large:
        outbox.put(one)
    found: list[bytes] = []
    while len(found) < len(large):
        assert has_input(theirs, WAIT_SECONDS)
        found += receive(theirs) or ()
    assert found == large
    outbox.close()
    ours.close()
    theirs.close()
