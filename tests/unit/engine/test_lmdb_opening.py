"""Opening a folder with LMDB: sharing, forks, foreign and damaged data, clean and unclean ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest
from tests.support.children import output_of, run_child, start_child
from tests.support.commands import command, first_rows

from armillary.engine.lmdb.engine import LmdbEngine
from armillary.engine.lmdb.errors import WORDS, translate
from armillary.errors import BadInput, DbError, FormatMismatch, StorageFull, Unavailable

OpenLmdb = Callable[..., LmdbEngine]


def test_a_second_open_shares_the_environment(open_lmdb: OpenLmdb, tmp_path: Path) -> None:
    first = open_lmdb()
    first.create_space(1, first_rows())
    (tmp_path / "link").symlink_to(tmp_path / "data")
    second = open_lmdb(tmp_path / "link")
    assert second._environment is first._environment
    futures = [engine.submit(1, command(("count", b"c"))) for engine in (first, second) * 20]
    assert sorted(future.result()[0] for future in futures) == list(range(1, 41))
    first.close()
    first.close()
    assert second.run(1, command(("count", b"c"))) == [41]
    with pytest.raises(Unavailable):
        first.read_via(1, b"c", b"")
    second.close()
    third = open_lmdb()
    assert third.read_via(1, b"c", b"")[1] == b"41"


def test_a_second_open_with_other_settings_is_refused(open_lmdb: OpenLmdb) -> None:
    open_lmdb()
    with pytest.raises(Unavailable, match="other settings"):
        open_lmdb(durability="relaxed")


FORK = """
engine = LmdbEngine(folder, HANDLERS)
engine.create_space(1, first_rows())
engine.read_via(1, b"c", b"")
child = os.fork()
if child == 0:
    attempts = {
        "read_via": lambda: engine.read_via(1, b"c", b""),
        "read": lambda: engine.read(1),
        "submit": lambda: engine.submit(1, command(("count", b"c"))),
        "create": lambda: engine.create_space(2, first_rows()),
        "spaces": lambda: engine.spaces(),
        "open": lambda: LmdbEngine(folder, HANDLERS),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
        except BaseException as error:
            print(name, type(error).__name__, "fork" in str(error))
    engine.close()
    print("closed", flush=True)
    os._exit(0)
os.waitpid(child, 0)
print("parent", engine.run(1, command(("count", b"c"))), engine.spaces())
engine.close()
"""


def test_after_a_fork_the_child_is_told_and_the_parent_is_not_hurt(tmp_path: Path) -> None:
    lines = output_of(FORK, tmp_path / "data").splitlines()
    names = ["read_via", "read", "submit", "create", "spaces", "open"]
    assert lines == [
        *(f"{name} Unavailable True" for name in names),
        "closed",
        "parent [1] [1]",
    ]


def test_a_network_filesystem_is_refused_before_anything_is_made(
    open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"22 1 0:1 / / rw - ext4 x rw\n23 22 0:2 / {tmp_path} rw - nfs4 x rw\n")
    with pytest.raises(Unavailable, match="nfs4"):
        open_lmdb(mounts=mounts)
    assert list((tmp_path / "data").iterdir()) == []


def test_garbage_is_refused(open_lmdb: OpenLmdb, tmp_path: Path) -> None:
    open_lmdb().close()
    (tmp_path / "data" / "data.mdb").write_bytes(b"\xab" * 40_000)
    with pytest.raises(FormatMismatch):
        open_lmdb()


def test_a_file_cut_short_is_refused_and_not_a_bus_error_later(
    open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    engine = open_lmdb()
    engine.create_space(1, [*first_rows(), *((b"k%d" % n, b"v" * 500) for n in range(500))])
    engine.close()
    data = tmp_path / "data" / "data.mdb"
    data.write_bytes(data.read_bytes()[:-8192])
    with pytest.raises(FormatMismatch, match="cut short"):
        open_lmdb()


def test_a_file_that_lacks_free_pages_only_is_whole(open_lmdb: OpenLmdb, tmp_path: Path) -> None:
    """LMDB does not write a page that a transaction took and gave back: an item of a megabyte that
    is created and deleted in one batch, and the folder could not be opened again."""
    engine = open_lmdb()
    engine.create_space(1, [*first_rows(), *((b"k%d" % n, b"v" * 3000) for n in range(100))])
    engine.run(1, command(*(("delete", b"k%d" % n) for n in range(50))))
    with engine._environment.lmdb.begin(write=True) as transaction:
        transaction.put(b"large", b"x" * 1_000_000)
        transaction.delete(b"large")
    pages = engine._environment.lmdb.info()["last_pgno"] + 1
    engine.close()
    data = tmp_path / "data" / "data.mdb"
    assert data.stat().st_size < pages * 4096, "LMDB has left it short"
    engine = open_lmdb()
    with engine.read(1) as reader:
        assert reader.get(b"k70") == b"v" * 3000
    engine.close()
    data.write_bytes(data.read_bytes()[:-8192])
    with pytest.raises(FormatMismatch, match="cut short"):
        open_lmdb()


def test_another_inner_layout_is_refused(open_lmdb: OpenLmdb, tmp_path: Path) -> None:
    open_lmdb().close()
    with (
        lmdb.open(str(tmp_path / "data"), max_dbs=10) as environment,
        environment.begin(write=True) as transaction,
    ):
        transaction.put(b"armillary", b"99")
    with pytest.raises(FormatMismatch, match="inner layout"):
        open_lmdb()


def test_a_map_too_small_to_live_in_is_refused(open_lmdb: OpenLmdb) -> None:
    with pytest.raises(BadInput):
        open_lmdb(map_bytes=1000)


def test_every_error_of_lmdb_has_our_word() -> None:
    kinds = [kind for kind in vars(lmdb).values() if _is_error(kind)]
    assert len(kinds) > 20
    for kind in kinds:
        assert isinstance(translate(kind("what", 0)), DbError), kind
    assert isinstance(translate(lmdb.DiskError("put", 28)), StorageFull)
    assert set(WORDS) <= set(kinds)


def _is_error(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, lmdb.Error)


OPEN_AND_COUNT = """
engine = LmdbEngine(folder, HANDLERS)
try:
    engine.create_space(1, first_rows())
except Exception as error:
    assert type(error).__name__ == "Conflict", error
for _ in range(20):
    engine.run(1, command(("count", b"c")))
engine.close()
"""


def test_several_processes_may_open_a_new_folder_at_once(
    open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    children = [start_child(OPEN_AND_COUNT, tmp_path / "data") for _ in range(4)]
    for child in children:
        _, errors = child.communicate(timeout=60)
        assert child.returncode == 0, errors
    assert open_lmdb().read_via(1, b"c", b"")[1] == b"80"


DIE = """
engine = LmdbEngine(folder, HANDLERS, durability=sys.argv[2])
print(engine.unclean_open)
engine.create_space(1, first_rows())
engine.run(1, command(("count", b"c")))
sys.stdout.flush()
os._exit(9)
"""


@pytest.mark.parametrize(("durability", "unclean"), [("full", False), ("relaxed", True)])
def test_after_a_death_only_relaxed_data_is_unclean(
    open_lmdb: OpenLmdb, tmp_path: Path, durability: str, unclean: bool
) -> None:
    died = run_child(DIE, tmp_path / "data", durability)
    assert (died.returncode, died.stdout.strip()) == (9, "False"), died.stderr
    engine = open_lmdb()
    assert engine.unclean_open is unclean
    assert engine.read_via(1, b"c", b"")[1] == b"1"
    engine.close()
    assert open_lmdb().unclean_open is False, "a clean close settles it"


def test_a_clean_close_of_relaxed_data_is_clean(open_lmdb: OpenLmdb, tmp_path: Path) -> None:
    engine = open_lmdb(durability="relaxed")
    engine.create_space(1, first_rows())
    assert len(list((tmp_path / "data").glob("unclean-*"))) == 1
    engine.close()
    assert list((tmp_path / "data").glob("unclean-*")) == []
    assert open_lmdb().unclean_open is False


def test_a_backup_opens_like_any_folder_and_holds_what_was_there(
    open_lmdb: OpenLmdb, tmp_path: Path
) -> None:
    engine = open_lmdb(own_max=1, read_seconds_max=0.001)
    for space in (1, 2, 3):
        engine.create_space(space, [*first_rows(str(space)), (b"k", b"%d" % space)])
    engine.drop_space(2)
    engine.backup(tmp_path / "copy")
    engine.run(1, command(("put", b"k", b"later")))
    copy = open_lmdb(tmp_path / "copy")
    assert copy.spaces() == [1, 3]
    assert copy.read_via(1, b"k", b"") == (b"1:0", b"1", None)
    assert copy.read_via(3, b"k", b"") == (b"3:0", b"3", None)
    assert copy.run(3, command(("count", b"c"))) == [1]


def test_half_a_backup_is_not_taken_for_a_whole_one(
    open_lmdb: OpenLmdb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_lmdb()

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("armillary.engine.lmdb.engine.write_stamp", die)
    with pytest.raises(KeyboardInterrupt):
        engine.backup(tmp_path / "copy")
    with pytest.raises(FormatMismatch, match="did not finish"):
        open_lmdb(tmp_path / "copy")


def test_a_backup_goes_where_it_can_be_written(open_lmdb: OpenLmdb, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DbError):
        open_lmdb().backup(tmp_path / "file" / "copy")
