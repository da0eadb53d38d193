"""The archive of a backup: a tar file that begins with a manifest, which names every file with size and checksum.

It appears under its name when it is whole. What comes out of it is checked while it is written, and nothing comes
out that the manifest does not name.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

from hermes.durable import sync_directory
from hermes.errors import HermesError
from hermes.values import dataclass

FORMAT: Final = 1
SUFFIXES: Final = (".tar", ".tar.gz", ".tgz")
_MANIFEST: Final = "manifest.json"
_QUICK: Final = 1  # of gzip's levels: a store shrinks nearly as much as with the best of them
_CHUNK: Final = 1 << 20

Progress: TypeAlias = Callable[[str, int, int], None]  # what is being done, and how many bytes of how many are


class BackupError(HermesError):
    """No backup was made, or it cannot be used. What was there is as it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    path: str  # in the archive, with slashes
    size_bytes: int
    sha256: str
    mode: int = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    version: str  # of the Hermes that made it
    made_at: float
    home: str
    hot: bool  # a daemon was at work
    files: tuple[Item, ...]
    problems: tuple[str, ...] = ()  # of the store, which is kept as it is
    left_out: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(item.size_bytes for item in self.files)

    def encode(self) -> bytes:
        values = {"hermes_backup": FORMAT, **asdict(self)}
        return json.dumps(values, indent=1).encode()

    @staticmethod
    def decode(raw: bytes) -> Manifest:
        """Raises BackupError."""
        try:
            values = json.loads(raw)
            number = values.pop("hermes_backup")
            if number != FORMAT:
                version = values.get("version")
                raise BackupError(f"it has format {number} and this Hermes knows {FORMAT}: it is from {version}")
            values["files"] = tuple(Item(**item) for item in values["files"])
            values["problems"], values["left_out"] = tuple(values["problems"]), tuple(values["left_out"])
            return Manifest(**values)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BackupError("its manifest is damaged, or it is no backup of Hermes") from error


# ---------------------------------------------------------------- in


def list_items(directory: Path, progress: Progress) -> Iterator[Item]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    meter = _Meter("computing checksums", sum(path.stat().st_size for path in files), progress)
    for path in files:
        status = path.stat()
        digest = hashlib.sha256()
        with path.open("rb") as file:
            for chunk in meter.chunks(file):
                digest.update(chunk)
        yield Item(
            path=path.relative_to(directory).as_posix(),
            size_bytes=status.st_size,
            sha256=digest.hexdigest(),
            mode=stat.S_IMODE(status.st_mode),
        )


def pack(directory: Path, manifest: Manifest, target: Path, progress: Progress) -> None:
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    meter = _Meter("packing", manifest.size_bytes, progress)
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path
            with _open_tar(file, plain=target.suffix == ".tar") as archive:
                raw = manifest.encode()
                archive.addfile(_entry(_MANIFEST, len(raw), 0o600, manifest.made_at), io.BytesIO(raw))
                for item in manifest.files:
                    entry = _entry(item.path, item.size_bytes, item.mode, manifest.made_at)
                    with (directory / item.path).open("rb") as source:
                        archive.addfile(entry, _Measured(source, meter))  # type: ignore[arg-type]  # it only reads
            file.flush()
            os.fsync(file.fileno())
        part.rename(target)
        sync_directory(target.parent)
    finally:
        part.unlink(missing_ok=True)


class _Meter:
    """How far something is, told with each piece of it."""

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


# ---------------------------------------------------------------- out


def unpack(source: Path, into: Path, progress: Progress) -> Manifest:
    """Everything that the manifest names, and nothing else, each file checked as it is written."""
    try:
        with _opened(source) as archive:
            manifest = _manifest(archive)
            _unpack_all(archive, manifest, into, progress)
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BackupError(f"{source} is cut off or damaged; nothing was changed") from error
    except OSError as error:
        raise BackupError(f"{source} cannot be unpacked: {error.strerror}; nothing was changed") from error
    except BackupError as error:
        raise BackupError(f"{source} cannot be used: {error}; nothing was changed") from error
    return manifest


def _opened(source: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(source)
    except tarfile.TarError as error:
        raise BackupError("it is not an archive, or damaged from its first bytes on") from error


def _unpack_all(archive: tarfile.TarFile, manifest: Manifest, into: Path, progress: Progress) -> None:
    expected = {item.path: item for item in manifest.files}
    meter = _Meter("unpacking", manifest.size_bytes, progress)
    for entry in islice(archive, 1, None):
        item = expected.pop(entry.name, None)
        if item is None or not entry.isreg():
            raise BackupError(f"it holds {entry.name!r}, which its manifest does not name")
        _write(archive, entry, item, into, meter)
    if expected:
        raise BackupError(f"{len(expected)} of its files are missing, {min(expected)!r} among them")


def _manifest(archive: tarfile.TarFile) -> Manifest:
    first = archive.next()
    file = archive.extractfile(first) if first is not None and first.name == _MANIFEST and first.isreg() else None
    if file is None:
        raise BackupError("it does not begin with a manifest: it is no backup of Hermes")
    return Manifest.decode(file.read())


def _write(archive: tarfile.TarFile, entry: tarfile.TarInfo, item: Item, into: Path, meter: _Meter) -> None:
    target = into / item.path
    if not target.is_relative_to(into) or ".." in Path(item.path).parts:
        raise BackupError(f"{item.path!r} leads out of the home")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    source = archive.extractfile(entry)
    assert source is not None, "it is a regular file"
    digest = hashlib.sha256()
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, item.mode & 0o700 | 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path
        for chunk in meter.chunks(source):
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    if entry.size != item.size_bytes or digest.hexdigest() != item.sha256:
        raise BackupError(f"{item.path!r} is damaged: its checksum does not match")
