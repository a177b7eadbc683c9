"""The free list that is read from the file is the one that LMDB has."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import lmdb
import pytest

from armillary.engine.lmdb.free_pages import Unreadable, free_pages


@pytest.mark.parametrize("items", [0, 3, 200, 3000])
def test_used_and_free_pages_are_all_there_are(tmp_path: Path, items: int) -> None:
    random = Random(items)
    version: dict[str, Any] = {"lib_version": 0} if int(lmdb.__version__.split(".")[0]) >= 3 else {}
    with lmdb.open(str(tmp_path), map_size=1 << 30, max_dbs=4, **version) as environment:
        for start in range(0, items, 100):
            with environment.begin(write=True) as transaction:
                for number in range(start, min(items, start + 100)):
                    transaction.put(b"%d" % number, b"v" * random.choice((10, 900, 9000)))
        for number in random.sample(range(items), items // 2):
            with environment.begin(write=True) as transaction:
                transaction.delete(b"%d" % number)
        found = free_pages(tmp_path / "data.mdb", environment.stat()["psize"])
        info, stat = environment.info(), environment.stat()
        last = info["last_pgno"]
    used = sum(stat[name] for name in ("branch_pages", "leaf_pages", "overflow_pages"))
    assert all(2 <= page <= last for page in found)
    # The rest are the two meta pages, and those of the free list itself.
    of_list = last + 1 - 2 - used - len(found)
    assert 0 <= of_list <= 2 + len(found) // 100


def test_what_is_no_such_file_is_told(tmp_path: Path) -> None:
    for number, data in enumerate((b"", b"x" * 100, b"x" * 10_000)):
        file = tmp_path / str(number)
        file.write_bytes(data)
        with pytest.raises(Unreadable):
            free_pages(file, 4096)
