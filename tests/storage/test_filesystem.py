from __future__ import annotations

from pathlib import Path

import pytest

from hermes.storage.filesystem import Reserve, remote_kind

MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 27 0:40 / /home rw shared:5 - nfs4 server:/export/home rw,vers=4.2
31 30 254:1 / /home/local rw shared:6 master:2 - xfs /dev/vdb rw
32 27 0:41 / /mnt/with\\040space rw - fuse.sshfs me@host: rw
33 27 0:42 / /mnt/share rw - cifs //server/share rw
38 27 0:47 / /mnt/säule rw - lustre somewhere rw
34 27 0:43 / /mnt/disk rw - fuseblk /dev/sdb1 rw
35 27 0:44 / /mnt/twice rw - ext4 /dev/sdc rw
36 35 0:45 / /mnt/twice rw - 9p host rw
37 27 0:46 / /mnt/ntfs rw - fuse.ntfs-3g /dev/sdd rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/hermes", None),
        ("/home/ada/.hermes", "nfs4"),
        ("/home", "nfs4"),
        ("/homely", None),
        ("/home/local/ada", None),
        ("/mnt/with space/x", "fuse.sshfs"),
        ("/mnt/share/x", "cifs"),
        ("/mnt/säule/x", "lustre"),
        ("/mnt/disk/x", None),
        ("/mnt/twice/x", "9p"),
        ("/mnt/ntfs/x", None),
    ],
)
def test_network_file_systems_are_known_by_the_mount_that_holds_the_path(path: str, kind: str | None) -> None:
    assert remote_kind(Path(path), MOUNTS) == kind


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs", "lustre", "afs"]
)
def test_each_kind_of_network_file_system_is_refused(kind: str) -> None:
    assert remote_kind(Path("/x"), f"1 0 0:1 / / rw - {kind} somewhere rw\n") == kind


def test_a_path_that_is_on_no_known_mount_is_fine() -> None:
    assert remote_kind(Path("/x"), "") is None


def test_the_reserve_is_taken_given_up_and_taken_again(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path)
    reserve.fill()
    [file] = tmp_path.iterdir()
    assert file.stat().st_size == Reserve.SIZE
    assert file.stat().st_mode & 0o777 == 0o600
    assert reserve.release()
    assert list(tmp_path.iterdir()) == []
    assert not reserve.release()
    reserve.fill()
    assert Reserve(tmp_path).release()


@pytest.mark.parametrize("size", [0, 1, Reserve.SIZE - 1])
def test_a_torn_reserve_is_written_whole_again(tmp_path: Path, size: int, synced: list[Path]) -> None:
    file = tmp_path / "reserve"
    file.write_bytes(bytes(size))
    reserve = Reserve(tmp_path)
    reserve.fill()
    assert file.stat().st_size == Reserve.SIZE
    assert synced == [file]
    assert reserve.release()


def test_a_torn_reserve_does_not_count_as_one(tmp_path: Path) -> None:
    (tmp_path / "reserve").write_bytes(b"")
    assert not Reserve(tmp_path).release()
