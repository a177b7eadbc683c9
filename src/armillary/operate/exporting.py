"""Items of a container to a file, without system properties unless asked.

    read pages ──▶ FILE.part, one JSON object per line ──▶ FILE: as it is, zipped, or as a table

`FILE.journal` has the continuation and the number of bytes that belong to it. A second run cuts the
part there and goes on, also when partitions have split meanwhile. Items that are changed during an
export may be in it in either version. The end of the name says the form: `.csv`, `.parquet`,
`.bson`, `.gz`, else JSON Lines.
"""

import gzip
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from armillary.encoding.documents import SYSTEM_PROPERTIES
from armillary.engine.lmdb.folder import from_system
from armillary.errors import BadInput
from armillary.operate.journal import Journal
from armillary.operate.ports import Items
from armillary.operate.tables import write_csv, write_parquet

PAGE_ITEMS = 1000


@dataclass(frozen=True, slots=True)
class Exported:
    items: int
    bytes: int
    resumed: bool


def export_items(
    source: Items,
    target: Path,
    *,
    system: bool = False,
    hidden: Collection[str] = SYSTEM_PROPERTIES,
    progress: Callable[[int], None] = lambda items: None,
    finish: Callable[[Path, Path], int] | None = None,
) -> Exported:
    """`hidden`: members that are written only with `system`; `progress` hears how many items are
    written; `finish` makes the target of the gathered lines and says how large it is."""
    if target.exists():
        raise BadInput(f"{target} is there already. Move it away or give another name.")
    part = target.with_name(target.name + ".part")
    work = {"container": source.identity, "system": system}
    journal = Journal(target.with_name(target.name + ".journal"), work)
    state = journal.load() if part.is_file() else None
    items, continuation = (state["items"], state["continuation"]) if state else (0, None)
    try:
        with part.open("r+b" if state else "wb") as file:
            if state:
                file.truncate(state["bytes"])
                file.seek(state["bytes"])
            while True:
                page = source.read_page(PAGE_ITEMS, continuation)
                for item in page.items:
                    if not system and hidden:
                        item = {k: v for k, v in item.items() if k not in hidden}
                    file.write(orjson.dumps(item, option=orjson.OPT_APPEND_NEWLINE))
                items += len(page.items)
                continuation = page.continuation
                file.flush()
                progress(items)
                if continuation is None:
                    break
                journal.save(items=items, continuation=continuation, bytes=file.tell())
        size = (finish or _finish)(part, target)
    except OSError as error:
        raise from_system(error, target) from error
    journal.remove()
    return Exported(items, size, state is not None)


def _finish(part: Path, target: Path) -> int:
    """The gathered lines in the form of the target, all at once; how many bytes that are."""
    form = FORMS.get(Path(target.name.removesuffix(".gz")).suffix, _as_lines)
    written = part.with_name(f".{target.name}.part")
    try:
        form(part, written)
        written.replace(target)
    finally:
        written.unlink(missing_ok=True)
    part.unlink(missing_ok=True)
    return target.stat().st_size


def _as_lines(part: Path, target: Path) -> None:
    if not target.name.removesuffix(".part").endswith(".gz"):
        part.replace(target)
        return
    with part.open("rb") as lines, gzip.open(target, "wb") as zipped:
        shutil.copyfileobj(lines, zipped, 1 << 20)


def _as_bson(part: Path, target: Path) -> None:
    from armillary.operate.documents import write_bson

    write_bson(part, target)


FORMS: Final[dict[str, Callable[[Path, Path], None]]] = {
    ".bson": _as_bson,
    ".csv": write_csv,
    ".parquet": write_parquet,
}
