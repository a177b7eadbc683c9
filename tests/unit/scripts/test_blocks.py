"""Scripts that ask for much at once: the server holds a block of it at a time, whatever the script
has done to the library, and a child keeps nothing of it when it is over."""

from __future__ import annotations

import marshal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from tests.support.scripts import World, world
from tests.support.waiting import until

from armillary import limits
from armillary.errors import ScriptOutOfMemory
from armillary.scripts.children.bounds import Bounds
from armillary.scripts.children.process import Answer, Child

PAGE_KB = 4


@pytest.fixture
def here() -> Iterator[World]:
    with world(":memory:") as made:
        yield made


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many operations came at once."""
    seen: list[int] = []
    ask = Child.ask

    def watching(self: Child, kind: bytes, data: bytes, deadline: float) -> Answer:
        answer = ask(self, kind, data, deadline)
        if answer.text.startswith(b'{"ops"'):
            seen.append(len(orjson.loads(answer.text)["ops"]))
        return answer

    monkeypatch.setattr(Child, "ask", watching)
    return seen


def test_many_operations_come_in_blocks_and_in_order(here: World, blocks: list[int]) -> None:
    """What a callback asks for comes after all that was asked for before it."""
    wanted = 2 * limits.SCRIPT_BLOCK_OPERATIONS + 50
    found = here.run(
        """function (wanted) {
          const order = [];
          const ask = (id) => __.readDocument(__.getAltLink() + '/docs/' + id, () => {
            order.push(id);
            if (id === 0) ask(wanted);
          });
          for (let id = 0; id < wanted; id++) ask(id);
          __.readDocuments(__.getSelfLink(), () => __.response.setBody(order));
        }""",
        wanted,
    )
    assert found == list(range(wanted + 1))
    assert max(blocks) == limits.SCRIPT_BLOCK_OPERATIONS
    assert sum(blocks) == wanted + 2


def test_bodies_that_were_sent_make_room_for_others(
    here: World, blocks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also bodies of operations that were not accepted do not count for ever."""
    monkeypatch.setattr(limits, "SCRIPT_PENDING_BYTES", 4_000)
    found = here.run(
        """function () {
          const answers = [], text = 'x'.repeat(1000);
          const put = (id) => __.createDocument(__.getSelfLink(), {id: 'i' + id, pk: 'a', text});
          for (let id = 0; id < 6; id++) answers.push(put(id));
          __.readDocuments(__.getSelfLink(), () => {
            for (let id = 6; id < 12; id++) answers.push(put(id));
            __.response.setBody(answers);
          });
        }"""
    )
    assert found == [True] * 3 + [False] * 3 + [True] * 3 + [False] * 3


def test_more_than_a_block_is_not_even_read(here: World) -> None:
    """A script can change how objects become JSON, and so what its child sends."""
    with pytest.raises(ScriptOutOfMemory):
        here.run(
            """function () {
              __.readDocuments(__.getSelfLink(), () => 1);
              Array.prototype.toJSON = function () { return new Array(1e5).fill({op: 'nothing'}); };
            }"""
        )


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux keeps what is freed")
def test_a_child_gives_back_what_a_large_run_took() -> None:
    child = Child(Bounds(seconds=600.0))
    try:
        fresh_kb = child.rss_kb
        large = "function () { kept = []; while (kept.length < 3e4) kept.push({n: [{}]}); }"
        child.ask(b"F", marshal.dumps([("f", large)]), time.monotonic() + 60)
        child.ask(b"C", orjson.dumps([[0, []]]), time.monotonic() + 600)
        assert child.rss_kb > fresh_kb + 8_000
        child.end_run()
        assert until(lambda: _rss_kb(child.pid) < fresh_kb + 4_000)
    finally:
        child.close()


def _rss_kb(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * PAGE_KB
