"""The plain data of a write, made by the caller before any transaction begins.

The caller parses, validates, hashes and makes the index entries; what is left for the transaction
is to look, compare and put. Plain values all the way down, so that a command can travel to another
process. What travels with each write is a Struct: a named tuple takes three times as long to read.
"""

from typing import Any, NamedTuple, TypeAlias

import msgspec

from armillary import errors
from armillary.errors import DbError
from armillary.store.index.entries import Entries

Refusal: TypeAlias = tuple[str, str, dict[str, Any]]


class Context(NamedTuple):
    """What the caller believes about the physical partition and the container's settings."""

    fence: bytes
    container: bytes
    now_s: int
    self_prefix: str
    policy: int
    policies: tuple[tuple[int, bytes], ...]
    """Every indexing policy that items may have been indexed under: (version, JSON)."""
    default_ttl: int
    """0: time to live is off."""
    logical_bytes_max: int
    retention_s: int
    """How long the all-versions feed keeps old versions; 0: not at all."""
    fixed: bool = False
    """The whole container may be as large as one logical partition, and no larger."""


class Key(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One logical partition."""

    epk_key: bytes
    digest: bytes
    identity: bytes
    json: bytes


class Op(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One operation on one item. `kind`: create, upsert, replace, delete, read, or fail."""

    kind: str
    id: str
    id_part: bytes
    text: bytes = b""
    new_id: str = ""
    """Replace may rename; the same as `id` when it does not."""
    new_id_part: bytes = b""
    ttl: int = 0
    entries: Entries | None = None
    if_match: str | None = None
    if_none_match: str | None = None
    expect_lsn: int | None = None
    """The text was computed from the version with this LSN (0: from nothing); else run again."""
    refusal: Refusal | None = None
    """For `fail`: what the caller already knows is wrong with this operation."""
    rid: bytes = b""
    """Reserved before, because a script has seen it already. Empty: the next one."""
    etag: bytes = b""
    gone: list[bytes] | None = None
    """Range entries that the version `expect_lsn` has and this one lacks; `entries` then has those
    that this one has alone, and both have the same paths. None: `entries` has all."""


class Done(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one operation did, and the facts its request charge is made of."""

    outcome: str
    """created, replaced, deleted, read"""
    text: bytes
    etag: str
    lsn: int
    old_bytes: int = 0
    new_bytes: int = 0
    leaves_removed: int = 0
    leaves_added: int = 0
    charge_ru: float = 0.0
    """Filled in by the caller's side, which knows the formula."""


class Failed(NamedTuple):
    """A batch that did not happen: which operation, and why."""

    position: int
    refusal: Refusal


def to_refusal(error: DbError) -> Refusal:
    return type(error).__name__, error.message, error.facts


def from_refusal(refusal: Refusal) -> DbError:
    name, message, facts = refusal
    kind = getattr(errors, name)
    assert issubclass(kind, DbError)
    error: DbError = kind(message, **facts)
    return error
