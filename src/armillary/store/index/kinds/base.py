"""What a kind of index says of itself."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from armillary.encoding.models import ValueModel
from armillary.store.index.paths import Path, path_hash
from armillary.store.index.stamps import Stamp
from armillary.values import JSON

Row: TypeAlias = tuple[bytes, bytes]


class KeyIndex(Protocol):
    """One index of a container, compiled, whose rows say all in their keys and are made with the
    range entries: a write is charged nothing more for them. Two that are equal make the same
    rows."""

    @property
    def prefix(self) -> bytes: ...

    def append_keys(self, item: dict[str, JSON], keys: list[bytes], stamps: list[Stamp]) -> None:
        """What an item puts into it, and where in that the time of its write goes."""
        ...


class OtherIndex(Protocol):
    """One index of a container, compiled. Two that are equal make the same rows."""

    @property
    def prefix(self) -> bytes: ...

    def covers(self, path: Path) -> bool:
        """Whether every item that has something at the path has its entries here."""
        ...

    def rows(self, item: dict[str, JSON]) -> Iterator[Row]:
        """What an item puts into it."""
        ...


def _nothing(_document: Mapping[str, Any]) -> None:
    return None


def _told_nothing(_document: Mapping[str, Any]) -> dict[str, Any]:
    return {}


def _nothing_new(_old: Mapping[str, Any], _new: Mapping[str, Any]) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    """Of its list in the indexing policy."""
    prefix: bytes
    """Of its rows."""
    parse: Callable[[list[JSON]], list[JSON]]
    """The list as it is kept and given back; raises BadInput. Of what it gave it gives the same."""
    describe: Callable[[Mapping[str, Any]], dict[str, JSON]] | None = None
    """What its rows depend on alongside the indexing policy, of a container's definition."""
    compile: Callable[[Mapping[str, Any], Mapping[str, Any]], OtherIndex | None] | None = None
    """An entry of the list, and what `describe` said; None where it makes no rows."""
    compile_keys: Callable[[int, JSON, ValueModel], KeyIndex] | None = None
    """In its place, of an index that needs no description: the number of an entry, and it."""
    told: Callable[[Mapping[str, Any]], dict[str, Any]] = _told_nothing
    """What functions of queries are told, of a container's definition: by the names of fields of
    `query/functions/base.py:Context`."""
    check_policies: Callable[[Mapping[str, Any]], None] = _nothing
    """Its policies of a definition, and its entries against them; raises BadInput. Asked when a
    container is created or replaced, never when one is loaded."""
    check_replacement: Callable[[Mapping[str, Any], Mapping[str, Any]], None] = _nothing_new


def row_prefix(kind: bytes, path: Path) -> bytes:
    return kind + path_hash(path)
