"""Settings: what a user may choose, as one frozen value that is passed down.

    default()  ←  ARMILLARY_* variables        (flags and armillary.toml join with the server)

The thresholds exist so that a laptop can watch at 2 MB what the cloud does at 50 GB. Nothing below
reads the environment: whoever starts the program does, once, and hands the result on.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

from armillary import limits
from armillary.errors import BadInput

#: "full": a write is on disk before it is acknowledged. "relaxed": throw-away data only, because a
#: power failure can damage the file.
Durability: TypeAlias = Literal["full", "relaxed"]

SECTIONS = ("ARMILLARY_PARTITION_", "ARMILLARY_ENGINE_")


@dataclass(frozen=True, slots=True)
class PartitionSettings:
    bytes: int = limits.PARTITION_BYTES_MAX
    """A physical partition larger than this splits."""
    logical_bytes: int = limits.LOGICAL_BYTES_MAX
    """Writes that would make one logical partition larger than this are refused."""

    def __post_init__(self) -> None:
        for name, value in (("bytes", self.bytes), ("logical_bytes", self.logical_bytes)):
            if value <= 0:
                raise BadInput(f"partition.{name} is {value}; it has to be a positive number.")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    url: str = "./.armillary"
    """A folder (LMDB), `:memory:`, or `postgresql://…`."""
    durability: Durability = "full"

    def __post_init__(self) -> None:
        if not self.url:
            raise BadInput("engine.url is empty; give a folder, ':memory:' or 'postgresql://…'.")
        if self.durability not in get_args(Durability):
            raise BadInput(
                f"engine.durability is {self.durability!r}; it has to be 'full' or 'relaxed'."
            )


@dataclass(frozen=True, slots=True)
class Settings:
    partition: PartitionSettings = field(default_factory=PartitionSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)

    @classmethod
    def default(cls) -> "Settings":
        return cls()

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "Settings":
        """The defaults, with every `ARMILLARY_*` variable applied.

        A misspelt name in a section of ours is an error: a setting that is silently not applied is
        worse than a start that fails. Other names are left alone, because platforms make their own
        (a Kubernetes service called `armillary` sets ARMILLARY_PORT and ARMILLARY_SERVICE_HOST).
        """
        given: dict[str, dict[str, Any]] = {"partition": {}, "engine": {}}
        for name in sorted(environ):
            if not name.startswith(SECTIONS):
                continue
            if name not in VARIABLES:
                raise BadInput(f"{name} is not a setting. There are: {', '.join(VARIABLES)}.")
            section, key, read = VARIABLES[name]
            try:
                given[section][key] = read(environ[name])
            except ValueError as error:
                raise BadInput(f"{name} is {environ[name]!r}; {error}.") from error
        plain = cls()
        return cls(
            partition=replace(plain.partition, **given["partition"]),
            engine=replace(plain.engine, **given["engine"]),
        )


# GB is decimal, as in the limits of the original; KiB, MiB and GiB are for those who mean those.
_UNITS = {
    "": 1,
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "KIB": 1024,
    "MIB": 1024**2,
    "GIB": 1024**3,
}


def parse_bytes(text: str) -> int:
    """`2000000`, `2MB` and `2 MB` are the same number."""
    parts = re.fullmatch(r"\s*([0-9]+)\s*([A-Za-z]*)\s*", text)
    if parts is None or parts[2].upper() not in _UNITS:
        raise ValueError("a size is a whole number of bytes, or one like '2MB', '50GB' or '64MiB'")
    return int(parts[1]) * _UNITS[parts[2].upper()]


#: Variable → section, key, how to read it. The names are those of `armillary.toml`, joined by `_`.
VARIABLES: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    "ARMILLARY_PARTITION_BYTES": ("partition", "bytes", parse_bytes),
    "ARMILLARY_PARTITION_LOGICAL_BYTES": ("partition", "logical_bytes", parse_bytes),
    "ARMILLARY_ENGINE_URL": ("engine", "url", str),
    "ARMILLARY_ENGINE_DURABILITY": ("engine", "durability", str),
}
