"""What one start of the server is to be: plain data that can go to spawned processes.

`make_plan` checks it, so that everything wrong with a start is said before anything is started.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from armillary.api.core.settings import told_apart
from armillary.config import Layer, Settings, named, read_environment
from armillary.declare.declared import DeclaredDatabase
from armillary.engine.address import MEMORY, parse_address
from armillary.errors import BadInput
from armillary.limits import WORKERS_MAX
from armillary.server.bounds import Bounds
from armillary.server.http.hosts import is_loopback
from armillary.server.process.front import Front
from armillary.server.registry import NOSQL, OTHERS, ProtocolSpec, port_of

#: Opens the account of a worker: `open_gateway(engine, settings, keys=…, first=…)`, where the first
#: worker does what is done once for all.
OPENER = "armillary.api.core.opening:open_gateway"
EXIT_USAGE = 2  # the user can mend it
KEY_VARIABLE = "ARMILLARY_KEY"
KEY_HINT = "Made with: openssl rand -base64 64."
NO_LAYER: Layer = {}


@dataclass(frozen=True, slots=True)
class Plan:
    data: Path
    engine: str
    """A folder, `:memory:`, or `postgresql://…`"""
    host: str
    port: int
    workers: int
    keys: tuple[str, ...] = field(repr=False)
    """Empty: the well-known key of the emulator."""
    settings: Settings
    front: Front
    opener: str = OPENER
    protocols: tuple[ProtocolSpec, ...] = (NOSQL,)
    """The first is on `port`; the ports of the others are in `ports`."""
    ports: Mapping[str, int] = field(default_factory=dict)
    asked_ports: frozenset[str] = frozenset()
    """Protocols whose port somebody chose: if it is taken, the server does not start."""
    databases: tuple[DeclaredDatabase, ...] = ()
    """What is to exist before the server is ready."""
    region_ports: tuple[int, ...] = ()
    """Of simulated regions: further ports of the first protocol."""

    @property
    def on_postgres(self) -> bool:
        return self.engine.startswith(("postgresql://", "postgres://"))

    @property
    def folder(self) -> Path | None:
        """The folder of the LMDB engine, if it is that one."""
        return parse_address(self.engine).folder


def make_plan(
    *,
    environ: Mapping[str, str],
    data: Path,
    engine: str | None = None,
    host: str | None = None,
    port: int | None = None,
    workers: str | None = None,
    key_file: Path | None = None,
    allow_hosts: tuple[str, ...] = (),
    allow_emulator_key: bool = False,
    flags: Layer = NO_LAYER,
    config: Path | None = None,
    folder: Path | None = None,
    opener: str = OPENER,
    protocols: tuple[ProtocolSpec, ...] = (NOSQL, *OTHERS),
    bounds: Bounds | None = None,
) -> Plan:
    """None is a flag that was not given. `config`: the file that was asked for; without one, the
    `armillary.toml` in `folder`, if there is a folder and a file."""
    file, databases = _configuration(config, folder)
    given = {
        "host": host,
        "port": port,
        "workers": workers,
        "key_file": None if key_file is None else str(key_file),
        "allow_hosts": allow_hosts or None,
        "allow_emulator_key": allow_emulator_key or None,
    }
    server_flags = {"server": {key: value for key, value in given.items() if value is not None}}
    variables = read_environment(environ)
    layers = (file, variables, flags, server_flags)
    settings = Settings.of(*layers)
    if engine is None:
        urls = (layer.get("engine", {}).get("url") for layer in (variables, file))
        engine = next(filter(None, urls), str(data))
    settings = replace(settings, engine=replace(settings.engine, url=engine))
    server = settings.server
    keys = read_keys(environ, Path(server.key_file) if server.key_file else None)
    if not keys and not is_loopback(server.host) and not server.allow_emulator_key:
        raise BadInput(
            f"On {server.host} others can reach this server, and the key of the emulator is "
            f"public. Give it a key of its own: {KEY_VARIABLE}=… or --key-file FILE. One can be "
            f"{KEY_HINT[0].lower()}{KEY_HINT[1:]} To take the public key: --allow-emulator-key"
        )
    asked = frozenset(
        one.name for one in protocols if any("port" in at.get(one.name, {}) for at in layers)
    )
    count = worker_count(server.workers)
    if engine == MEMORY and count > 1:
        raise BadInput(f"{MEMORY} is the memory of one process: --workers has to be 1.")
    front = Front(
        data=data,
        hosts=server.allow_hosts,
        check_hosts=is_loopback(server.host),
        bounds=bounds or Bounds(),
        leave_s=server.leave_ms / 1000,
    )
    return Plan(
        data,
        engine,
        server.host,
        server.port,
        count,
        keys,
        settings,
        front,
        opener=opener,
        protocols=protocols,
        ports=_ports(settings, protocols[1:], asked),
        asked_ports=asked,
        databases=databases,
        region_ports=_region_ports(settings),
    )


def _region_ports(settings: Settings) -> tuple[int, ...]:
    """Those of the endpoints that this server plays itself."""
    if not settings.regions.lag_ms:
        return ()
    ports: list[int] = []
    for name, url in named("regions.endpoints", settings.regions.endpoints).items():
        try:
            port = urlsplit(url).port
        except ValueError:
            port = None
        if port is None:
            raise BadInput(f"The endpoint of {name} is {url!r}; give it a port to listen at.")
        if port != settings.server.port:
            ports.append(port)
    return tuple(dict.fromkeys(ports))


def _ports(
    settings: Settings, others: Sequence[ProtocolSpec], asked: frozenset[str]
) -> dict[str, int]:
    """Alongside a server on any free port, protocols without a chosen port take any too."""
    found: dict[str, int] = {}
    for spec in others:
        port = port_of(spec, settings)
        if port == "off" or (spec.missing() is not None and spec.name not in asked):
            continue
        found[spec.name] = 0 if settings.server.port == 0 and spec.name not in asked else port
    return found


def _configuration(
    config: Path | None, folder: Path | None
) -> tuple[Layer, tuple[DeclaredDatabase, ...]]:
    here = None if folder is None else folder / "armillary.toml"
    if config is None and (here is None or not here.is_file()):
        return NO_LAYER, ()
    from armillary.declare.files import read_file  # a server without a file does not pay for it

    found = read_file(config or here or Path())
    return found.settings, found.databases


def read_keys(environ: Mapping[str, str], key_file: Path | None) -> tuple[str, ...]:
    """One key per line of the file; lines that begin with # are comments, and `read-only ` before a
    key says so. Never from the command line, which every user of the machine can see."""
    if key_file is not None:
        try:
            lines = key_file.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"The key file {key_file} can't be read: {error}.") from error
        keys = tuple(line.strip() for line in lines if line.strip() and line.strip()[0] != "#")
        if not keys:
            raise BadInput(f"The key file {key_file} has no key in it.")
        if not told_apart(keys)[0]:
            # The public key would be the only one that writes.
            raise BadInput(f"The key file {key_file} has no key that may write.")
        for line in keys:
            _check_key(line, f"The key file {key_file}")
        return keys
    key = environ.get(KEY_VARIABLE, "").strip()
    if key:
        _check_key(key, KEY_VARIABLE)
    return (key,) if key else ()


def _check_key(line: str, where: str) -> None:
    # Here, because the writer process is started once there is a plan, and most have no key.
    from armillary.api.core.signing import Signer

    try:
        Signer(line.removeprefix("read-only").strip())
    except ValueError as error:
        raise BadInput(f"{where} has a key that is not valid base64. {KEY_HINT}") from error


def worker_count(text: str) -> int:
    if text == "auto":
        return min(os.cpu_count() or 1, WORKERS_MAX)
    if not text.isdecimal() or not 1 <= int(text) <= WORKERS_MAX:
        raise BadInput(f"--workers is a number from 1 to {WORKERS_MAX}, or auto; not {text!r}.")
    return int(text)
