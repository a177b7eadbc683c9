"""What import and export need of a container, wherever it is: here, or behind a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from armillary.container import Container
from armillary.encoding.partition_key import PartitionKeyDefinition, parse_definition
from armillary.errors import BadInput, DbError, Throttled
from armillary.keys import SyntheticKey


@dataclass(frozen=True, slots=True)
class ItemsPage:
    items: Sequence[dict[str, Any]]
    continuation: str | None


Finish: TypeAlias = Callable[[], list[str | None]]
"""For each item why it was refused, or None. What stops everything is raised."""


class Items(Protocol):
    @property
    def identity(self) -> str:
        """Tells this container from every other one; a journal goes on only with the same."""

    @property
    def partition_key(self) -> PartitionKeyDefinition: ...

    def count(self) -> int | None:
        """About how many there are, for a progress bar."""

    def read_page(self, max_items: int, continuation: str | None) -> ItemsPage: ...

    def start_upserts(self, items: Sequence[dict[str, Any]]) -> Finish:
        """They are on their way, or done, when this returns. Later calls come after them."""


class ShownItems:
    """Items in another form than they are stored in, over those of a container."""

    def __init__(self, items: Items) -> None:
        self._items = items

    @property
    def identity(self) -> str:
        return self._items.identity

    @property
    def partition_key(self) -> PartitionKeyDefinition:
        return self._items.partition_key

    def count(self) -> int | None:
        return self._items.count()

    def read_page(self, max_items: int, continuation: str | None) -> ItemsPage:
        page = self._items.read_page(max_items, continuation)
        shown = [found for one in page.items if (found := self.shown(one)) is not None]
        return ItemsPage(shown, page.continuation)

    def start_upserts(self, items: Sequence[dict[str, Any]]) -> Finish:
        """One that has no stored form is refused."""
        refused: list[str | None] = [None] * len(items)
        places: list[int] = []
        stored: list[dict[str, Any]] = []
        for place, one in enumerate(items):
            try:
                stored.append(self.stored(one))
                places.append(place)
            except BadInput as error:
                refused[place] = str(error)
        done = self._items.start_upserts(stored)

        def finish() -> list[str | None]:
            for place, why in zip(places, done(), strict=True):
                refused[place] = why
            return refused

        return finish

    def shown(self, item: dict[str, Any]) -> dict[str, Any] | None:
        """As a file has it; None: it is left out."""
        raise NotImplementedError

    def stored(self, shown: dict[str, Any]) -> dict[str, Any]:
        """What a file has, as it is stored. Raises BadInput."""
        raise NotImplementedError


class LocalItems:
    """A container of an account that is open in this process."""

    def __init__(self, container: Container) -> None:
        self._container = container

    @property
    def identity(self) -> str:
        return str(self._container.properties()["_rid"])

    @property
    def partition_key(self) -> PartitionKeyDefinition:
        return parse_definition(self._container.properties()["partitionKey"])

    def count(self) -> int | None:
        return sum(one.items for one in self._container.partitions())

    def read_page(self, max_items: int, continuation: str | None) -> ItemsPage:
        page = self._container.read_page(max_items=max_items, continuation=continuation)
        return ItemsPage(page.items, page.continuation)

    def start_upserts(self, items: Sequence[dict[str, Any]]) -> Finish:
        key = keyed_by_chance(self._container.properties())
        keyed = [with_key(key, one) for one in items]
        done = self._container.start_upserts(one for one in keyed if isinstance(one, dict))

        def finish() -> list[str | None]:
            answers = [next(done) if isinstance(one, dict) else one for one in keyed]
            throttled = next((one for one in answers if isinstance(one, Throttled)), None)
            if throttled is not None:
                raise throttled
            return [str(one) if isinstance(one, DbError) else None for one in answers]

        return finish


def keyed_by_chance(definition: Mapping[str, Any]) -> SyntheticKey | None:
    """The synthetic key of a container when its suffix is random: an upsert needs it then."""
    spec = definition.get("syntheticKey")
    key = None if spec is None else SyntheticKey.from_json(spec)
    return key if key is not None and key.is_random else None


def with_key(key: SyntheticKey | None, item: dict[str, Any]) -> dict[str, Any] | BadInput:
    """The same item gets the same key each time, so that importing it twice does no harm."""
    try:
        return item if key is None else key.apply_stably(item)
    except BadInput as error:
        return error
