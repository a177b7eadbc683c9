"""`armillary serve` with the Table port, as a process of its own, and clients of the real SDK."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from azure.data.tables import TableServiceClient
from tests.support.server_process import ServerProcess

OTHERS_OFF = ("--table-port", "0", "--mongo-port", "off", "--gremlin-port", "off")


class TableServer:
    def __init__(self, data: Path, options: Sequence[str] = ()) -> None:
        self.process = ServerProcess(data, real=True, options=[*OTHERS_OFF, *options])
        self.process.wait_until_ready()
        (line,) = (one for one in self.process.lines if "TableEndpoint=" in one)
        # An account key of one's own is not printed: there is a remark in its place.
        found = re.search(r"AccountName=.*TableEndpoint=([^\s;]+)", line)
        assert found is not None
        self.connection_string = found[0]
        self.url = found[1].rstrip("/")

    @property
    def nosql_url(self) -> str:
        return f"http://127.0.0.1:{self.process.port}"

    def client(self, **options: Any) -> TableServiceClient:
        return TableServiceClient.from_connection_string(self.connection_string, **options)

    def __enter__(self) -> TableServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self.process.process.poll() is None:
            self.process.terminate()
            code, _, errors = self.process.end()
            assert (code, errors) == (0, "")
        self.process.close()
