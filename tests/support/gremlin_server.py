"""`armillary serve` with a graph `/dbs/d/colls/g` whose partition key is `/pk`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from azure.cosmos import CosmosClient, PartitionKey
from tests.support.server_process import ServerProcess

from armillary.api.core.settings import EMULATOR_KEY


@dataclass(frozen=True, slots=True)
class GremlinServer:
    process: ServerProcess
    cosmos: CosmosClient

    @property
    def gremlin_port(self) -> int:
        for line in self.process.lines:
            if found := re.search(r"ws://localhost:(\d+)/gremlin", line):
                return int(found[1])
        raise AssertionError(f"no Gremlin port: {self.process.lines}")


@contextmanager
def gremlin_server(
    data: Path, *, throughput: int = 400, options: Sequence[str] = (), enforce: str = "off"
) -> Iterator[GremlinServer]:
    environ = {"ARMILLARY_THROUGHPUT_ENFORCE": enforce}
    process = ServerProcess(data, real=True, options=options, environ=environ)
    try:
        process.wait_until_ready()
        cosmos = CosmosClient(f"http://localhost:{process.port}", EMULATOR_KEY)
        database = cosmos.create_database_if_not_exists("d")
        database.create_container_if_not_exists(
            "g", PartitionKey("/pk"), offer_throughput=throughput
        )
        yield GremlinServer(process, cosmos)
        process.terminate()
        code, _, errors = process.end()
        assert (code, errors) == (0, "")
    finally:
        process.close()
