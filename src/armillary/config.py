"""Settings: what a user may choose, as one frozen value that is passed down.

    default  ←  armillary.toml  ←  ARMILLARY_* variables  ←  flags

Each of them is a `Layer`; `Settings.of` lays them over each other, the last one on top.

The thresholds exist so that a laptop can watch at 2 MB what the cloud does at 50 GB. Nothing below
reads the environment: the entry point does, once, and hands the result on. The classes have no
slots: there is one of each, and with slots a class is made twice, which a start notices (4 ms).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from armillary import limits
from armillary.errors import BadInput
from armillary.units import FACTORS

#: Section → key → value, as one source gives them.
Layer: TypeAlias = Mapping[str, Mapping[str, Any]]

#: "full": a write is on disk before it is acknowledged. "relaxed": throw-away data only, because a
#: power failure can damage the file.
Durability: TypeAlias = Literal["full", "relaxed"]

#: What happens to requests above the provisioned throughput: refused (429), counted only, nothing.
Enforce: TypeAlias = Literal["on", "report", "off"]
Profile: TypeAlias = Literal["default", "classic"]
#: Strongest first.
LogFormat: TypeAlias = Literal["text", "json"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
IdReading: TypeAlias = Literal["compute-gateway", "routing-gateway"]
Consistency: TypeAlias = Literal[
    "Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"
]


@dataclass(frozen=True)
class PartitionSettings:
    bytes: int = limits.PARTITION_BYTES_MAX
    """A physical partition larger than this splits."""
    logical_bytes: int = limits.LOGICAL_BYTES_MAX
    """Writes that would make one logical partition larger than this are refused."""
    ru: int = limits.PARTITION_RU_MAX
    """A physical partition serves at most this; more throughput than it times the partitions
    splits them."""

    def __post_init__(self) -> None:
        for name in ("bytes", "logical_bytes", "ru"):
            if getattr(self, name) <= 0:
                raise BadInput(
                    f"partition.{name} is {getattr(self, name)}; it has to be a positive number."
                )


@dataclass(frozen=True)
class EngineSettings:
    url: str = "./.armillary"
    """A folder (LMDB), `:memory:`, or `postgresql://…`."""
    durability: Durability = "full"
    """`full`: a write is on disk before it is acknowledged. `relaxed`: for throw-away data."""
    readers: int = 16
    """PostgreSQL: connections for reads, per worker."""
    writers: int = 4
    """PostgreSQL: connections for writes, per worker."""
    timeout_ms: int = 30_000
    """PostgreSQL: how long a statement may take. Keep it below the time-outs of clients."""

    def __post_init__(self) -> None:
        for name in ("readers", "writers", "timeout_ms"):
            if getattr(self, name) < 1:
                raise BadInput(f"engine.{name} is {getattr(self, name)}; it has to be 1 or more.")
        if not self.url:
            raise BadInput("engine.url is empty; give a folder, ':memory:' or 'postgresql://…'.")
        if self.durability not in get_args(Durability):
            raise BadInput(
                f"engine.durability is {self.durability!r}; it has to be 'full' or 'relaxed'."
            )


@dataclass(frozen=True)
class ThroughputSettings:
    enforce: Enforce = "on"
    """`on` refuses what is above the provisioned throughput (429), `report` counts it, `off` does
    neither. A server enforces; fixtures for tests do not."""
    profile: Profile = "default"
    """`default`: request units as measured. `classic`: the rules of the documents of 2018, their
    round figures, 10 GB for a partition of both kinds, and fixed containers below 1,000 RU/s."""
    burst: bool = False
    """Let partitions below 3,000 RU/s spend what they left unused in the last five minutes."""
    serverless: bool = False
    """A serverless account: no throughput is provisioned, every physical partition serves half of
    `partition.ru`, and reading or setting throughput is refused."""
    metadata: bool = False
    """Refuse requests about databases, containers and throughput above 240 RU/s, as the service
    does. Test suites that make hundreds of containers become slow."""

    def __post_init__(self) -> None:
        _check_choice("throughput.enforce", self.enforce, get_args(Enforce))
        _check_choice("throughput.profile", self.profile, get_args(Profile))


@dataclass(frozen=True)
class ApiSettings:
    consistency: Consistency = "Session"
    """The default consistency level of the account, which clients learn first."""
    cors_origins: tuple[str, ...] = ()
    """Web pages that may call the server; `*` is any. None by default: the emulator key is public,
    so any page could sign."""
    trust_forwarded: bool = False
    """Believe X-Forwarded-Host and X-Forwarded-Proto. Only behind a proxy that sets them."""
    accept_entra: bool = False
    """Take tokens of Entra ID. Their signature is not checked, only that they have not expired: for
    development, never on a network."""
    resources_max: int = limits.DATABASES_AND_CONTAINERS
    """How many databases and containers the account may have together; the service's limit."""
    ids: IdReading = "compute-gateway"
    """Which gateway of the service the server reads an id in an address as. `routing-gateway`, the
    older one, takes ids that it can't read back: at the emulator's port 8081, where
    `compute-gateway` is port 8903."""
    former_ranges_s: int = 0
    """For so many seconds after a split or merge, queries and lists for the id of a range that is
    gone are answered from the ranges that took its place. 0 is what the service does: 410, which
    some SDKs do not survive without repeating rows of an ordered query."""

    def __post_init__(self) -> None:
        if not 1 <= self.resources_max <= limits.DATABASES_AND_CONTAINERS_MAX:
            raise BadInput(
                f"api.resources_max is a number from 1 to {limits.DATABASES_AND_CONTAINERS_MAX}."
            )
        if not 0 <= self.former_ranges_s <= limits.FORMER_RANGE_SECONDS_MAX:
            raise BadInput(
                f"api.former_ranges_s is a number from 0 to {limits.FORMER_RANGE_SECONDS_MAX}."
            )
        _check_choice("api.consistency", self.consistency, get_args(Consistency))
        _check_choice("api.ids", self.ids, get_args(IdReading))


@dataclass(frozen=True)
class ReplicaSettings:
    urls: tuple[str, ...] = ()
    """PostgreSQL: standbys to read from, as `Region=postgresql://…`, one host each. List the
    primary of another region too: after a promotion it is one of them."""
    readers: int = 8
    """Connections to each of them, per worker."""

    def __post_init__(self) -> None:
        if self.readers < 1:
            raise BadInput(f"replicas.readers is {self.readers}; it has to be 1 or more.")
        named("replicas.urls", self.urls)


FIRST_REGION: Final = "South Central US"
"""The region of an account that names none; the emulator's."""


@dataclass(frozen=True)
class RegionSettings:
    here: str = FIRST_REGION
    """The region that this server is in: the replica of the same name is the nearest."""
    endpoints: tuple[str, ...] = ()
    """The regions of the account by priority, as `Region=https://host:port`. The first takes the
    writes until there is a failover. None: one region, at the address that the client came by."""
    lag_ms: tuple[str, ...] = ()
    """Simulated regions, as `Region=500`: reads there see the account as it was so many
    milliseconds ago, and the server listens at the port of their endpoint too. For a data folder or
    memory, to drill an application on one machine."""
    staleness_s: int = 5
    """How far behind a replica may be for reads at the level BoundedStaleness."""

    def __post_init__(self) -> None:
        if not self.here.strip():
            raise BadInput("regions.here is empty; it has to be the name of a region.")
        if self.staleness_s < 1:
            raise BadInput(f"regions.staleness_s is {self.staleness_s}; it has to be 1 or more.")
        known = named("regions.endpoints", self.endpoints)
        if len(known) > limits.REGIONS_MAX:
            raise BadInput(f"regions.endpoints has {len(known)} regions of {limits.REGIONS_MAX}.")
        for name, url in known.items():
            if not re.fullmatch(r"https?://[^/\s]+/?", url):
                raise BadInput(f"The endpoint of {name} is {url!r}; it has to be like http://host.")
        if known and self.here not in known and self.here == FIRST_REGION:
            object.__setattr__(self, "here", next(iter(known)))
        for name, lag in named("regions.lag_ms", self.lag_ms).items():
            if name not in known:
                raise BadInput(f"regions.lag_ms names {name}, which has no endpoint.")
            if not lag.isdecimal() or not 1 <= int(lag) <= limits.REPLICA_LAG_MS_MAX:
                most = limits.REPLICA_LAG_MS_MAX
                raise BadInput(f"The lag of {name} is {lag!r}; it has to be from 1 to {most} ms.")


def named(setting: str, pairs: tuple[str, ...]) -> dict[str, str]:
    """`Name=value` each, in their order."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise BadInput(f"{setting} has {pair!r}; it has to be a list of 'Region=value'.")
        if name.strip() in found:
            raise BadInput(f"{setting} names {name.strip()} twice.")
        found[name.strip()] = value.strip()
    return found


@dataclass(frozen=True)
class QuerySettings:
    gateway_merge: bool = False
    """Answer queries that need several partitions on the server, instead of leaving the merge to
    the client as the original does."""


@dataclass(frozen=True)
class GremlinSettings:
    port: Port = 8901
    """The port of the Gremlin API; 0 picks a free one and prints it, `off` closes it."""
    strict: bool = True
    """Refuse what the service refuses: GraphSON 3, GraphBinary, steps that it lacks. Without it
    they are served as far as they are built."""
    memory: int = 128 * limits.MB
    """Bytes that one traversal may keep for sorting, grouping, collecting and going round."""
    seconds: int = limits.GREMLIN_SECONDS_MAX
    """How long one traversal may take."""

    def __post_init__(self) -> None:
        for name in ("memory", "seconds"):
            if getattr(self, name) <= 0:
                raise BadInput(
                    f"gremlin.{name} is {getattr(self, name)}; it has to be a positive number."
                )
        if self.memory > limits.GREMLIN_MEMORY_BYTES_MAX:
            raise BadInput(f"gremlin.memory may be {limits.GREMLIN_MEMORY_BYTES_MAX} at most.")


@dataclass(frozen=True)
class ScriptSettings:
    seconds: float = limits.SCRIPT_SECONDS
    """How long one run of a stored procedure or trigger may take."""
    memory: int = limits.SCRIPT_HEAP_BYTES
    """How much memory one run may use."""
    processes: int = limits.SCRIPT_CHILDREN
    """How many scripts run at once in each worker, in a process of their own each."""

    def __post_init__(self) -> None:
        for name, least in (("seconds", 0.01), ("memory", 2**20), ("processes", 1)):
            if not getattr(self, name) >= least:
                raise BadInput(
                    f"scripts.{name} is {getattr(self, name)}; it has to be {least} or more."
                )


@dataclass(frozen=True)
class ServerSettings:
    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = 8081
    """0 picks a free one and prints it."""
    workers: str = "1"
    """Processes that serve; `auto` is one per core."""
    key_file: str = ""
    """A file with the account's keys, one per line. ARMILLARY_KEY is the other way to give one."""
    allow_hosts: tuple[str, ...] = ()
    """Further names that the server answers to on loopback."""
    allow_emulator_key: bool = False
    """Take the public key of the emulator on addresses that others can reach."""
    advertise: tuple[str, ...] = ()
    """The addresses that clients of the NoSQL API are to use, each a region of its own; the
    first takes the writes. None: the one that the client came by."""
    account: str = "localhost"
    """The account's name, where a client has to say it: Table and MongoDB."""
    leave_ms: int = 0
    """When asked to stop: how long to go on serving while `/ready` already says no, so that a load
    balancer sends its clients elsewhere. Connections are closed after their next answer."""


#: Of a protocol alongside NoSQL: a number, 0 for any that is free, or `off`.
Port: TypeAlias = int | Literal["off"]


TableFlavour: TypeAlias = Literal["cosmos", "storage"]


@dataclass(frozen=True)
class TableSettings:
    port: Port = 8902
    """The port of the Table API; 0 picks a free one and prints it, `off` closes it."""
    flavour: TableFlavour = "cosmos"
    """Where Cosmos DB and Storage differ: `cosmos`, or `storage` for programs that were written
    against Table Storage or Azurite."""

    def __post_init__(self) -> None:
        _check_choice("table.flavour", self.flavour, get_args(TableFlavour))


@dataclass(frozen=True)
class MongoSettings:
    port: Port = 10255
    """The port of the MongoDB API; 0 picks a free one and prints it, `off` closes it."""
    strict: bool = False
    """Refuse what Azure Cosmos DB for MongoDB refuses: stages and operators that only native
    MongoDB has, retryable writes, sorts without an index."""
    retry_throttled: bool = False
    """Wait and try again when a command is throttled, instead of answering error 16500."""
    advertise: str = ""
    """`host:port` by which clients reach this server, where neither the name they ask for in TLS
    nor the address of their connection is it."""


@dataclass(frozen=True)
class LogSettings:
    format: LogFormat = "text"
    """How the log on standard error looks: `text`, or `json`, an object per line. Account keys,
    signatures and tokens are taken out of both."""
    level: LogLevel = "warning"
    """The least that is worth a line: `debug`, `info`, `warning` or `error`."""
    requests: bool = False
    """A line for every request."""
    traces: bool = False
    """A span for every request, to OpenTelemetry. Needs `armillary[otel]`."""

    def __post_init__(self) -> None:
        _check_choice("log.format", self.format, get_args(LogFormat))
        _check_choice("log.level", self.level, get_args(LogLevel))


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        choices = ", ".join(map(repr, allowed[:-1])) + f" or {allowed[-1]!r}"
        raise BadInput(f"{name} is {value!r}; it has to be {choices}.")


@dataclass(frozen=True)
class Settings:
    partition: PartitionSettings = field(default_factory=PartitionSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    throughput: ThroughputSettings = field(default_factory=ThroughputSettings)
    api: ApiSettings = field(default_factory=ApiSettings)
    query: QuerySettings = field(default_factory=QuerySettings)
    scripts: ScriptSettings = field(default_factory=ScriptSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    table: TableSettings = field(default_factory=TableSettings)
    mongo: MongoSettings = field(default_factory=MongoSettings)
    gremlin: GremlinSettings = field(default_factory=GremlinSettings)
    log: LogSettings = field(default_factory=LogSettings)
    replicas: ReplicaSettings = field(default_factory=ReplicaSettings)
    regions: RegionSettings = field(default_factory=RegionSettings)

    @classmethod
    def default(cls) -> Settings:
        return cls()

    @classmethod
    def of(cls, *layers: Layer) -> Settings:
        """The defaults under these; a later layer goes before an earlier one. The classic profile
        brings the sizes of its time, which any layer may set otherwise."""
        plain = cls()
        if any(layer.get("throughput", {}).get("profile") == "classic" for layer in layers):
            layers = (CLASSIC, *layers)
        return cls(
            **{
                one.name: replace(
                    getattr(plain, one.name),
                    **{key: v for layer in layers for key, v in layer.get(one.name, {}).items()},
                )
                for one in fields(cls)
            }
        )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Settings:
        """The defaults, with every `ARMILLARY_*` variable applied."""
        return cls.of(read_environment(environ))


#: What a partition held in 2018.
CLASSIC: Layer = {
    "partition": {"bytes": limits.CLASSIC_BYTES_MAX, "logical_bytes": limits.CLASSIC_BYTES_MAX}
}


def read_environment(environ: Mapping[str, str]) -> Layer:
    """What the `ARMILLARY_*` variables say.

    A misspelt name in a section of ours is an error: a setting that is silently not applied is
    worse than a start that fails. Other names are left alone, because platforms make their own
    (a Kubernetes service called `armillary` sets ARMILLARY_PORT and ARMILLARY_SERVICE_HOST).
    """
    given: dict[str, dict[str, Any]] = {one.name: {} for one in fields(Settings)}
    for name in sorted(environ):
        if not name.startswith(tuple(f"ARMILLARY_{one.upper()}_" for one in given)):
            continue
        if name not in VARIABLES:
            raise BadInput(f"{name} is not a setting. There are: {', '.join(VARIABLES)}.")
        section, key, read = VARIABLES[name]
        try:
            given[section][key] = read(environ[name])
        except ValueError as error:
            raise BadInput(f"{name} is {environ[name]!r}; {error}.") from error
    return given


def sections() -> dict[str, dict[str, Callable[[str], Any]]]:
    """Section → key → how its text is read: the settings that a file may have."""
    found: dict[str, dict[str, Callable[[str], Any]]] = {}
    for section, key, read in VARIABLES.values():
        found.setdefault(section, {})[key] = read
    return found


def parse_bytes(text: str) -> int:
    """`2000000`, `2MB` and `2 MB` are the same number."""
    parts = re.fullmatch(r"\s*([0-9]+)\s*([A-Za-z]*)\s*", text)
    if parts is None or parts[2].upper() not in FACTORS:
        raise ValueError("a size is a whole number of bytes, or one like '2MB', '50GB' or '64MiB'")
    return int(parts[1]) * FACTORS[parts[2].upper()]


PORT_MAX = 65_535
_WORDS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def parse_switch(text: str) -> bool:
    found = _WORDS.get(text.strip().lower())
    if found is None:
        raise ValueError("a switch is 'on' or 'off'")
    return found


def parse_count(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError("it has to be a whole number")
    return int(text)


def parse_seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("it has to be a number of seconds") from None


def parse_port(text: str) -> int:
    if not text.isdecimal() or int(text) > PORT_MAX:
        raise ValueError(f"a port is a number from 0 to {PORT_MAX}")
    return int(text)


def parse_port_or_off(text: str) -> Port:
    if text.strip().lower() == "off":
        return "off"
    if not text.isdecimal() or int(text) > PORT_MAX:
        raise ValueError(f"a port is a number from 0 to {PORT_MAX}, or 'off'")
    return int(text)


def parse_list(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())


#: Variable → section, key, how to read it. The names are those of `armillary.toml`, joined by `_`.
VARIABLES: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    "ARMILLARY_PARTITION_BYTES": ("partition", "bytes", parse_bytes),
    "ARMILLARY_PARTITION_LOGICAL_BYTES": ("partition", "logical_bytes", parse_bytes),
    "ARMILLARY_PARTITION_RU": ("partition", "ru", parse_count),
    "ARMILLARY_ENGINE_URL": ("engine", "url", str),
    "ARMILLARY_ENGINE_DURABILITY": ("engine", "durability", str),
    "ARMILLARY_ENGINE_READERS": ("engine", "readers", parse_count),
    "ARMILLARY_ENGINE_WRITERS": ("engine", "writers", parse_count),
    "ARMILLARY_ENGINE_TIMEOUT_MS": ("engine", "timeout_ms", parse_count),
    "ARMILLARY_THROUGHPUT_ENFORCE": ("throughput", "enforce", str),
    "ARMILLARY_THROUGHPUT_PROFILE": ("throughput", "profile", str),
    "ARMILLARY_THROUGHPUT_BURST": ("throughput", "burst", parse_switch),
    "ARMILLARY_THROUGHPUT_SERVERLESS": ("throughput", "serverless", parse_switch),
    "ARMILLARY_THROUGHPUT_METADATA": ("throughput", "metadata", parse_switch),
    "ARMILLARY_API_CONSISTENCY": ("api", "consistency", str),
    "ARMILLARY_API_CORS_ORIGINS": ("api", "cors_origins", parse_list),
    "ARMILLARY_API_TRUST_FORWARDED": ("api", "trust_forwarded", parse_switch),
    "ARMILLARY_API_ACCEPT_ENTRA": ("api", "accept_entra", parse_switch),
    "ARMILLARY_API_RESOURCES_MAX": ("api", "resources_max", parse_count),
    "ARMILLARY_API_IDS": ("api", "ids", str),
    "ARMILLARY_API_FORMER_RANGES_S": ("api", "former_ranges_s", parse_count),
    "ARMILLARY_REPLICAS_URLS": ("replicas", "urls", parse_list),
    "ARMILLARY_REPLICAS_READERS": ("replicas", "readers", parse_count),
    "ARMILLARY_REGIONS_HERE": ("regions", "here", str),
    "ARMILLARY_REGIONS_ENDPOINTS": ("regions", "endpoints", parse_list),
    "ARMILLARY_REGIONS_LAG_MS": ("regions", "lag_ms", parse_list),
    "ARMILLARY_REGIONS_STALENESS_S": ("regions", "staleness_s", parse_count),
    "ARMILLARY_QUERY_GATEWAY_MERGE": ("query", "gateway_merge", parse_switch),
    "ARMILLARY_SCRIPTS_SECONDS": ("scripts", "seconds", parse_seconds),
    "ARMILLARY_SCRIPTS_MEMORY": ("scripts", "memory", parse_bytes),
    "ARMILLARY_SCRIPTS_PROCESSES": ("scripts", "processes", parse_count),
    "ARMILLARY_SERVER_HOST": ("server", "host", str),
    "ARMILLARY_SERVER_PORT": ("server", "port", parse_port),
    "ARMILLARY_SERVER_WORKERS": ("server", "workers", str),
    "ARMILLARY_SERVER_KEY_FILE": ("server", "key_file", str),
    "ARMILLARY_SERVER_ALLOW_HOSTS": ("server", "allow_hosts", parse_list),
    "ARMILLARY_SERVER_ADVERTISE": ("server", "advertise", parse_list),
    "ARMILLARY_SERVER_ALLOW_EMULATOR_KEY": ("server", "allow_emulator_key", parse_switch),
    "ARMILLARY_SERVER_ACCOUNT": ("server", "account", str),
    "ARMILLARY_SERVER_LEAVE_MS": ("server", "leave_ms", parse_count),
    "ARMILLARY_TABLE_PORT": ("table", "port", parse_port_or_off),
    "ARMILLARY_TABLE_FLAVOUR": ("table", "flavour", str),
    "ARMILLARY_MONGO_PORT": ("mongo", "port", parse_port_or_off),
    "ARMILLARY_MONGO_STRICT": ("mongo", "strict", parse_switch),
    "ARMILLARY_MONGO_RETRY_THROTTLED": ("mongo", "retry_throttled", parse_switch),
    "ARMILLARY_MONGO_ADVERTISE": ("mongo", "advertise", str),
    "ARMILLARY_GREMLIN_PORT": ("gremlin", "port", parse_port_or_off),
    "ARMILLARY_GREMLIN_STRICT": ("gremlin", "strict", parse_switch),
    "ARMILLARY_GREMLIN_MEMORY": ("gremlin", "memory", parse_bytes),
    "ARMILLARY_GREMLIN_SECONDS": ("gremlin", "seconds", parse_count),
    "ARMILLARY_LOG_FORMAT": ("log", "format", str),
    "ARMILLARY_LOG_LEVEL": ("log", "level", str),
    "ARMILLARY_LOG_REQUESTS": ("log", "requests", parse_switch),
    "ARMILLARY_LOG_TRACES": ("log", "traces", parse_switch),
}
