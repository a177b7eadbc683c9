"""One writer process for several workers: what a death on either side may cost, and what not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest
from tests.support.children import start_child, wait_for_line
from tests.support.commands import HANDLERS, HANDLERS_PATH, command, first_rows

from armillary.engine.base import Command
from armillary.engine.lmdb.worker import LmdbWorkerEngine, open_with_writer_process
from armillary.engine.lmdb.writer_process import WriterProcess, load_handlers
from armillary.engine.messages import Codecs, error_frame, number_of
from armillary.errors import BadInput, FormatMismatch, Unavailable, WriteUncertain

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


def test_commands_of_one_turn_of_a_loop_go_out_at_its_end(open_worker: OpenWorker) -> None:
    worker = open_worker()
    worker.create_space(1, first_rows())
    planned: list[Callable[[], None]] = []
    worker.defer_to(planned.append)
    futures = [worker.submit_soon(1, command(("count", b"c"))) for _ in range(3)]
    (end_turn,) = planned
    end_turn()
    assert [future.result(60) for future in futures] == [[1], [2], [3]]


def test_a_command_that_is_waited_for_goes_out_at_once(open_worker: OpenWorker) -> None:
    """Also where a loop has turns: it would wait for its own next one."""
    worker = open_worker()
    worker.create_space(1, first_rows())
    worker.defer_to(lambda wake: None)
    first = worker.submit_soon(1, command(("count", b"c")))
    assert worker.run(1, command(("count", b"c"))) == [2]
    assert first.result(60) == [1]


def test_closing_does_not_wait_for_a_turn_that_never_ends(open_worker: OpenWorker) -> None:
    worker = open_worker()
    worker.create_space(1, first_rows())
    worker.defer_to(lambda wake: None)
    future = worker.submit_soon(1, command(("count", b"c")))
    worker.close()
    assert future.result(60) == [1]


def test_commands_of_several_workers_share_a_commit(open_worker: OpenWorker) -> None:
    workers = [open_worker() for _ in range(3)]
    workers[0].create_space(1, first_rows())

    def commits(times: int) -> int:
        before = workers[0]._environment.lmdb.info()["last_txnid"]
        futures = [workers[0].submit(1, command(("sleep", 0.1 * times)))]
        time.sleep(0.05 * times)
        futures += [worker.submit(1, command(("count", b"c"))) for worker in workers * 10]
        wait(futures)
        told = sorted(future.result()[0] for future in futures[1:])
        assert told == list(range(told[0], told[0] + 30))
        return int(workers[0]._environment.lmdb.info()["last_txnid"]) - before

    # On a slow machine some of them come only after the first sleep; the next one is longer.
    assert any(commits(times) == 1 for times in range(1, 20))


def test_a_killed_writer_fails_what_is_outstanding_at_once(
    open_worker: OpenWorker, writer: WriterProcess
) -> None:
    worker = open_worker()
    worker.create_space(1, first_rows())
    assert worker.run(1, command(("count", b"c"))) == [1]
    futures = [worker.submit(1, command(("sleep", 600.0)))]
    futures += [worker.submit(1, command(("count", b"c"))) for _ in range(5)]
    time.sleep(0.1)
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
    writer.process.join()
    writer.restart()
    assert worker.run(1, command(("count", b"c"))) == [2]


WORK_AND_DIE = """
from armillary.engine.lmdb.worker import LmdbWorkerEngine
from armillary.engine.lmdb.writer_process import WriterAddress
worker = LmdbWorkerEngine(folder, WriterAddress(sys.argv[2], bytes.fromhex(sys.argv[3])))
futures = [worker.submit(1, command(("count", b"died"), ("sleep", 0.01))) for _ in range(50)]
futures[0].result()
print("working", flush=True)
sys.stdin.read()
"""


def test_a_killed_worker_does_not_hurt_the_writer(
    open_worker: OpenWorker, writer: WriterProcess, tmp_path: Path
) -> None:
    worker = open_worker()
    worker.create_space(1, first_rows())
    address = writer.address
    child = start_child(WORK_AND_DIE, tmp_path / "data", address.socket, address.secret.hex())
    wait_for_line(child, "working")
    child.kill()
    child.communicate()
    assert [worker.run(1, command(("count", b"c"))) for _ in range(5)] == [[n] for n in range(1, 6)]
    assert writer.process.is_alive()


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
import multiprocessing
from armillary.engine.lmdb.writer_process import WriterProcess
if __name__ == "__main__":
    writer = WriterProcess(folder, "tests.support.commands:HANDLERS")
    print(writer.process.pid, flush=True)
    os._exit(9)
"""


def test_the_writer_ends_when_its_supervisor_dies(tmp_path: Path) -> None:
    child = start_child(DIE_AS_SUPERVISOR, tmp_path / "data")
    output, errors = child.communicate(timeout=60)
    assert child.returncode == 9, errors
    status = Path(f"/proc/{int(output)}/stat")
    deadline = time.monotonic() + 60
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, "the writer outlives its supervisor"
        time.sleep(0.05)
