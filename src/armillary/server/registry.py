"""Which protocols there are: name → port, factory. Nothing here imports one: a factory is named by
text and loaded when its first client comes, so that an unused one costs a listening socket.

    ProtocolSpec("table", "http", "armillary.api.table.service:make_service", …)

A factory is called with the gateway of the worker and the settings, and gives a `Service`
(`api/http/messages.py`) or a `StreamService` (`api/core/streams.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, Literal

from armillary.config import Port, Settings
from armillary.version import install_hint


@dataclass(frozen=True, slots=True)
class ProtocolSpec:
    name: str
    """Also the section of its settings, where it has one."""
    kind: Literal["http", "stream"]
    factory: str
    title: str = ""
    mounted: tuple[str, ...] = ()
    """Factories of further services on the same port, each with paths of its own."""
    needs: tuple[str, ...] = ()
    """Modules that it can't do without."""
    extra: str = ""
    """What to install when one is missing: `armillary[extra]`."""
    shown: tuple[str, ...] = ()
    """How a client connects, for the banner: lines with {host}, {port}, {key}, {key_quoted},
    {account} and {ca}."""

    def missing(self) -> str | None:
        """What keeps it from being served, for people."""
        if all(find_spec(one) is not None for one in (*self.needs, _package(self.factory))):
            return None
        return f"it needs its packages: {install_hint(self.extra)}"

    @property
    def is_built(self) -> bool:
        return find_spec(_package(self.factory)) is not None


def _package(factory: str) -> str:
    """The module of a factory, as far as looking for it imports nothing of weight."""
    return factory.partition(":")[0].rpartition(".")[0]


NOSQL: Final = ProtocolSpec(
    "nosql",
    "http",
    "armillary.api.nosql.service:make_service",
    "NoSQL",
    mounted=(
        "armillary.api.gremlin.pictures:make_service",
        "armillary.api.control.service:make_service",
    ),
)
OTHERS: Final = (
    ProtocolSpec(
        "table",
        "http",
        "armillary.api.table.service:make_service",
        "Table",
        shown=("AccountName={account};AccountKey={key};TableEndpoint=http://localhost:{port}/",),
    ),
    ProtocolSpec(
        "mongo",
        "stream",
        "armillary.api.mongo.service:make_streams",
        "MongoDB",
        needs=("bson",),
        extra="mongo",
        shown=(
            "mongodb://{account}:{key_quoted}@localhost:{port}/?ssl=true&replicaSet=globaldb"
            "&tlsCAFile={ca}",
        ),
    ),
    ProtocolSpec(
        "gremlin",
        "stream",
        "armillary.api.gremlin.service:make_streams",
        "Gremlin",
        needs=("websockets",),
        extra="gremlin",
        shown=(
            "ws://localhost:{port}/gremlin  user /dbs/<database>/colls/<graph>, password: the key",
        ),
    ),
)


def port_of(spec: ProtocolSpec, settings: Settings) -> Port:
    section = getattr(settings, spec.name, None)
    return settings.server.port if section is None else section.port
