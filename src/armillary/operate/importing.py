"""Items of a file into a container: JSON Lines, a JSON array, CSV (`.gz` of each), Parquet.

Items are upserted in groups, so doing one twice does no harm; a journal alongside the file says how
many are done, and a second run goes on there. What is refused (no key, too large, …) is counted and
reported with its place in the file; the rest goes in.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from armillary.declare.item_files import read_entries
from armillary.errors import BadInput
from armillary.limits import MB
from armillary.operate.journal import Journal
from armillary.operate.ports import Items
from armillary.store.items.bulk import few_collections

#: Of one group, which a journal counts as a whole: so many items, of about so many bytes.
GROUP_ITEMS_FIRST = 1_000
GROUP_ITEMS_MAX = 10_000
GROUP_BYTES = 8 * MB  # two are in memory at once
REFUSALS_KEPT = 20
LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class Refusal:
    number: int
    """Of the item in the file, from 1."""
    why: str


@dataclass(frozen=True, slots=True)
class Imported:
    items: int
    refused: int
    refusals: tuple[Refusal, ...]
    """The first of them."""
    resumed_at: int


def import_items(
    target: Items,
    source: Path,
    *,
    progress: Callable[[int], None] = lambda items: None,
    total: Callable[[int], None] = lambda items: None,
    entries: Callable[[Path], Iterator[dict[str, Any] | BadInput]] = read_entries,
) -> Imported:
    """`progress` hears how many items of the file are done, `total` about how many there are: by
    the size of the first ones, where the file says no more; `entries` reads them from it."""
    size = source.stat().st_size if source.is_file() else -1
    if size < 0:
        raise BadInput(f"There is no file {source}.")
    work = {
        "container": target.identity,
        "bytes": size,
        "changed": source.stat().st_mtime_ns,
    }
    journal = Journal(source.with_name(source.name + ".journal"), work)
    state = journal.load() or {"done": 0, "refused": 0}
    begin, refused = state["done"], state["refused"]
    done = at = begin
    refusals: list[Refusal] = []
    under_way: deque[_Group] = deque()

    def settle(keep: int) -> None:
        """All but the last `keep` of those under way."""
        nonlocal refused, done
        while len(under_way) > keep:
            group = under_way.popleft()
            for number, why in group.refused():
                refused += 1
                if len(refusals) < REFUSALS_KEPT:
                    refusals.append(Refusal(number, why))
            done += len(group.entries)
            journal.save(done=done, refused=refused)
            progress(done)

    left = islice(entries(source), begin, None)
    fitting = GROUP_ITEMS_FIRST
    with few_collections:
        while some := _next_entries(left, fitting, partial(settle, 0)):
            # Made ready and sent while the one before is written.
            under_way.append(_Group(target, some, at))
            settle(1)
            text_bytes = max(1, _text_bytes(some))
            if at == begin and source.suffix in LINES:
                total(begin + round(size * len(some) / text_bytes))
            fitting = max(1, min(GROUP_ITEMS_MAX, GROUP_BYTES * len(some) // text_bytes))
            at += len(some)
        settle(0)
    journal.remove()
    return Imported(done - refused, refused, tuple(refusals), begin)


def _next_entries(left: Iterator[Any], count: int, finish: Callable[[], object]) -> list[Any]:
    """`finish` what is under way before saying that the rest of the file can't be read."""
    try:
        return list(islice(left, count))
    except BadInput:
        finish()
        raise


def _text_bytes(group: list[Any]) -> int:
    """About what they take in a file of lines."""
    some = group[:: max(1, len(group) // 50)]
    texts = [len(orjson.dumps(one)) + 1 for one in some if isinstance(one, dict)]
    return sum(texts) * len(group) // max(1, len(texts))


class _Group:
    """Entries of the file on their way, from the one after `at` on."""

    def __init__(self, target: Items, entries: list[Any], at: int) -> None:
        self.entries = entries
        self._at = at
        self._items = [n for n, one in enumerate(entries) if isinstance(one, dict)]
        self._finish = target.start_upserts([entries[n] for n in self._items])

    def refused(self) -> Iterator[tuple[int, str]]:
        """(its number in the file, why), in the order of the file."""
        why = dict(zip(self._items, self._finish(), strict=True))
        why |= {n: str(one) for n, one in enumerate(self.entries) if isinstance(one, BadInput)}
        for n in range(len(self.entries)):
            if reason := why.get(n):
                yield self._at + n + 1, reason
