"""Archive of a backup: a tar file that starts with a manifest, which lists every file with size and checksum.

The HMAC of the manifest follows it (seal.py). A new archive gets its name when it is complete. Unpacking checks each
file while it is written, refuses entries that the manifest does not list, and checks all sizes before writing.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, Self, TypeAlias

from hermes.domain.values import replace
from hermes.system.durable_file import sync_directory
from hermes.upkeep import seal
from hermes.upkeep.backup_manifest import ArchiveEntry, BackupError, EntryKind, Manifest, points_inside
from hermes.upkeep.seal import Seal
from hermes.upkeep.tree_copy import MAX_DEPTH

SUFFIXES: Final = (".tar", ".tar.gz", ".tgz")
_MANIFEST: Final = "manifest.json"
_QUICK: Final = 1  # gzip level: a store gets nearly as small as with the highest
_CHUNK: Final = 1 << 20
_MAX_MANIFEST_BYTES: Final = 64 << 20
_MAX_FILES: Final = 250_000
_MAX_UNPACKED_BYTES: Final = 1 << 40
_MAX_HEADER_BYTES: Final = 64 << 10  # of a tar header with a long name
_RATIO_FROM_BYTES: Final = 1 << 30  # smaller archives may have any ratio
_MAX_RATIO: Final = 200

_TYPES: Final = {
    EntryKind.FILE: tarfile.REGTYPE,
    EntryKind.DIRECTORY: tarfile.DIRTYPE,
    EntryKind.SYMLINK: tarfile.SYMTYPE,
}

Progress: TypeAlias = Callable[[str, int, int], None]  # (step, bytes done, bytes in total)


class UnsealedError(BackupError):
    """The HMAC of the backup is missing or wrong. Nothing was changed."""

    def __init__(self, state: Seal) -> None:
        super().__init__(_UNSEALED[state])
        self.state = state


_UNSEALED: Final = {
    Seal.MISSING: "the backup has no HMAC: it is a copy of a store, or from an older version",
    Seal.NO_KEY: "this home has no backup.key to check the backup's HMAC with; copy it from the home that made it",
    Seal.WRONG: "the backup's HMAC does not match backup.key: it was changed, or made by another home",
}


# ---------------------------------------------------------------- pack


def with_checksums(directory: Path, items: Iterable[ArchiveEntry], progress: Progress) -> Iterator[ArchiveEntry]:
    """Yield the items with size and checksum of their files in `directory`, sorted by path."""
    ordered = sorted(items, key=lambda item: item.path)
    sizes = {item.path: (directory / item.path).stat().st_size for item in ordered if item.kind is EntryKind.FILE}
    meter = _Meter("computing checksums", sum(sizes.values()), progress)
    for item in ordered:
        if item.kind is not EntryKind.FILE:
            yield item
            continue
        digest = hashlib.sha256()
        with (directory / item.path).open("rb") as file:
            for chunk in meter.chunks(file):
                digest.update(chunk)
        yield replace(item, size_bytes=sizes[item.path], sha256=digest.hexdigest())


def pack(directory: Path, manifest: Manifest, target: Path, progress: Progress, *, key: str) -> None:
    """Write the archive, with an HMAC by `key`. Raises BackupError if it exceeds the limits of `unpack`."""
    raw = manifest.encode()
    _check_counts(manifest, len(raw))
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    meter = _Meter("packing", manifest.size_bytes, progress)
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path
            with _open_tar(file, plain=target.suffix == ".tar") as archive:
                for name, content in ((_MANIFEST, raw), (seal.MEMBER, seal.sealed(raw, key))):
                    archive.addfile(_entry(name, len(content), 0o600, manifest.made_at), io.BytesIO(content))
                for item in manifest.files:
                    entry = _entry(item.path, item.size_bytes, item.mode, manifest.made_at)
                    if item.kind is not EntryKind.FILE:
                        entry.type, entry.linkname = _TYPES[item.kind], item.target
                        archive.addfile(entry)
                        continue
                    with (directory / item.path).open("rb") as source:
                        archive.addfile(entry, _Measured(source, meter))  # type: ignore[arg-type]  # it only reads
            file.flush()
            os.fsync(file.fileno())
        part.rename(target)
        sync_directory(target.parent)
    finally:
        part.unlink(missing_ok=True)


class _Meter:
    """Reports the progress of one step."""

    def __init__(self, what: str, total: int, progress: Progress) -> None:
        self._what = what
        self._total = total
        self._progress = progress
        self._done = 0

    def chunks(self, file: IO[bytes]) -> Iterator[bytes]:
        while chunk := file.read(_CHUNK):
            yield chunk
            self.add(len(chunk))

    def add(self, size_bytes: int) -> None:
        self._done += size_bytes
        self._progress(self._what, self._done, self._total)


class _Measured:
    def __init__(self, file: IO[bytes], meter: _Meter) -> None:
        self._file = file
        self._meter = meter

    def read(self, size_bytes: int) -> bytes:
        self._meter.add(size_bytes)
        return self._file.read(size_bytes)


def _open_tar(file: Any, *, plain: bool) -> tarfile.TarFile:
    if plain:
        return tarfile.open(fileobj=file, mode="w")
    return tarfile.open(fileobj=file, mode="w:gz", compresslevel=_QUICK)


def _entry(name: str, size: int, mode: int, at: float) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, mode, int(at)
    return entry


# ---------------------------------------------------------------- unpack


def unpack(
    source: Path, into: Path, progress: Progress, *, key: str | None = None, untrusted: bool = False
) -> Manifest:
    """Unpack exactly the entries of the manifest, and check each file while it is written.

    Raises UnsealedError if the HMAC does not match the key, unless `untrusted` is set.
    """
    try:
        with _opened(source) as archive:
            manifest, state = _manifest(archive, key)
            _require(state, untrusted=untrusted)
            _check_limits(manifest, source.stat().st_size, shutil.disk_usage(into.parent).free)
            _unpack_all(archive, manifest, into, progress)
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BackupError(f"{source} is cut off or damaged; nothing was changed") from error
    except OSError as error:
        raise BackupError(f"{source} cannot be unpacked: {error.strerror}; nothing was changed") from error
    except UnsealedError:
        raise
    except BackupError as error:
        raise BackupError(f"{source} cannot be used: {error}; nothing was changed") from error
    return manifest


def _require(state: Seal, *, untrusted: bool) -> None:
    if state is not Seal.VALID and not untrusted:
        raise UnsealedError(state)


def _check_limits(manifest: Manifest, archive_bytes: int, free_bytes: int) -> None:
    unpacked = manifest.size_bytes
    _check_counts(manifest, 0)
    if any(item.size_bytes < 0 for item in manifest.files) or unpacked > _MAX_UNPACKED_BYTES:
        raise BackupError("the sizes in its manifest are out of bounds")
    if unpacked > _RATIO_FROM_BYTES and unpacked > _MAX_RATIO * archive_bytes:
        raise BackupError(f"it would grow to more than {_MAX_RATIO} times its size")
    if unpacked > free_bytes:
        raise BackupError(f"it needs {unpacked >> 20:,} MB and the disk has {free_bytes >> 20:,} MB left")


def _check_counts(manifest: Manifest, manifest_bytes: int) -> None:
    if len(manifest.files) > _MAX_FILES:
        raise BackupError(f"it has more than {_MAX_FILES:,} files, directories and symlinks")
    if manifest_bytes > _MAX_MANIFEST_BYTES:
        raise BackupError(f"its {_MANIFEST} is larger than {_MAX_MANIFEST_BYTES:,} bytes")


def _opened(source: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(source, tarinfo=_Entry)
    except tarfile.TarError as error:
        raise BackupError("it is not an archive, or its start is damaged") from error


def _unpack_all(archive: tarfile.TarFile, manifest: Manifest, into: Path, progress: Progress) -> None:
    expected = {item.path: item for item in manifest.files}
    meter = _Meter("unpacking", manifest.size_bytes, progress)
    for entry in islice(archive, 1, None):
        if entry.name == seal.MEMBER:
            continue
        item = expected.pop(entry.name, None)
        if item is None or not _matches(entry, item):
            raise BackupError(f"it holds {entry.name!r}, which its manifest does not name")
        _check_path(item)
        if item.kind is EntryKind.FILE:
            _write(archive, entry, item, into, meter)
        elif item.kind is EntryKind.DIRECTORY:
            (into / item.path).mkdir(mode=0o700, parents=True, exist_ok=True)
    if expected:
        raise BackupError(f"{len(expected)} of its files are missing, {min(expected)!r} among them")
    for item in manifest.files:
        if item.kind is EntryKind.DIRECTORY:
            (into / item.path).chmod(item.mode & 0o755 | 0o700)
    _make_links([item for item in manifest.files if item.kind is EntryKind.SYMLINK], into)


def _matches(entry: tarfile.TarInfo, item: ArchiveEntry) -> bool:
    """Return whether the entry has the kind and the link target that the manifest names."""
    if item.kind is EntryKind.FILE:
        return entry.isreg()
    return entry.type == _TYPES[item.kind] and entry.linkname == item.target


def _check_path(item: ArchiveEntry) -> None:
    parts = Path(item.path).parts
    if not parts or item.path.startswith("/") or ".." in parts:
        raise BackupError(f"{item.path!r} is outside of the home")
    if item.path.count("/") > MAX_DEPTH + 1:
        raise BackupError(f"{item.path[:100]!r}… has more than {MAX_DEPTH} directories")
    if item.kind is EntryKind.SYMLINK and not points_inside(item.path, item.target):
        raise BackupError(f"the symlink {item.path!r} points outside of its directory")


def _make_links(links: list[ArchiveEntry], into: Path) -> None:
    """Create the symlinks last, so that nothing is written through them."""
    root = Path(os.path.realpath(into))
    for item in links:
        parent = (root / item.path).parent
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.path.realpath(parent) != str(parent):
            raise BackupError(f"{item.path!r} is below a symlink")
        (root / item.path).symlink_to(item.target)
    for item in links:  # one may point outside through another
        if not Path(os.path.realpath(root / item.path)).is_relative_to(root / item.path.partition("/")[0]):
            raise BackupError(f"the symlink {item.path!r} points outside of its directory")


def _manifest(archive: tarfile.TarFile, key: str | None) -> tuple[Manifest, Seal]:
    raw = _content(archive, archive.next(), _MANIFEST, _MAX_MANIFEST_BYTES)
    if raw is None:
        raise BackupError("it does not start with a manifest: it is not a backup of Hermes")
    found = _content(archive, archive.next(), seal.MEMBER, seal.MAX_BYTES)
    return Manifest.decode(raw), seal.check(raw, found, key)


def _content(archive: tarfile.TarFile, entry: tarfile.TarInfo | None, name: str, most: int) -> bytes | None:
    """Return the content of the entry; None if it has another name."""
    if entry is None or entry.name != name or not entry.isreg():
        return None
    if entry.size > most:
        raise BackupError(f"its {name} is larger than {most:,} bytes")
    file = archive.extractfile(entry)
    assert file is not None, "it is a regular file"
    return file.read()


class _Entry(tarfile.TarInfo):
    """Tar entry with a limit on its header, which tarfile reads into memory."""

    @classmethod
    def frombuf(cls, *args: Any, **more: Any) -> Self:
        found = super().frombuf(*args, **more)
        if found.size > _MAX_HEADER_BYTES and found.type not in tarfile.REGULAR_TYPES:
            raise BackupError("the header of an entry is too large")
        return found


def _write(archive: tarfile.TarFile, entry: tarfile.TarInfo, item: ArchiveEntry, into: Path, meter: _Meter) -> None:
    target = into / item.path
    if entry.size != item.size_bytes:
        raise BackupError(f"{item.path!r} is damaged: its size differs from the manifest")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    source = archive.extractfile(entry)
    assert source is not None, "it is a regular file"
    digest = hashlib.sha256()
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.fchmod(descriptor, item.mode & 0o755 | 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path
        for chunk in meter.chunks(source):
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    if digest.hexdigest() != item.sha256:
        raise BackupError(f"{item.path!r} is damaged: its checksum does not match")
