"""Which folders may be opened, by whom, and what is known about their past."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from armillary.engine.lmdb.folder import (
    NETWORK_FILESYSTEMS,
    UNCLEAN_PREFIX,
    filesystem_of,
    from_system,
    opening,
    refuse_network,
)
from armillary.engine.lmdb.format import FORMAT, Stamp, read_stamp, write_stamp
from armillary.errors import FormatMismatch, ReadOnlyStore, StorageFull, Unavailable

MOUNTINFO = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:30 / /mnt/share rw - nfs4 server:/export rw
31 30 0:31 / /mnt/share/local rw - xfs /dev/vdb rw
32 22 0:32 / /mnt/with\\040space rw - cifs //server/x rw
33 22 0:33 / /mnt/twice rw - nfs server:/a rw
34 22 0:34 / /mnt/twice rw - tmpfs tmpfs rw
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mountinfo"
    path.write_text(MOUNTINFO)
    return path


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/srv/data", "ext4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/deep/er", "nfs4"),
        ("/mnt/shared", "ext4"),
        ("/mnt/share/local/data", "xfs"),
        ("/mnt/with space/data", "cifs"),
        ("/mnt/twice/data", "tmpfs"),
    ],
)
def test_the_filesystem_is_that_of_the_nearest_mount(folder: str, kind: str, mounts: Path) -> None:
    assert filesystem_of(Path(folder), mounts) == kind


def test_a_network_filesystem_is_refused_by_name(mounts: Path) -> None:
    with pytest.raises(Unavailable, match=r"network filesystem \(nfs4\)"):
        refuse_network(Path("/mnt/share/data"), mounts)
    refuse_network(Path("/mnt/share/local/data"), mounts)


def test_a_system_without_mountinfo_is_trusted(tmp_path: Path) -> None:
    assert filesystem_of(tmp_path, tmp_path / "none") is None
    refuse_network(tmp_path, tmp_path / "none")


def test_this_machine_is_understood(tmp_path: Path) -> None:
    assert filesystem_of(tmp_path) not in NETWORK_FILESYSTEMS


def test_opening_makes_and_stamps_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with opening(folder, "lmdb") as opened:
        assert not opened.unclean_open
    stamp = read_stamp(folder)
    assert stamp is not None
    assert stamp.engine == "lmdb"
    opened.close()


def test_a_folder_of_another_engine_is_refused(tmp_path: Path) -> None:
    write_stamp(tmp_path, Stamp(1, "rocks", "1.0"))
    with pytest.raises(FormatMismatch, match="'rocks'"), opening(tmp_path, "lmdb"):
        pass


def test_a_foreign_folder_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"not ours")
    with pytest.raises(FormatMismatch), opening(tmp_path, "lmdb"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["data.mdb"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(FormatMismatch, match="can't be used"), opening(tmp_path / "file", "lmdb"):
        pass
    with pytest.raises(FormatMismatch), opening(tmp_path / "file" / "below", "lmdb"):
        pass


@pytest.mark.parametrize(
    ("number", "kind"),
    [(13, ReadOnlyStore), (30, ReadOnlyStore), (28, StorageFull), (5, Unavailable)],
)
def test_what_the_system_says_becomes_our_word(number: int, kind: type, tmp_path: Path) -> None:
    error = from_system(OSError(number, os.strerror(number)), tmp_path)
    assert type(error) is kind
    assert os.strerror(number) in error.message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_read_only(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(ReadOnlyStore), opening(tmp_path, "lmdb"):
            pass
    finally:
        tmp_path.chmod(0o755)


def test_a_migration_does_not_wait_it_refuses_while_others_are_in(tmp_path: Path) -> None:
    with opening(tmp_path, "lmdb") as first:
        pass
    migrations = {FORMAT: lambda folder: (folder / "migrated").write_text("yes")}
    with (
        pytest.raises(Unavailable, match="another process has it open"),
        opening(tmp_path, "lmdb", format=FORMAT + 1, migrations=migrations),
    ):
        pass
    first.close()
    with opening(tmp_path, "lmdb", format=FORMAT + 1, migrations=migrations) as second:
        pass
    second.close()
    assert (tmp_path / "migrated").exists()
    stamp = read_stamp(tmp_path)
    assert stamp is not None
    assert stamp.format == FORMAT + 1
    with pytest.raises(FormatMismatch, match=f"reads up to {FORMAT}"), opening(tmp_path, "lmdb"):
        pass


def test_a_mark_of_the_living_is_not_unclean_and_one_of_the_dead_is(tmp_path: Path) -> None:
    with opening(tmp_path, "lmdb") as first:
        first.mark_relaxed()
    with opening(tmp_path, "lmdb") as second:
        assert not second.unclean_open, "its owner lives"
    second.close()
    (tmp_path / f"{UNCLEAN_PREFIX}1-dead").touch()
    with opening(tmp_path, "lmdb") as third:
        assert third.unclean_open
    with opening(tmp_path, "lmdb") as fourth:
        assert fourth.unclean_open, "until somebody closed cleanly after it"
    third.close()
    fourth.close()
    first.close()
    assert not list(tmp_path.glob(f"{UNCLEAN_PREFIX}*"))
    with opening(tmp_path, "lmdb") as fifth:
        assert not fifth.unclean_open
    fifth.close()
