"""Without this, a thread that reads a space through a handle while others drop the space, give its
place to another one, or close the engine, could read memory that is no longer there: the process
would end with a signal instead of an error.
"""

from pathlib import Path

import pytest
from tests.support.children import run_child

READERS = """
import random, threading
from armillary.errors import Unavailable

ROWS = [*first_rows(), *[(b"k%d" % n, b"v" * 300) for n in range(30)]]
SPACES = range(1, 7)
reads = []

def read(engine, stop, seed):
    choose = random.Random(seed)
    # The pause leaves the interpreter to the writer's thread.
    while not stop.wait(0.001):
        space = choose.choice(SPACES)
        try:
            engine.read_via(space, b"k1", b"")
            with engine.read(space) as reader:
                rows = list(reader.scan(b"k", b"l"))
                assert len(rows) == 30, len(rows)
                reads.append(space)
        except (SpaceGone, Unavailable):
            pass

def begin():
    # Three have a sub-database of their own, three share one.
    engine = LmdbEngine(folder, HANDLERS, own_max=3, durability="relaxed")
    for space in set(SPACES) - set(engine.spaces()):
        engine.create_space(space, ROWS)
    stop = threading.Event()
    threads = [threading.Thread(target=read, args=(engine, stop, n)) for n in range(3)]
    for thread in threads:
        thread.start()
    while not reads:
        time.sleep(0.001)
    return engine, stop, threads
"""

DROPPING = """
engine, stop, threads = begin()
for n in range(int(sys.argv[2])):
    space = SPACES[n % len(SPACES)]
    engine.drop_space(space)
    engine.create_space(space, ROWS)
stop.set()
for thread in threads:
    thread.join()
engine.close()
"""

CLOSING = """
for _ in range(int(sys.argv[2])):
    engine, stop, threads = begin()
    engine.close()
    stop.set()
    for thread in threads:
        thread.join()
    reads.clear()
"""


@pytest.mark.parametrize(("work", "rounds"), [(DROPPING, 60), (CLOSING, 15)], ids=["drop", "close"])
def test_readers_outlive_what_they_read(tmp_path: Path, work: str, rounds: int) -> None:
    done = run_child(READERS + work, tmp_path / "data", str(rounds))
    assert (done.returncode, done.stderr) == (0, "")
