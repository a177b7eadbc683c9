"""An account in memory with the official SDK on top, all in this process.

    with Cosmos(containers={"orders": "/customerId"}, frozen=True) as cosmos:
        orders = cosmos.container("orders")       # ContainerProxy of azure-cosmos
        cosmos.account.database("test")           # the same data without the SDK
        cosmos.clock.advance(3600)                # an hour later

Requests are signed and checked as over a network; nothing else of a network is there. Nothing is
refused for its cost unless `enforce` asks for it, and nothing happens in the background: `settle`
of the account does what a server would do by itself (splits, expiry).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args
from urllib.parse import quote

from armillary.account import Account, open_account
from armillary.api.control.service import Controls
from armillary.api.core.gateway import Gateway
from armillary.api.core.regions import Region, Regions
from armillary.api.core.settings import EMULATOR_KEY, GatewaySettings
from armillary.api.gremlin.pictures import Pictures
from armillary.api.http.messages import Service
from armillary.api.http.mounts import Mounts
from armillary.api.nosql.service import NosqlService
from armillary.clock import SystemClock, VirtualClock, new_random
from armillary.engine.base import Engine
from armillary.engine.lagged import lagged_replica
from armillary.engine.replicas import Replica
from armillary.errors import BadInput, NotSupported
from armillary.limits import LOGICAL_BYTES_MAX, PARTITION_BYTES_MAX, PARTITION_RU_MAX
from armillary.store.catalog.controls import SharedControls
from armillary.store.throughput.meter import Enforce
from armillary.version import install_hint

if TYPE_CHECKING:
    from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy
    from azure.cosmos.aio import CosmosClient as AsyncCosmosClient
    from azure.data.tables import TableServiceClient
    from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient
    from pymongo import MongoClient

    from armillary.testing.transport import AsyncInProcessTransport, InProcessTransport
    from armillary.testing.waits import Pause

#: A name that no host can ever have: a client that is made without our transport must not find a
#: server that happens to run on this machine. And one for each account: the SDK keeps the ranges of
#: containers for the whole process, by endpoint (`_routing/routing_map_provider.py`).
ENDPOINT: Final = "https://account-{}.armillary.invalid:443/"
#: The SDK for tables takes a host of this form for one of Cosmos DB.
TABLE_ENDPOINT: Final = "https://localhost.table.cosmos.armillary.invalid"
LOGIN: Final = "localhost"
_numbers: Final = count(1)
DATABASE: Final = "test"
SCRIPTS: Final = ("procedures", "functions", "triggers")
FROZEN_AT_MS: Final = 1_767_268_800_000  # 1 January 2026, noon UTC

#: A path, the paths of a hierarchical key, or the arguments of `Database.create_container`.
Declared: TypeAlias = str | Sequence[str] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GremlinEndpoint:
    """What a Gremlin driver is given, with GraphSON 2 as its serializer."""

    url: str
    username: str
    password: str

    def client(self) -> Any:
        """A client of gremlinpython on it; close it."""
        from gremlin_python.driver.client import Client
        from gremlin_python.driver.serializer import GraphSONSerializersV2d0

        return Client(
            self.url,
            "g",
            username=self.username,
            password=self.password,
            message_serializer=GraphSONSerializersV2d0(),
        )


@dataclass(frozen=True, slots=True)
class MongoEndpoint:
    """What a MongoDB driver is given."""

    uri: str

    def client(self, **options: Any) -> MongoClient[dict[str, Any]]:
        """A `pymongo.MongoClient` on it; close it."""
        from pymongo import MongoClient

        return MongoClient(self.uri, **options)


def _regions(
    engine: Engine, shared: SharedControls, endpoint: str, lags_ms: Mapping[str, int]
) -> Regions:
    """The first has the endpoint of the account, the others one of their own."""
    names = list(lags_ms)
    first, rest = endpoint.split(".", 1)
    places = [Region(names[0], endpoint)]
    for number, name in enumerate(names[1:], 2):
        places.append(Region(name, f"{first}-{number}.{rest}"))
    replicas: dict[str, Replica] = {
        name: lagged_replica(engine, name, lag) for name, lag in lags_ms.items() if lag
    }
    return Regions(engine, shared, here=names[0], places=places, replicas=replicas)


class Cosmos:
    """One account. Close it, or use it in a `with` block."""

    def __init__(
        self,
        *,
        containers: Mapping[str, Declared] | None = None,
        enforce: bool | Enforce = False,
        frozen: bool = False,
        seed: int | None = None,
        partition_bytes: int = PARTITION_BYTES_MAX,
        partition_ru: int = PARTITION_RU_MAX,
        logical_bytes: int = LOGICAL_BYTES_MAX,
        consistency: str = "Session",
        regions: Mapping[str, int] | None = None,
    ) -> None:
        """`containers`: name → partition key path, several paths, or a mapping of options with
        `partition_key`, and with scripts if wanted (`procedures` and `functions`: id → text or
        path, `triggers`: id → the arguments of `put_trigger`); a name like `shop/orders` also
        names the database, else it is `test`.
        `enforce`: refuse what is above the provisioned throughput (429). `frozen`: time stands
        still until `clock.advance`, and clients that wait make it pass. `seed`: the same ids, rids
        and etags in every run (with `frozen` also the same times). `regions`: name → milliseconds
        by which reads there are behind, by priority; the first takes the writes, with 0. Clients
        find them in the account document and choose by `preferred_locations`.
        """
        _need_sdk()
        from armillary.testing.waits import pauses_of_our_own

        self.endpoint = ENDPOINT.format(next(_numbers))
        self.key = EMULATOR_KEY
        self.connection_string = f"AccountEndpoint={self.endpoint};AccountKey={self.key};"
        self._clock = VirtualClock(FROZEN_AT_MS) if frozen else None
        self._random = new_random(seed)
        self._first: tuple[str, str] | None = None
        self._client: CosmosClient | None = None
        self.service: Service | None = None
        self._table: Service | None = None
        with ExitStack() as stack:
            self.account: Account = stack.enter_context(
                open_account(
                    ":memory:",
                    clock=self._clock,
                    seed=seed,
                    partition_bytes=partition_bytes,
                    partition_ru=partition_ru,
                    logical_bytes=logical_bytes,
                    enforce=_enforce(enforce),
                    housekeeping=False,
                )
            )
            if self.account.store.meter is not None:
                # A test ends soon, and may let years pass: its statistics are about all of it.
                self.account.store.meter.keep_keys()
            engine = self.account.store.engine
            shared = SharedControls(engine)
            gateway = Gateway(
                self.account.store,
                GatewaySettings(consistency=consistency, quick_reads=not regions),
                wall=SystemClock(),
                shared=shared,
                regions=_regions(engine, shared, self.endpoint, regions) if regions else None,
            )
            stack.callback(gateway.close)
            self._gateway = gateway
            self._gremlin_url = ""
            self._mongo_uri = ""
            self.service = Mounts(NosqlService(gateway), (Pictures(gateway), Controls(gateway)))
            stack.callback(self.service.close)
            stack.enter_context(pauses_of_our_own())
            for name, declared in (containers or {}).items():
                self.create_container(name, declared)
            self._stack = stack.pop_all()

    # --- what it is made of ---------------------------------------------------------------------

    @property
    def clock(self) -> VirtualClock:
        if self._clock is None:
            raise BadInput("The clock of this account is the real one. Ask for frozen=True.")
        return self._clock

    @property
    def pause(self) -> Pause | None:
        return None if self._clock is None else self._clock.sleep

    def gremlin(self, graph: str = "") -> GremlinEndpoint:
        """Where a Gremlin driver finds a container of this account (the first one, unless it is
        named), by a socket on a free port of loopback."""
        if not self._gremlin_url:
            from armillary.api.gremlin.service import make_streams
            from armillary.testing.streams import serving

            port = self._stack.enter_context(serving(make_streams(self._gateway)))
            self._gremlin_url = f"ws://127.0.0.1:{port}/gremlin"
        place = _place(graph) if graph else self._first
        if place is None:
            raise BadInput("The account has no container yet. Declare one, or name it.")
        user = f"/dbs/{place[0]}/colls/{place[1]}"
        return GremlinEndpoint(self._gremlin_url, user, self.key)

    def mongo(self) -> MongoEndpoint:
        """Where a MongoDB driver finds the collections of this account, by a socket on a free port
        of loopback."""
        if not self._mongo_uri:
            from armillary.api.mongo.service import Service as MongoService
            from armillary.api.mongo.settings import Settings
            from armillary.testing.streams import serving

            service = MongoService(self._gateway, Settings(account=LOGIN))
            port = self._stack.enter_context(serving(service))
            self._stack.callback(service.close)
            password = quote(self.key, safe="")
            self._mongo_uri = f"mongodb://{LOGIN}:{password}@127.0.0.1:{port}/?replicaSet=globaldb"
        return MongoEndpoint(self._mongo_uri)

    def fail_over(self, region: str | None = None) -> str:
        """Move the writes to another region, by default to the next by priority."""
        return self._gateway.regions.fail_over(region)

    def new_id(self) -> str:
        """A UUID; with a seed, the same ones in every run."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def create_container(self, name: str, declared: Declared) -> None:
        """`orders` (in the database `test`) or `shop/orders`; the database is made if it is new."""
        database, container = _place(name)
        options: dict[str, Any] = (
            dict(declared) if isinstance(declared, Mapping) else {"partition_key": declared}
        )
        scripts: dict[str, dict[str, Any]] = {name: options.pop(name, {}) for name in SCRIPTS}
        made = self.account.create_database_if_not_exists(database)
        own = made.create_container(container, **options).scripts
        for id, text in scripts["procedures"].items():
            own.put_procedure(id, text)
        for id, text in scripts["functions"].items():
            own.put_function(id, text)
        for id, given in scripts["triggers"].items():
            own.put_trigger(id, **given)
        self._first = self._first or (database, container)

    # --- the SDK --------------------------------------------------------------------------------

    def transport(self) -> InProcessTransport:
        """For a client that you make yourself: `CosmosClient(cosmos.endpoint, cosmos.key,
        transport=cosmos.transport())`."""
        from armillary.testing.transport import InProcessTransport

        return InProcessTransport(self)

    def async_transport(self) -> AsyncInProcessTransport:
        from armillary.testing.transport import AsyncInProcessTransport

        return AsyncInProcessTransport(self)

    def client(self, **options: Any) -> CosmosClient:
        """A new `azure.cosmos.CosmosClient`, with these options of its own."""
        from azure.cosmos import CosmosClient

        return CosmosClient(self.endpoint, self.key, transport=self.transport(), **options)

    def async_client(self, **options: Any) -> AsyncCosmosClient:
        """A new `azure.cosmos.aio.CosmosClient`."""
        from azure.cosmos.aio import CosmosClient

        return CosmosClient(self.endpoint, self.key, transport=self.async_transport(), **options)

    def table_service(self, **options: Any) -> TableServiceClient:
        """A new `azure.data.tables.TableServiceClient` on the same account."""
        from azure.core.credentials import AzureNamedKeyCredential
        from azure.data.tables import TableServiceClient

        from armillary.testing.transport import InProcessTransport

        host = TableHost(self)
        credential = AzureNamedKeyCredential(LOGIN, self.key)
        transport = InProcessTransport(host)
        return TableServiceClient(
            TABLE_ENDPOINT, credential=credential, transport=transport, **options
        )

    def async_table_service(self, **options: Any) -> AsyncTableServiceClient:
        """A new `azure.data.tables.aio.TableServiceClient`."""
        from azure.core.credentials import AzureNamedKeyCredential
        from azure.data.tables.aio import TableServiceClient

        from armillary.testing.transport import AsyncInProcessTransport

        host = TableHost(self)
        credential = AzureNamedKeyCredential(LOGIN, self.key)
        transport = AsyncInProcessTransport(host)
        return TableServiceClient(
            TABLE_ENDPOINT, credential=credential, transport=transport, **options
        )

    @property
    def table_api(self) -> Service | None:
        """The Table API of this account; None once it is closed."""
        if self.service is None:
            return None
        if self._table is None:
            from armillary.api.table.service import TableService

            self._table = TableService(self._gateway)
        return self._table

    def database(self, name: str = DATABASE) -> DatabaseProxy:
        """Of the SDK, made if it is new."""
        self.account.create_database_if_not_exists(name)
        return self._shared_client().get_database_client(name)

    def container(self, name: str | None = None) -> ContainerProxy:
        """Of the SDK: the container of that name, or the first that was declared."""
        found = self._first if name is None else _place(name)
        if found is None:
            raise BadInput('No container was declared. Ask for containers={"name": "/key"}.')
        client = self._shared_client()
        return client.get_database_client(found[0]).get_container_client(found[1])

    def _shared_client(self) -> CosmosClient:
        if self._client is None:
            self._client = self.client()
        return self._client

    # --- the end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Everything is gone. Clients that are still used say so."""
        self.service = None
        self._stack.close()

    def __enter__(self) -> Cosmos:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class TableHost:
    """Where requests of a Table client go."""

    def __init__(self, cosmos: Cosmos) -> None:
        self._cosmos = cosmos

    @property
    def service(self) -> Service | None:
        return self._cosmos.table_api

    @property
    def pause(self) -> Pause | None:
        return self._cosmos.pause


def _place(name: str) -> tuple[str, str]:
    database, slash, container = name.partition("/")
    return (database, container) if slash else (DATABASE, name)


def _enforce(asked: bool | Enforce) -> Enforce:
    if isinstance(asked, bool):
        return "on" if asked else "off"
    if asked not in get_args(Enforce):
        raise BadInput(f"enforce is True, False or one of {get_args(Enforce)}, not {asked!r}.")
    return asked


def _need_sdk() -> None:
    try:
        import azure.cosmos  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name not in ("azure", "azure.cosmos"):
            raise
        raise NotSupported(
            f"armillary.testing needs the official SDK: {install_hint('cosmos')}."
        ) from error
