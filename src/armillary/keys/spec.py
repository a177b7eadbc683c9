"""The specification of a synthetic key: what is stored with the container, as JSON.

    {"version": 1, "path": "/partitionKey", "parts": ["/date"], "separator": ".",
     "suffix": {"kind": "computed", "k": 400, "source": "/vin"}}

A container lives for ever with its key, so nothing here is guessed: an unknown member, version,
kind or bucket is an error, not a default. `version` is the version of this grammar and of the way
values become text and suffixes; docs/synthetic-keys.md is its definition.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal

from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.encoding.paths import Path, format_path, parse_path
from armillary.errors import BadInput
from armillary.keys.buckets import BUCKETS, ISO, UNITS
from armillary.keys.text import ESCAPE
from armillary.limits import (
    SYNTHETIC_PARTS_MAX,
    SYNTHETIC_SEPARATOR_CHARACTERS_MAX,
    SYNTHETIC_SUFFIXES_MAX,
)
from armillary.values import JSON

VERSION: Final = 1
SEPARATOR_DEFAULT: Final = "-"
KINDS: Final = ("random", "computed")


@dataclass(frozen=True, slots=True)
class Part:
    """A property, or the time bucket of one."""

    path: Path
    bucket: str | None = None
    unit: str = ISO

    def to_json(self) -> JSON:
        if self.bucket is None:
            return format_path(self.path)
        return {"path": format_path(self.path), "bucket": self.bucket, "unit": self.unit}


@dataclass(frozen=True, slots=True)
class Suffix:
    """A number 1..k at the end: by chance, or computed from the property at `source`."""

    kind: Literal["random", "computed"]
    k: int
    source: Path | None = None

    def to_json(self) -> JSON:
        spec: dict[str, JSON] = {"kind": self.kind, "k": self.k}
        return spec if self.source is None else spec | {"source": format_path(self.source)}


@dataclass(frozen=True, slots=True)
class Spec:
    path: Path
    parts: tuple[Part, ...]
    separator: str = SEPARATOR_DEFAULT
    escape: bool = False
    suffix: Suffix | None = None

    def to_json(self) -> dict[str, JSON]:
        spec: dict[str, JSON] = {
            "version": VERSION,
            "path": format_path(self.path),
            "parts": [part.to_json() for part in self.parts],
            "separator": self.separator,
        }
        if self.escape:
            spec["escape"] = True
        if self.suffix is not None:
            spec["suffix"] = self.suffix.to_json()
        return spec


def parse_spec(spec: JSON) -> Spec:
    _members(spec, "synthetic key", {"version", "path", "parts", "separator", "escape", "suffix"})
    version = spec.get("version")
    if type(version) is not int or version != VERSION:
        raise _bad(f"has version {version!r}; this release knows version {VERSION}")
    path = _path(spec, "path", "synthetic key")
    separator = _separator(spec.get("separator", SEPARATOR_DEFAULT))
    escape = spec.get("escape", False)
    if not isinstance(escape, bool):
        raise _bad("has an 'escape' that is neither true nor false")
    if escape and ESCAPE in separator:
        raise _bad(f"has the escape character {ESCAPE} in its separator")
    suffix = None if "suffix" not in spec else _suffix(spec["suffix"])
    parts = _parts(spec.get("parts"))
    if not parts and suffix is None:
        raise _bad("has neither parts nor a suffix: every item would have the same key")
    made_of = [part.path for part in parts]
    if suffix is not None and suffix.source is not None:
        made_of.append(suffix.source)
    _check_paths(path, made_of)
    return Spec(path, parts, separator, escape, suffix)


def _separator(separator: JSON) -> str:
    longest = SYNTHETIC_SEPARATOR_CHARACTERS_MAX
    if not isinstance(separator, str) or not 1 <= len(separator) <= longest:
        raise _bad(f"needs a 'separator' of 1 to {longest} characters")
    if not separator.isascii() or not separator.isprintable():
        raise _bad("has a 'separator' with characters other than printable ASCII")
    return separator


def _parts(parts: JSON) -> tuple[Part, ...]:
    if not isinstance(parts, list) or len(parts) > SYNTHETIC_PARTS_MAX:
        raise _bad(f"needs 'parts', a list of at most {SYNTHETIC_PARTS_MAX} paths or time buckets")
    return tuple(map(_part, parts))


def _part(part: JSON) -> Part:
    if isinstance(part, str):
        return Part(parse_path(part))
    _members(part, "part of a synthetic key", {"path", "bucket", "unit"})
    path = _path(part, "path", "part of a synthetic key")
    if "bucket" not in part:
        if "unit" in part:
            raise _bad(f"has a part {format_path(path)} with a 'unit' but no 'bucket'")
        return Part(path)
    bucket = _choice(part["bucket"], "bucket", BUCKETS)
    return Part(path, bucket, _choice(part.get("unit", ISO), "unit", UNITS))


def _suffix(suffix: JSON) -> Suffix:
    _members(suffix, "suffix of a synthetic key", {"kind", "k", "source"})
    kind = _choice(suffix.get("kind"), "suffix kind", KINDS)
    k = suffix.get("k")
    if type(k) is not int or not 1 <= k <= SYNTHETIC_SUFFIXES_MAX:
        raise _bad(f"has k = {k!r}; k is a whole number from 1 to {SYNTHETIC_SUFFIXES_MAX}")
    if kind == "computed":
        if "source" not in suffix:
            raise _bad("has a computed suffix without 'source', the path it is computed from")
        return Suffix("computed", k, _path(suffix, "source", "suffix of a synthetic key"))
    if "source" in suffix:
        raise _bad("has a random suffix with a 'source'; only a computed suffix has one")
    return Suffix("random", k)


def _check_paths(path: Path, made_of: Collection[Path]) -> None:
    for each in (path, *made_of):
        if each[0] in SYSTEM_PROPERTIES:
            raise _bad(f"uses {format_path(each)}, which the server writes after the key is made")
    for each in made_of:
        shared = min(len(each), len(path))
        if each[:shared] == path[:shared]:
            raise _bad(f"is stored in {format_path(path)} and made of {format_path(each)}")


def _members(given: JSON, what: str, allowed: set[str]) -> None:
    if not isinstance(given, dict):
        raise BadInput(f"A {what} must be an object, not {given!r}.")
    unknown = sorted(map(str, given.keys() - allowed))
    if unknown:
        raise BadInput(
            f"A {what} has the unknown member '{unknown[0]}'; "
            f"allowed are {', '.join(sorted(allowed))}."
        )


def _path(given: JSON, member: str, what: str) -> Path:
    text = given.get(member)
    if not isinstance(text, str):
        raise BadInput(f"A {what} needs '{member}', a property path such as '/partitionKey'.")
    return parse_path(text)


def _choice(value: JSON, what: str, allowed: Collection[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise _bad(f"has the {what} {value!r}; allowed are {', '.join(allowed)}")
    return value


def _bad(why: str) -> BadInput:
    return BadInput(f"The synthetic key {why}.")
