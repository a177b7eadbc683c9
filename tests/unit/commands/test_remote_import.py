"""Import over HTTP sends many operations per request; a refused item is named, others go in."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.support.server_process import ServerProcess

import armillary
from armillary.commands.remote import Remote
from armillary.commands.remote_items import RemoteItems


def test_items_go_in_together_and_refused_ones_are_named(tmp_path: Path) -> None:
    with armillary.open(tmp_path / "data") as account:
        shop = account.create_database("shop")
        shop.create_container("orders", "/pk", physical_partitions=3)
    # How often a request is sent again after a 429 depends on the machine.
    environ = {"ARMILLARY_THROUGHPUT_ENFORCE": "off"}
    server = ServerProcess(tmp_path / "data", real=True, environ=environ)
    try:
        server.wait_until_ready()
        requests: list[str] = []
        rest = Remote.rest

        def counted(remote: Remote, method: str, *arguments: Any) -> Any:
            requests.append(method)
            return rest(remote, method, *arguments)

        items: list[dict[str, Any]] = [{"id": str(n), "pk": f"k{n % 40}"} for n in range(300)]
        items[7] = {"id": "..", "pk": "k"}
        items[8] = {"id": "no key"}
        with (
            patch.object(Remote, "rest", counted),
            RemoteItems(f"http://localhost:{server.port}", "shop", "orders") as target,
        ):
            answers = target.start_upserts(items)()
        assert [at for at, why in enumerate(answers) if why] == [7]
        assert "another resource" in str(answers[7])
        assert requests.count("POST") <= 3 + 3 + 2, "many in one request, and two alone"
    finally:
        server.process.terminate()
        server.process.communicate(timeout=60)
    with armillary.open(tmp_path / "data", housekeeping=False) as account:
        orders = account.database("shop").container("orders")
        assert len(list(orders.read_all_items())) == 299
        assert orders.read_item("5", "k5")["pk"] == "k5"
