"""Commands and answers between worker and writer arrive as they were sent, with a codec or not."""

from __future__ import annotations

import socket
import threading
from copy import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from armillary.engine.base import Command
from armillary.engine.lmdb.process.outbox import Outbox, receive
from armillary.engine.messages import Codecs, joined, number_of, split
from armillary.store.commands import CODECS
from armillary.store.index.entries import Entries
from armillary.store.items.operations import WRITE
from armillary.store.items.requests import Context, Done, Key, Op

codecs = Codecs(CODECS)
numbers = st.integers(0, 2**64 - 1)
small = st.binary(max_size=12)
texts = st.text(max_size=8)
counts = st.integers(0, 2**60)
facts = st.dictionaries(texts, counts | texts | st.none(), max_size=3)
entries = st.builds(
    Entries,
    ix=st.lists(small, max_size=3),
    ux=st.lists(small, max_size=2),
    leaves=st.integers(0, 9),
    others=st.lists(st.tuples(small, small), max_size=2),
)
ops = st.builds(
    Op,
    kind=st.sampled_from(["create", "fail"]),
    id=texts,
    id_part=small,
    text=small,
    ttl=counts,
    entries=st.none() | entries,
    expect_lsn=st.none() | st.integers(0, 2**60),
    refusal=st.none() | st.tuples(texts, texts, facts),
    gone=st.none() | st.lists(small, max_size=2),
)
contexts = st.builds(
    Context,
    small,
    small,
    st.integers(0, 2**40),
    texts,
    st.integers(0, 9),
    st.lists(st.tuples(st.integers(0, 9), small), max_size=2).map(tuple),
    st.integers(-1, 100),
    st.integers(1, 10**12),
    st.integers(0, 100),
    st.booleans(),
)
keys = st.builds(Key, small, small, small, small)
dones = st.builds(
    Done, texts, small, texts, counts, counts, counts, counts, counts, charge_ru=st.floats(0, 9)
)


@given(numbers, st.integers(0, 2**32 - 1), contexts, keys, ops)
def test_a_write_arrives(number: int, space: int, context: Context, key: Key, op: Op) -> None:
    data = (context, key, [op])
    frame = codecs.command(number, space, Command(WRITE, data))
    assert number_of(frame) == number
    found = codecs.read_command(frame)
    assert found == (number, space, Command(WRITE, data))
    assert type(found[2].data[0]) is Context
    assert type(found[2].data[2][0]) is Op


@given(st.lists(st.tuples(contexts, keys, ops), max_size=6))
def test_commands_that_follow_each_other_share_what_they_begin_with(many: list[Any]) -> None:
    """A context is packed and read once; another one, or an equal one, is never taken for it."""
    sent = [one for one in many for _ in range(2)]
    sent += [(copy(context), key, op) for context, key, op in many]
    frames = [codecs.command(1, 1, Command(WRITE, (c, k, [op]))) for c, k, op in sent]
    found = [codecs.read_command(frame)[2].data for frame in frames]
    assert found == [(c, k, [op]) for c, k, op in sent]
    assert all(found[at][0] is found[at + 1][0] for at in range(0, 2 * len(many), 2))


@given(numbers, dones)
def test_its_result_arrives(number: int, done: Done) -> None:
    frame = codecs.result(number, WRITE, done)
    assert codecs.read_answer(frame, WRITE) == (done, None)


@given(numbers, st.recursive(small | texts | st.integers(), st.lists, max_leaves=5))
def test_any_other_command_arrives(number: int, data: Any) -> None:
    frame = codecs.command(number, 1, Command("some.other", data))
    assert codecs.read_command(frame) == (number, 1, Command("some.other", data))
    assert codecs.read_answer(codecs.result(number, "some.other", data), "") == (data, None)


@given(st.lists(small, max_size=6))
def test_frames_are_told_apart(frames: list[bytes]) -> None:
    assert list(split(joined(frames))) == frames


def test_a_socket_that_takes_only_a_part_gets_the_rest_in_order() -> None:
    """A loop sends by itself; what the socket does not take is left to the thread."""
    near, far = socket.socketpair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    outbox = Outbox(near, "test")
    turn: list[Any] = []
    outbox.defer(turn.append, threading.get_ident())
    sent = [bytes((number,)) * 70_000 for number in range(40)]
    for message in sent:
        outbox.put(message, soon=True)
        while turn:
            turn.pop()()
    found: list[bytes] = []
    while len(found) < len(sent):
        batch = receive(far)
        assert batch is not None
        found += batch
    assert found == sent
    outbox.close()
    near.close()
    far.close()
