"""What scripts cost: request units, refusals before and during a run, statistics; and that a server
without scripts pays nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.scripts import World, world
from tests.support.server_process import ServerProcess, children_of

from armillary.clock import VirtualClock
from armillary.errors import ScriptFailed, ScriptsBusy, Throttled
from armillary.scripts.children.bounds import Bounds
from armillary.scripts.transactions.chain import Chain
from armillary.scripts.turns import Turns

CREATE = """function (n) {
  for (let i = 0; i < n; i++) __.createDocument(__.getSelfLink(), {pk: 'a'});
}"""


@pytest.fixture
def metered() -> Iterator[World]:
    clock = VirtualClock()
    with world(enforce="on", clock=clock, housekeeping=False) as made:
        yield made


def test_a_run_costs_what_it_does(metered: World) -> None:
    nothing = metered.execute("function () {}")
    one, ten = metered.execute(CREATE, 1), metered.execute(CREATE, 10)
    assert nothing.charge_ru == 1.0
    assert 9 < ten.charge_ru / one.charge_ru < 11


def test_a_failed_run_is_charged_too(metered: World) -> None:
    with pytest.raises(ScriptFailed) as caught:
        metered.execute("function () { __.createDocument(__.getSelfLink(), {pk: 'a'}); throw 1; }")
    assert caught.value.facts["charge_ru"] >= 1.0


def test_without_budget_a_run_is_refused_before_it_starts(metered: World) -> None:
    metered.execute(CREATE, 200)  # more than a second of 400 RU/s
    with pytest.raises(Throttled) as caught:
        metered.execute("function () {}")
    assert caught.value.facts["retry_after_ms"] > 0


def test_a_run_that_costs_too_much_is_given_no_more_operations() -> None:
    """One partition of 400 RU/s serves 400 times the seconds of a run."""
    text = """function () {
      let count = 0;
      const more = () => {
        const ok = __.createDocument(__.getSelfLink(), {pk: 'a'}, (e) => {
          if (e) throw e;
          count += 1;
          if (count < 1000) more();
        });
        if (!ok) __.response.setBody(count);
      };
      more();
    }"""
    clock = VirtualClock()
    with world(enforce="on", clock=clock, housekeeping=False, bounds=Bounds(seconds=60.0)) as made:
        database = made.account.create_database("small")
        container = database.create_container("c", "/pk", throughput=400)
        scripts = container.scripts
        answer = scripts.run_text(text, "a")  # the account's own runtime: 5 s, so 2,000 RU
        assert answer.value != "", "it came to its end by itself"
        assert 300 < answer.value < 400
        assert answer.charge_ru < 2_100


def test_statistics_count_scripts(metered: World) -> None:
    metered.execute(CREATE, 5)
    (heat,) = metered.container.heat().values()
    counted = {operation: count for (operation, _), count in heat.requests.items() if count}
    assert counted["script"] == 1
    assert [one.key for one in heat.top_keys] == ['["a"]']


def test_too_many_waiting_runs_are_refused() -> None:
    turns = Turns(1, 2)
    started, gate = threading.Event(), threading.Event()

    def hold(_: Chain) -> bool:
        started.set()
        return gate.wait()

    def nothing(_: Chain) -> int:
        return 0

    first = turns.submit("a", hold)
    started.wait()  # it no longer waits
    waiting = [turns.submit("a", nothing), turns.submit("b", nothing)]
    with pytest.raises(ScriptsBusy) as caught:
        turns.submit("a", nothing)
    assert caught.value.facts["retry_after_ms"] > 0
    gate.set()
    assert first.result() is True
    assert [one.result() for one in waiting] == [0, 0]
    turns.close()


def test_a_server_without_scripts_imports_nothing_of_them(tmp_path: Path) -> None:
    text = (
        "import sys, armillary\n"
        "import armillary.api.nosql.service, armillary.server.process.run\n"
        "with armillary.open(':memory:') as a:\n"
        "    c = a.create_database('d').create_container('c', '/pk')\n"
        "    c.create_item({'id': '1', 'pk': 'a'})\n"
        "    list(c.query('SELECT * FROM c'))\n"
        "print([m for m in sys.modules if m.startswith('armillary.scripts') or 'quickjs' in m])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    light = {"armillary.scripts", "armillary.scripts.lazy", "armillary.scripts.scripts"}
    assert set(eval(done.stdout)) <= light


def test_a_server_without_scripts_starts_no_process(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, real=True)
    try:
        server.wait_until_ready()
        commands = children_of(server.process.pid).values()
        assert not [one for one in commands if "scripts/children/child.py" in one]
    finally:
        server.close()
