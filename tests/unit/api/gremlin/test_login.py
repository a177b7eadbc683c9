"""Who may log in to a graph, and with what: keys and resource tokens."""

from __future__ import annotations

import base64

import pytest

from armillary.api.core.settings import EMULATOR_KEY
from armillary.api.gremlin.service import GremlinStreams
from armillary.config import GremlinSettings
from armillary.errors import Forbidden, OwnerNotFound, Throttled, Unauthorized
from armillary.limits import GREMLIN_TOKENS_MAX
from armillary.testing import Cosmos


def sasl(user: str, password: str) -> str:
    return base64.b64encode(f"\0{user}\0{password}".encode()).decode()


def test_resource_tokens_open_the_container_they_name() -> None:
    with Cosmos(containers={"g": "/pk", "other": "/pk"}) as cosmos:
        streams = GremlinStreams(cosmos._gateway, GremlinSettings())
        link = cosmos.container("g").container_link

        def token(name: str, mode: str, **more: object) -> str:
            user = cosmos.database().create_user({"id": name})
            body = {"id": name, "permissionMode": mode, "resource": link, **more}
            return str(user.create_permission(body).properties["_token"])

        reading = streams.log_in(sasl("/dbs/test/colls/g", token("r", "Read")))
        assert (reading.may_write, reading.is_token) == (False, True)
        assert streams.log_in(sasl("/dbs/test/colls/g", token("a", "All"))).may_write
        with pytest.raises(Forbidden):
            streams.log_in(sasl("/dbs/test/colls/other", token("b", "All")))
        with pytest.raises(Forbidden, match="one partition key value"):
            narrow = token("c", "All", resourcePartitionKey=["x"])
            streams.log_in(sasl("/dbs/test/colls/g", narrow))
        with pytest.raises(Unauthorized):
            streams.log_in(sasl("/dbs/test/colls/g", "type=resource&ver=1.0&sig=a;b;c;"))


def test_few_distinct_tokens_an_hour() -> None:
    with Cosmos(containers={"g": "/pk"}) as cosmos:
        streams = GremlinStreams(cosmos._gateway, GremlinSettings())
        for number in range(GREMLIN_TOKENS_MAX):
            streams._count_token(number)
        streams._count_token(0)
        with pytest.raises(Throttled):
            streams._count_token(GREMLIN_TOKENS_MAX)


@pytest.mark.parametrize("user", ["", "g", "/dbs/test", "/dbs/test/colls/g/docs/1", "dbs/x/y/g"])
def test_users_that_name_no_graph(user: str) -> None:
    with Cosmos(containers={"g": "/pk"}) as cosmos:
        streams = GremlinStreams(cosmos._gateway, GremlinSettings())
        with pytest.raises(Unauthorized):
            streams.log_in(sasl(user, EMULATOR_KEY))
        with pytest.raises(OwnerNotFound):
            streams.log_in(sasl("/dbs/none/colls/g", EMULATOR_KEY))
        for wrong in (None, 1, "?", base64.b64encode(b"x").decode()):
            with pytest.raises(Unauthorized):
                streams.log_in(wrong)
