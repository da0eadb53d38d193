"""Archives of skills: tar and zip, read in memory with limits, and written without traces of this machine.

Nothing is extracted to disk. A link, a device, a path outside, a duplicate or a bomb refuses the whole archive.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from hermes.domain.skill.skill import (
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_TOTAL_BYTES,
    SKILL_FILE,
    SkillError,
    check_path,
)
from hermes.skills.skill_tree import SkillTree, TreeFile

MAX_ARCHIVE_BYTES: Final = 32 << 20
_MAX_ENTRIES: Final = 5000
_MAX_ARCHIVED: Final = 4 * MAX_TOTAL_BYTES  # of an archive with several skills
_IGNORED: Final = frozenset({"__MACOSX", "__pycache__", "node_modules"})


def read_archive(data: bytes) -> SkillTree:
    """Return all files of an archive. Raises SkillError."""
    if len(data) > MAX_ARCHIVE_BYTES:
        raise SkillError(f"the archive is larger than {MAX_ARCHIVE_BYTES >> 20} MB")
    tree: dict[str, TreeFile] = {}
    try:
        entries = _zipped(data) if zipfile.is_zipfile(io.BytesIO(data)) else _tarred(data)
        total = 0
        for path, file in entries:
            total += len(file.data)
            if total > _MAX_ARCHIVED:
                raise SkillError(f"the archive unpacks to more than {_MAX_ARCHIVED >> 20} MB")
            if path in tree:
                raise SkillError(f"{path} is twice in the archive")
            tree[path] = file
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        raise SkillError(f"it is not a readable tar or zip archive: {error}") from None
    except (NotImplementedError, RuntimeError, ValueError, UnicodeError) as error:
        raise SkillError(f"the archive cannot be read: {error}") from None
    return tree


def skill_in(files: SkillTree, path: str = "") -> SkillTree:
    """Return the one skill in these files, or the one at this path. Raises SkillError."""
    inside = path.strip("/")
    roots = sorted(
        each.rpartition("/")[0]
        for each in files
        if each.rpartition("/")[2] in (SKILL_FILE, SKILL_FILE.lower()) and (not inside or _is_below(each, inside))
    )
    roots = [root for root in roots if not any(_is_below(root, other) for other in roots if other != root)]
    if not roots:
        raise SkillError(f"there is no {SKILL_FILE}" + (f" in {inside}" if inside else ""))
    if len(roots) > 1:
        named = ", ".join(roots[:20])
        raise SkillError(f"there are {len(roots)} skills: choose one with --path: {named}")
    prefix = f"{roots[0]}/" if roots[0] else ""
    tree = {each.removeprefix(prefix): files[each] for each in files if each.startswith(prefix)}
    if SKILL_FILE not in tree:
        tree[SKILL_FILE] = tree.pop(SKILL_FILE.lower())
    return tree


def write_archive(path: Path, name: str, tree: SkillTree) -> None:
    """Write a `.tar.gz` or `.zip` with the skill as its only folder. Equal skills give equal bytes in it."""
    with path.open("xb") as target:
        if path.suffix == ".zip":
            _write_zip(target, name, tree)
        else:
            _write_tar(target, name, tree)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/") or not folder


# ------------------------------------------------------------ reading


def _tarred(data: bytes) -> Iterator[tuple[str, TreeFile]]:
    with tarfile.open(fileobj=io.BytesIO(_unpacked(data)), mode="r:") as archive:
        for number, member in enumerate(archive):
            if number >= _MAX_ENTRIES:
                raise SkillError(f"the archive has more than {_MAX_ENTRIES} entries")
            if member.isdir():
                _checked(member.name.rstrip("/") + "/x")
                continue
            path = _checked(member.name)
            if not member.isreg() or member.issparse():
                raise SkillError(f"{member.name[:100]!r} is a link or a special file")
            if path:
                source = archive.extractfile(member)
                assert source is not None
                yield path, TreeFile(data=_limited(source, path), executable=bool(member.mode & stat.S_IXUSR))


def _unpacked(data: bytes) -> bytes:
    """Return the uncompressed archive, of limited size: the reader of tar files trusts the sizes in it."""
    for magic, opened in ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ", lzma.open)):
        if data.startswith(magic):
            with opened(io.BytesIO(data)) as source:
                data = source.read(_MAX_ARCHIVED + 1)
            break
    if len(data) > _MAX_ARCHIVED:
        raise SkillError(f"the archive unpacks to more than {_MAX_ARCHIVED >> 20} MB")
    return data


def _zipped(data: bytes) -> Iterator[tuple[str, TreeFile]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if len(archive.infolist()) > _MAX_ENTRIES:
            raise SkillError(f"the archive has more than {_MAX_ENTRIES} entries")
        for entry in archive.infolist():
            mode = entry.external_attr >> 16
            if entry.is_dir():
                _checked(entry.filename.rstrip("/") + "/x")
                continue
            path = _checked(entry.filename)
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise SkillError(f"{entry.filename[:100]!r} is a link or a special file")
            if path:
                with archive.open(entry) as source:
                    yield path, TreeFile(data=_limited(source, path), executable=bool(mode & stat.S_IXUSR))


def _checked(name: str) -> str:
    """Return the path of an entry; empty if it is not part of a skill. Raises SkillError for a path outside."""
    path = name.removeprefix("./")
    if path in ("", ".", "x"):
        return ""
    parts = path.split("/")
    if path.startswith("/") or "\\" in path or ".." in parts or "\0" in path:
        raise SkillError(f"{name[:100]!r} is a path outside the archive")
    if any(part.startswith(".") or part in _IGNORED for part in parts):
        return ""
    return "/".join(check_path(path))


def _limited(source: IO[bytes], path: str) -> bytes:
    data = source.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise SkillError(f"{path} is larger than {MAX_FILE_BYTES} bytes")
    return data


# ------------------------------------------------------------ writing


def _write_tar(target: IO[bytes], name: str, tree: SkillTree) -> None:
    with tarfile.open(fileobj=target, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(tree)[:MAX_FILES]:
            member = tarfile.TarInfo(f"{name}/{path}")
            member.size, member.mode = len(tree[path].data), 0o755 if tree[path].executable else 0o644
            archive.addfile(member, io.BytesIO(tree[path].data))


def _write_zip(target: IO[bytes], name: str, tree: SkillTree) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(tree)[:MAX_FILES]:
            entry = zipfile.ZipInfo(f"{name}/{path}")
            entry.external_attr = (stat.S_IFREG | (0o755 if tree[path].executable else 0o644)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, tree[path].data)
