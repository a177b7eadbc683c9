"""Without these, a client that sends several requests at once could get the answers mixed up, or
read what its own write has not written yet."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from armillary.api.http.messages import Request
from armillary.server.http.pipeline import Pipeline, Slot
from armillary.server.http.wire import Incoming


def incoming(number: int, method: str) -> Incoming:
    return Incoming(Request(method, f"/{number}", {}), True, False)


def start_all(pipeline: Pipeline) -> list[Slot]:
    started = []
    while (slot := pipeline.start()) is not None:
        started.append(slot)
    return started


def answer(slot: Slot) -> bytes:
    return slot.incoming.request.target.encode()


def test_a_later_answer_waits_for_the_earlier_one() -> None:
    pipeline = Pipeline(8)
    for number in range(3):
        pipeline.add(incoming(number, "GET"))
    first, second, third = start_all(pipeline)
    assert pipeline.finish(third, b"3") == []
    assert pipeline.finish(first, b"1") == [b"1"]
    assert pipeline.finish(second, b"2") == [b"2", b"3"]
    assert len(pipeline) == 0


def test_a_get_after_a_post_begins_when_the_post_is_done() -> None:
    pipeline = Pipeline(8)
    for number, method in enumerate(["GET", "POST", "GET"]):
        pipeline.add(incoming(number, method))
    (read,) = start_all(pipeline)
    pipeline.finish(read, b"")
    (write,) = start_all(pipeline)
    assert write.incoming.request.method == "POST"
    pipeline.finish(write, b"")
    (last,) = start_all(pipeline)
    assert last.incoming.request.target == "/2"


def test_what_begins_at_once_holds_up_what_comes_behind_it() -> None:
    """As `add` and `start` do, where nothing is under way."""
    pipeline = Pipeline(8)
    write = pipeline.begin(incoming(0, "POST"))
    pipeline.add(incoming(1, "GET"))
    assert start_all(pipeline) == []
    assert pipeline.finish(write, b"1") == [b"1"]
    (read,) = start_all(pipeline)
    assert pipeline.finish(read, b"2") == [b"2"]
    assert (len(pipeline), pipeline.running) == (0, 0)


@given(
    st.lists(st.sampled_from(["GET", "POST"])), st.integers(1, 4), st.randoms(use_true_random=False)
)
def test_answers_keep_the_order_of_requests(
    methods: list[str], parallel: int, random: Random
) -> None:
    pipeline = Pipeline(parallel)
    for number, method in enumerate(methods):
        pipeline.add(incoming(number, method))
    running: list[Slot] = []
    out: list[bytes] = []
    while len(pipeline):
        running += start_all(pipeline)
        assert 1 <= len(running) <= parallel
        assert len(running) == 1 or all(slot.safe for slot in running)
        slot = running.pop(random.randrange(len(running)))
        out += pipeline.finish(slot, answer(slot))
    assert out == [b"/%d" % number for number in range(len(methods))]
