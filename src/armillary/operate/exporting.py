"""Items of a container as JSON Lines, one object per line, without system properties unless asked.

The file grows as `FILE.part`; `FILE.journal` has the continuation and the number of bytes that
belong to it. A second run cuts the part there and goes on, also when partitions have split
meanwhile. Items that are changed during an export may be in it in either version.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson

from armillary.container import Container
from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.engine.folder import from_system
from armillary.errors import BadInput
from armillary.operate.journal import Journal

PAGE_ITEMS = 1000


@dataclass(frozen=True, slots=True)
class Exported:
    items: int
    bytes: int
    resumed: bool


def export_items(
    container: Container,
    target: Path,
    *,
    system: bool = False,
    progress: Callable[[int], None] = lambda items: None,
) -> Exported:
    """`progress` hears how many items are written."""
    if target.exists():
        raise BadInput(f"{target} is there already. Move it away or give another name.")
    part = target.with_name(target.name + ".part")
    work = {"container": container.properties()["_rid"], "system": system}
    journal = Journal(target.with_name(target.name + ".journal"), work)
    state = journal.load() if part.is_file() else None
    items, continuation = (state["items"], state["continuation"]) if state else (0, None)
    try:
        with part.open("r+b" if state else "wb") as file:
            if state:
                file.truncate(state["bytes"])
                file.seek(state["bytes"])
            while True:
                page = container.read_page(max_items=PAGE_ITEMS, continuation=continuation)
                for item in page.items:
                    if not system:
                        item = {k: v for k, v in item.items() if k not in SYSTEM_PROPERTIES}
                    file.write(orjson.dumps(item, option=orjson.OPT_APPEND_NEWLINE))
                items += len(page.items)
                continuation = page.continuation
                file.flush()
                progress(items)
                if continuation is None:
                    break
                journal.save(items=items, continuation=continuation, bytes=file.tell())
            size = file.tell()
        part.replace(target)
    except OSError as error:
        raise from_system(error, target) from error
    journal.remove()
    return Exported(items, size, state is not None)
