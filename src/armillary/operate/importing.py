"""Items of a file into a container: JSON Lines, a JSON array, CSV (`.gz` of each), Parquet.

Items are upserted in groups, so doing one twice does no harm; a journal alongside the file says how
many are done, and a second run goes on there. What is refused (no key, too large, …) is counted and
reported with its place in the file; the rest goes in.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from armillary.declare.item_files import read_entries
from armillary.errors import BadInput
from armillary.limits import MB
from armillary.operate.journal import Journal
from armillary.operate.ports import Items

#: Of one group, which a journal counts as a whole: so many items, of about so many bytes.
GROUP_ITEMS_FIRST = 1_000
GROUP_ITEMS_MAX = 10_000
GROUP_BYTES = 16 * MB
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
    done = begin
    refusals: list[Refusal] = []
    left = islice(entries(source), begin, None)
    fitting = GROUP_ITEMS_FIRST
    while group := list(islice(left, fitting)):
        for number, why in _put(target, group, done):
            refused += 1
            if len(refusals) < REFUSALS_KEPT:
                refusals.append(Refusal(number, why))
        text_bytes = max(1, _text_bytes(group))
        if done == begin and source.suffix in LINES:
            total(begin + round(size * len(group) / text_bytes))
        fitting = max(1, min(GROUP_ITEMS_MAX, GROUP_BYTES * len(group) // text_bytes))
        done += len(group)
        journal.save(done=done, refused=refused)
        progress(done)
    journal.remove()
    return Imported(done - refused, refused, tuple(refusals), begin)


def _text_bytes(group: list[Any]) -> int:
    """About what they take in a file of lines."""
    some = group[:: max(1, len(group) // 50)]
    texts = [len(orjson.dumps(one)) + 1 for one in some if isinstance(one, dict)]
    return sum(texts) * len(group) // max(1, len(texts))


def _put(target: Items, group: list[Any], done: int) -> Iterator[tuple[int, str]]:
    items = [(done + n, one) for n, one in enumerate(group, 1) if isinstance(one, dict)]
    broken = ((done + n, str(one)) for n, one in enumerate(group, 1) if isinstance(one, BadInput))
    yield from broken
    refused = target.upsert_all([one for _, one in items])
    yield from ((number, why) for (number, _), why in zip(items, refused, strict=True) if why)
