"""Traversals that are nearly right: each is answered, with what it asks for or with an error of the
protocol. Without this a client finds the script that is answered as a mistake of the server (500),
or not at all. `ARMILLARY_FUZZ_SEED` and `ARMILLARY_FUZZ_SCRIPTS` choose others."""

from __future__ import annotations

import base64
import logging
import os
import uuid
from collections import Counter
from random import Random
from typing import Any

import orjson
import pytest
from tests.support.gremlin_damage import SCRIPTS, Damaged

import armillary
from armillary.api.core.gateway import Gateway
from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings
from armillary.api.gremlin.execution import Context, Execution
from armillary.api.gremlin.login import log_in
from armillary.api.gremlin.wire.requests import BINARY, V2, GremlinRequest
from armillary.config import GremlinSettings
from armillary.limits import MB

SEED = int(os.environ.get("ARMILLARY_FUZZ_SEED", "7"))
COUNT = int(os.environ.get("ARMILLARY_FUZZ_SCRIPTS", "3000"))
FRESH = 100
"""Scripts until the graph is as it was."""
MISTAKE = 500
"""`x-ms-status-code` of what is no error of the protocol."""
SETTINGS = GremlinSettings(seconds=1, memory=8 * MB)
SEEDS = (
    "g.V().drop()",
    SCRIPTS[0],
    "g.addV('person').property('pk', 'a').property('id', 'x2').property('age', 7)",
    "g.V('x1').addE('knows').to(g.V('x2')).property('w', 1)",
    "g.V('x2').addE('knows').to(g.V('x1')).property('w', 2)",
)


class Client:
    def __init__(self, gateway: Gateway, settings: GremlinSettings = SETTINGS) -> None:
        self._context = Context(gateway, settings, Random(1))
        sasl = base64.b64encode(f"\0/dbs/d/colls/g\0{EMULATOR_KEY}".encode()).decode()
        self._login = log_in(gateway, sasl)

    def ask(self, script: Any, bindings: Any = None, *, mime: str = V2) -> int:
        """The last `x-ms-status-code`."""
        args = {"gremlin": script, "bindings": bindings or {}}
        request = GremlinRequest(str(uuid.uuid4()), "eval", "", args, mime)
        heard: list[bytes] = []
        Execution(self._context, request).run(self._login, heard.append)
        if mime != V2:
            return 200
        status = orjson.loads(heard[-1])["status"]
        return int(status["attributes"]["x-ms-status-code"])


#: A list that holds itself.
KNOWN = ("g.V().as('a').out().as('b').select('a', 'b').store('a').simplePath().as('b').outV()",)


@pytest.mark.parametrize("script", KNOWN)
def test_what_was_found_is_answered_by_the_protocol(
    script: str, caplog: pytest.LogCaptureFixture
) -> None:
    with armillary.open(":memory:") as account:
        account.create_database("d").create_container("g", "/pk")
        gateway = Gateway(account.store, GatewaySettings())
        client = Client(gateway)
        for one in SEEDS:
            assert client.ask(one) == 200
        with caplog.at_level(logging.ERROR):
            assert client.ask(script) != MISTAKE
        assert not caplog.records
        gateway.close()


def test_every_script_is_answered_by_the_protocol(caplog: pytest.LogCaptureFixture) -> None:
    random = Random(SEED)
    damaged = Damaged(random)
    statuses: Counter[int] = Counter()
    wrong: list[str] = []
    with armillary.open(":memory:") as account:
        account.create_database("d").create_container("g", "/pk")
        gateway = Gateway(account.store, GatewaySettings())
        client = Client(gateway)
        seeds = Client(gateway, GremlinSettings())  # however long they take
        for number in range(COUNT):
            if number % FRESH == 0:
                for script in SEEDS:
                    assert seeds.ask(script) == 200
            script, bindings = damaged.script(), damaged.bindings()
            caplog.clear()
            mime = BINARY if random.random() < 0.1 else V2
            with caplog.at_level(logging.ERROR):
                status = client.ask(script, bindings, mime=mime)
            statuses[status] += 1
            if status == MISTAKE or caplog.records:
                wrong.append(f"{script[:500]} {bindings}\n{caplog.text}")
        gateway.close()
    assert not wrong, "\n".join(wrong[:5])
    assert statuses[200] > COUNT / 10  # the damage does not end at the door
