"""What comes over a socket are the frames that were sent, wherever they were cut on their way."""

from __future__ import annotations

import threading
from socket import socketpair

from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import until

from armillary.engine.lmdb.process.inbox import Inbox
from armillary.engine.lmdb.process.outbox import framed
from armillary.engine.lmdb.process.worker import shut_down


@given(
    batches=st.lists(st.lists(st.binary(max_size=30), min_size=1, max_size=3), max_size=4),
    step=st.integers(1, 40),
)
def test_any_cut_gives_the_same_frames(batches: list[list[bytes]], step: int) -> None:
    stream = b"".join(map(framed, batches))
    ours, theirs = socketpair()
    inbox = Inbox(ours, "test", lambda frames: None, lambda: None, lambda: False)
    found: list[bytes] = []
    for at in range(0, len(stream), step):
        found += inbox._cut(stream[at : at + step])
    theirs.close()
    inbox.close()
    ours.close()
    assert found == [frame for batch in batches for frame in batch]


def test_a_thread_takes_in_until_the_end() -> None:
    ours, theirs = socketpair()
    found: list[bytes] = []
    ended = threading.Event()
    inbox = Inbox(ours, "test", found.extend, ended.set, lambda: False)
    theirs.sendall(framed([b"a", b"b"]))
    until(lambda: found == [b"a", b"b"])
    shut_down(ours)
    assert ended.wait(60)
    inbox.close()
    for end in (ours, theirs):
        end.close()
