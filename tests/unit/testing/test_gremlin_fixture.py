"""The Gremlin fixture: the same data as the official SDK, on a free port."""

from typing import Any

import pytest
from azure.cosmos import ContainerProxy

from armillary.errors import BadInput
from armillary.testing import Cosmos


@pytest.mark.armillary(containers={"people": "/country"})
def test_one_graph_by_two_clients(cosmos_gremlin: Any, cosmos_container: ContainerProxy) -> None:
    script = "g.addV('person').property('id', 'ada').property('country', 'NO')"
    cosmos_gremlin.submit(script).all().result()
    assert cosmos_container.read_item("ada", "NO")["label"] == "person"


def test_a_graph_has_to_be_there() -> None:
    with Cosmos() as cosmos, pytest.raises(BadInput, match="no container"):
        cosmos.gremlin()
