"""One writer process for several workers: what a death on either side may cost, and what not."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from tests.support.children import start_child
from tests.support.commands import (
    HANDLERS,
    HANDLERS_PATH,
    Arrival,
    command,
    first_rows,
    meeting,
)
from tests.support.waiting import until

from armillary.engine.base import Command
from armillary.engine.lmdb.process.handlers import load_handlers
from armillary.engine.lmdb.process.worker import LmdbWorkerEngine, open_with_writer_process
from armillary.engine.lmdb.process.writer_process import WriterChild, WriterProcess
from armillary.engine.messages import Codecs, error_frame, number_of
from armillary.errors import BadInput, FormatMismatch, StorageFull, Unavailable, WriteUncertain

OpenWorker = Callable[[], LmdbWorkerEngine]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[WriterProcess]:
    writer = WriterProcess(tmp_path / "data", HANDLERS_PATH)
    yield writer
    writer.stop()


@pytest.fixture
def open_worker(writer: WriterProcess, tmp_path: Path) -> Iterator[OpenWorker]:
    opened: list[LmdbWorkerEngine] = []

    def open_one() -> LmdbWorkerEngine:
        opened.append(LmdbWorkerEngine(tmp_path / "data", writer.address))
        return opened[-1]

    yield open_one
    for engine in opened:
        engine.close()


def test_handlers_are_found_by_import_path() -> None:
    assert load_handlers(HANDLERS_PATH) is HANDLERS


class Turns:
    """A loop that never turns by itself."""

    def __init__(self) -> None:
        self.planned: list[Callable[[], None]] = []
        self.readers: dict[int, Callable[[], None]] = {}
        self.call_soon = self.call_soon_threadsafe = self.planned.append
        self.add_reader = self.readers.__setitem__
        self.remove_reader = self.readers.pop


def test_commands_of_one_turn_of_a_loop_go_out_at_its_end(open_worker: OpenWorker) -> None:
    worker = open_worker()
    worker.create_space(1, first_rows())
    loop = Turns()
    worker.serve_loop(loop)
    futures = [worker.submit_soon(1, command(("count", b"c"))) for _ in range(3)]
    (end_turn,) = loop.planned
    end_turn()
    assert [future.result(60) for future in futures] == [[1], [2], [3]]


def test_a_command_that_is_waited_for_goes_out_at_once(open_worker: OpenWorker) -> None:
    """Also where a loop has turns: it would wait for its own next one."""
    worker = open_worker()
    worker.create_space(1, first_rows())
    worker.serve_loop(Turns())
    first = worker.submit_soon(1, command(("count", b"c")))
    assert worker.run(1, command(("count", b"c"))) == [2]
    assert first.result(60) == [1]


def test_closing_does_not_wait_for_a_turn_that_never_ends(open_worker: OpenWorker) -> None:
    worker = open_worker()
    worker.create_space(1, first_rows())
    loop = Turns()
    worker.serve_loop(loop)
    future = worker.submit_soon(1, command(("count", b"c")))
    worker.close()
    assert future.result(60) == [1]
    assert not loop.readers


def test_leaving_a_loop_sends_what_waits_for_the_end_of_its_turn(open_worker: OpenWorker) -> None:
    worker = open_worker()
    worker.create_space(1, first_rows())
    loop = Turns()
    worker.serve_loop(loop)
    future = worker.submit_soon(1, command(("count", b"c")))
    worker.serve_loop(None)
    assert future.result(60) == [1]
    for end_turn in loop.planned:
        end_turn()
    assert worker.submit_soon(1, command(("count", b"c"))).result(60) == [2]


def test_a_writer_that_dies_fails_what_waits_for_the_end_of_a_turn(
    open_worker: OpenWorker, writer: WriterProcess
) -> None:
    worker = open_worker()
    worker.create_space(1, first_rows())
    loop = Turns()
    worker.serve_loop(loop)
    future = worker.submit_soon(1, command(("count", b"c")))
    writer.process.kill()
    writer.process.wait()
    assert isinstance(future.exception(60), WriteUncertain)
    for end_turn in loop.planned:
        end_turn()
    assert worker.read_via(1, b"c", b"")[1] is None


def test_a_loop_that_waits_holds_up_no_answer(open_worker: OpenWorker) -> None:
    """A read that waits for a frozen range would otherwise wait for the runner of the move, and the
    runner for an answer that only the loop could take in."""
    worker = open_worker()
    worker.create_space(1, first_rows())

    async def serve() -> None:
        worker.serve_loop(asyncio.get_running_loop())
        with ThreadPoolExecutor(1) as pool:
            runner = pool.submit(worker.run, 1, command(("count", b"c")))
            assert runner.result(60) == [1], "the loop has not turned meanwhile"
        assert await asyncio.wrap_future(worker.submit_soon(1, command(("count", b"c")))) == [2]
        worker.serve_loop(None)

    asyncio.run(serve())


def test_a_loop_hears_of_a_dead_writer_once_and_finds_the_next(
    open_worker: OpenWorker, writer: WriterProcess, pipe: Path
) -> None:
    worker = open_worker()
    worker.create_space(1, first_rows())

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        worker.serve_loop(loop)
        future = worker.submit_soon(1, command(("meet", str(pipe))))
        await asyncio.sleep(0)  # it goes out
        with meeting(pipe):
            writer.process.kill()
            with pytest.raises(WriteUncertain):
                await asyncio.wrap_future(future)
        await asyncio.to_thread(writer.restart)
        # Linked by another thread, and served by the loop all the same.
        assert await asyncio.to_thread(worker.run, 1, command(("count", b"c"))) == [1]
        assert await asyncio.wrap_future(worker.submit_soon(1, command(("count", b"c")))) == [2]
        worker.serve_loop(None)

    asyncio.run(serve())


def hold(worker: LmdbWorkerEngine, pipe: Path) -> list[Future[Any]]:
    """The writer runs a group until `meeting`. A group of two: one command alone would run in the
    thread that takes in commands."""
    loop = Turns()
    worker.serve_loop(loop)
    asked = command(("meet", str(pipe))), command(("count", b"held"))
    sent = [worker.submit_soon(1, one) for one in asked]
    for end_turn in loop.planned:
        end_turn()
    worker.serve_loop(None)
    return sent


def bring(worker: LmdbWorkerEngine, folder: Path) -> list[Future[Any]]:
    """When this returns, what `worker` sent before is in the writer's queue. The second message is
    sent once the first was decoded, so it is received after that, and what came with the first was
    queued before the writer looked for more."""
    sent: list[Future[Any]] = []
    for name in ("first", "second"):
        mark = folder / f"{name}-{id(worker)}"
        sent.append(worker.submit(1, command(("answer", Arrival(mark)))))
        until(mark.exists)
    return sent


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_commands_of_several_workers_share_a_commit(
    open_worker: OpenWorker, pipe: Path, tmp_path: Path
) -> None:
    workers = [open_worker() for _ in range(3)]
    workers[0].create_space(1, first_rows())
    before = workers[0]._environment.lmdb.info()["last_txnid"]
    first = hold(workers[0], pipe)
    with meeting(pipe):
        futures = [worker.submit(1, command(("count", b"c"))) for worker in workers * 10]
        marks = [mark for worker in workers for mark in bring(worker, tmp_path)]
    wait([*first, *futures, *marks])
    assert sorted(future.result()[0] for future in futures) == list(range(1, 31))
    commits = workers[0]._environment.lmdb.info()["last_txnid"] - before
    assert commits <= 2, "that of the first, if they did not join it, and their own"


def test_loops_and_threads_of_several_workers_interleave(open_worker: OpenWorker) -> None:
    """Two workers with a loop each, their threads, and a third one that only sends: every command
    happens once, and each sees the one before."""
    sender, *others = [open_worker() for _ in range(3)]
    sender.create_space(1, first_rows())
    count, answers = command(("count", b"c")), list[int]()

    async def serve(worker: LmdbWorkerEngine) -> None:
        loop = asyncio.get_running_loop()
        worker.serve_loop(loop)

        def wait_for_each() -> None:
            for _ in range(60):
                answers.extend(worker.submit_now(1, count).result(60))

        waiting = loop.run_in_executor(None, wait_for_each)
        for number in range(150):
            answers.extend(await asyncio.wrap_future(worker.submit_soon(1, count)))
            if number % 40 == 0:
                await asyncio.sleep(0.01)
        await waiting
        worker.serve_loop(None)

    with ThreadPoolExecutor(2) as pool:
        serving = [pool.submit(asyncio.run, serve(one)) for one in others]
        for _ in range(50):
            answers.extend(sender.run(1, count))
    for one in serving:
        one.result()
    assert sorted(answers) == list(range(1, 2 * (60 + 150) + 50 + 1))


def test_a_full_store_refuses_by_the_writer_while_reads_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    worker = open_with_writer_process(folder, HANDLERS_PATH)
    worker.create_space(1, first_rows())
    assert worker.run(1, command(("count", b"c"))) == [1]
    worker.close()
    worker = open_with_writer_process(folder, HANDLERS_PATH, reserve_bytes=1 << 60)
    submits = worker.submit, worker.submit_now, worker.submit_soon
    futures = [submit(1, command(("count", b"c"))) for submit in submits]
    assert [type(one.exception(60)) for one in futures] == [StorageFull] * 3
    assert worker.read_via(1, b"c", b"")[1] == b"1"
    worker.close()


def test_a_killed_writer_fails_what_is_outstanding_at_once(
    open_worker: OpenWorker, writer: WriterProcess, pipe: Path, tmp_path: Path
) -> None:
    worker = open_worker()
    worker.create_space(1, first_rows())
    assert worker.run(1, command(("count", b"c"))) == [1]
    futures = hold(worker, pipe)
    with meeting(pipe):
        futures += [worker.submit(1, command(("count", b"c"))) for _ in range(5)]
        futures += bring(worker, tmp_path)
        writer.process.kill()
        _, unfinished = wait(futures, timeout=60)
    assert not unfinished
    assert all(isinstance(future.exception(), WriteUncertain) for future in futures)
    with pytest.raises(Unavailable):
        worker.run(1, command(("count", b"c")))
    assert worker.read_via(1, b"c", b"")[1] == b"1", "reads go on"


def test_a_restarted_writer_is_found_again(open_worker: OpenWorker, writer: WriterProcess) -> None:
    worker = open_worker()
    worker.create_space(1, first_rows())
    assert worker.run(1, command(("count", b"c"))) == [1]
    writer.process.kill()
    writer.process.wait()
    writer.restart()
    assert worker.run(1, command(("count", b"c"))) == [2]


WORK_AND_DIE = """
from armillary.engine.lmdb.process.worker import LmdbWorkerEngine
from armillary.engine.lmdb.process.handshake import WriterAddress
worker = LmdbWorkerEngine(folder, WriterAddress(sys.argv[2], bytes.fromhex(sys.argv[3])))
worker.run(1, command(("count", b"died")))
futures = [worker.submit(1, command(("count", b"died"), ("meet", sys.argv[4])))]
futures += [worker.submit(1, command(("count", b"died"))) for _ in range(50)]
sys.stdin.read()
"""


def test_a_killed_worker_does_not_hurt_the_writer(
    open_worker: OpenWorker, writer: WriterProcess, pipe: Path, tmp_path: Path
) -> None:
    worker = open_worker()
    worker.create_space(1, first_rows())
    address = writer.address
    child = start_child(
        WORK_AND_DIE, tmp_path / "data", address.socket, address.secret.hex(), str(pipe)
    )
    with meeting(pipe):
        child.kill()
        child.communicate()
    assert [worker.run(1, command(("count", b"c"))) for _ in range(5)] == [[n] for n in range(1, 6)]
    assert writer.process.poll() is None


def test_a_stranger_without_the_secret_is_turned_away(
    open_worker: OpenWorker, writer: WriterProcess, tmp_path: Path
) -> None:
    stranger = LmdbWorkerEngine(
        tmp_path / "data", type(writer.address)(writer.address.socket, b"?")
    )
    with pytest.raises(Unavailable, match="can't be reached"):
        stranger.submit(1, command(("count", b"c")))
    stranger.close()
    open_worker().create_space(1, first_rows())


def test_a_writer_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"foreign")
    with pytest.raises(FormatMismatch, match="not a data folder"):
        open_with_writer_process(tmp_path, HANDLERS_PATH)
    with pytest.raises(ModuleNotFoundError):
        open_with_writer_process(tmp_path / "new", "no.such.module:HANDLERS")


def test_a_writer_that_dies_while_it_starts_is_reported(tmp_path: Path) -> None:
    child = WriterChild()
    child.process.kill()
    with pytest.raises(Unavailable, match="ended while it started"):
        WriterProcess(tmp_path / "data", HANDLERS_PATH, child=child)


def test_a_child_that_was_started_ahead_becomes_the_writer(tmp_path: Path) -> None:
    child = WriterChild()
    writer = WriterProcess(tmp_path / "data", HANDLERS_PATH, child=child)
    assert writer.process is child.process
    worker = LmdbWorkerEngine(tmp_path / "data", writer.address)
    worker.create_space(1, first_rows())
    worker.close()
    writer.stop()
    assert child.process.returncode == 0


def test_a_child_without_a_job_ends_and_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """The port may be in use: nothing is to be written then, and the user reads one line."""
    child = WriterChild()
    child.close()
    assert child.process.returncode is not None
    orphan = WriterChild()
    orphan.lifeline.close()
    assert orphan.process.wait(60) == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_for_the_whole_group_do_not_end_the_writer(
    number: signal.Signals, open_worker: OpenWorker, writer: WriterProcess
) -> None:
    """The supervisor gets them as well, and what it drains has to be written."""
    worker = open_worker()
    worker.create_space(1, first_rows())
    os.kill(writer.process.pid, number)
    assert worker.run(1, command(("count", b"c"))) == [1]
    assert writer.process.poll() is None


def test_a_new_writer_at_the_same_place_is_found_by_a_new_engine(tmp_path: Path) -> None:
    engine = open_with_writer_process(tmp_path / "data", HANDLERS_PATH)
    engine.create_space(1, first_rows())
    engine.run(1, command(("count", b"c")))
    engine.close()
    engine = open_with_writer_process(tmp_path / "data", HANDLERS_PATH)
    assert engine.run(1, command(("count", b"c"))) == [2]
    engine.close()


def test_what_cannot_be_sent_fails_its_sender_only(open_worker: OpenWorker) -> None:
    worker = open_worker()
    worker.create_space(1, first_rows())
    with pytest.raises((AttributeError, TypeError, ValueError)):
        worker.submit(1, Command("apply", lambda: None))
    assert worker.run(1, command(("count", b"c"))) == [1]


class Stubborn(Exception):
    """Pickles, and then can't be rebuilt: its constructor wants what it did not keep."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (BadInput("no", field=1), BadInput),
        (KeyError("k"), KeyError),
        (Stubborn("a", "b"), RuntimeError),
    ],
)
def test_errors_survive_the_trip(error: Exception, kind: type) -> None:
    frame = error_frame(7, error)
    result, failure = Codecs().read_answer(frame, "any")
    assert (number_of(frame), result, type(failure)) == (7, None, kind)
    if isinstance(failure, BadInput):
        facts: dict[str, Any] = failure.facts
        assert facts == {"field": 1}


DIE_AS_SUPERVISOR = """
import signal
from armillary.engine.lmdb.process.writer_process import WriterProcess
writer = WriterProcess(folder, "tests.support.commands:HANDLERS")
print(writer.process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_writer_ends_when_its_supervisor_dies(tmp_path: Path) -> None:
    """Killed, so that nothing of it runs any more. And a script needs no `__main__` guard."""
    child = start_child(DIE_AS_SUPERVISOR, tmp_path / "data")
    output, errors = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL, errors
    status = Path(f"/proc/{int(output)}/stat")

    def has_ended() -> bool:
        try:
            return status.read_text().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    assert until(has_ended)
