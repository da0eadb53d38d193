"""Sources of skills: a folder, an archive, a git repository or a URL, fetched into a private folder.

git runs without hooks, filters, prompts and other protocols than HTTPS, SSH and local files, with depth 1. A URL is
fetched under the guard of the web tools. The daemon scans what is here before anything is installed.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes.domain.skill.skill import SkillError
from hermes.domain.values import dataclass
from hermes.skills.archive import MAX_ARCHIVE_BYTES, read_archive, skill_in
from hermes.skills.skill_tree import TreeFile, check_tree, read_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.skills.skill_tree import SkillTree

_GIT_S: Final = 180
_FETCH_S: Final = 60.0
_ARCHIVES: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip", ".skill")
_MAX_TRACKED: Final = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSource:
    kind: str  # folder, archive, git or url
    address: str
    path: str = ""  # of the skill inside it

    def fields(self) -> dict[str, str]:
        return {"kind": self.kind, "address": self.address, "path": self.path}


def source_of(text: str, path: str = "") -> SkillSource:
    """Return what a text on the command line means. Raises SkillError."""
    if text.startswith(("git+", "ssh://", "git@")) or (text.startswith("https://") and _is_repository(text)):
        return SkillSource(kind="git", address=text.removeprefix("git+"), path=path)
    if text.startswith(("https://", "http://")):
        return SkillSource(kind="url", address=text, path=path)
    place = Path(text).expanduser().absolute()
    if place.is_dir():
        kind = "git" if (place / "HEAD").is_file() and (place / "objects").is_dir() else "folder"
        return SkillSource(kind=kind, address=str(place), path=path)
    if place.is_file():
        return SkillSource(kind="archive", address=str(place), path=path)
    raise SkillError(f"{text[:200]!r} is not a folder, an archive, a git repository or a URL")


def fetch(source: SkillSource, work: Path, *, private: bool) -> tuple[str, Path]:
    """Fetch the skill into a new folder in `work`. Return its name and folder. Raises SkillError."""
    match source.kind:
        case "folder":
            tree = _in_folder(Path(source.address), source.path)
        case "archive":
            tree = skill_in(read_archive(_whole(Path(source.address))), source.path)
        case "git":
            tree = _in_folder(_cloned(source.address, work / "clone"), source.path)
        case _:
            tree = skill_in(_downloaded(source.address, private=private), source.path)
    name = check_tree(tree).name
    folder = work / "skill"
    write_tree(folder, tree)
    return name, folder


def _is_repository(url: str) -> bool:
    if url.endswith(".git"):
        return True
    host, _, rest = url.removeprefix("https://").partition("/")
    return host in ("github.com", "gitlab.com", "codeberg.org") and len(rest.strip("/").split("/")) == 2


def _in_folder(folder: Path, path: str) -> SkillTree:
    """Return the one skill in a folder, or the one at this path. Links anywhere in it are refused."""
    root = folder
    for part in [each for each in path.split("/") if each not in ("", ".")]:
        root = root / part
        if part == ".." or root.is_symlink():
            raise SkillError(f"{path[:100]!r} is not a path inside the source")
    if not root.is_dir():
        raise SkillError(f"there is no folder {path[:100]!r} in the source")
    if (root / "SKILL.md").exists() or (root / "skill.md").exists():
        return read_tree(root, strict=True)
    found = []
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not name.startswith("."))
        if {"SKILL.md", "skill.md"} & set(files):
            found.append(os.path.relpath(directory, folder))
            names.clear()
        if len(found) > _MAX_TRACKED:
            break
    if len(found) != 1:
        named = f"choose one with --path: {', '.join(found[:20])}" if found else "there is no SKILL.md"
        raise SkillError(f"{len(found)} skills were found; {named}")
    return read_tree(folder / found[0], strict=True)


def _whole(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(MAX_ARCHIVE_BYTES + 1)


def _cloned(address: str, target: Path) -> Path:
    if address.startswith("-"):
        raise SkillError(f"{address[:100]!r} is not the address of a repository")
    options = ("core.hooksPath=/dev/null", "core.symlinks=true", "core.fsmonitor=false", "protocol.ext.allow=never")
    command = ["git", *(part for each in options for part in ("-c", each)), "clone", "--quiet", "--depth", "1"]
    command += ["--no-tags", "--no-recurse-submodules", "--single-branch", "--template=", "--", address, str(target)]
    try:
        done = subprocess.run(  # noqa: S603 - a list, and the address follows --
            command,
            env=_git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_S,
            check=False,
        )
    except FileNotFoundError:
        raise SkillError("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise SkillError(f"git did not finish within {_GIT_S} s") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise SkillError(f"git could not fetch it: {lines[-1][:300]}")
    return target


def _git_environment() -> Mapping[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "SSH_AUTH_SOCK", "https_proxy") if name in os.environ}
    return {
        **kept,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ALLOW_PROTOCOL": "https:ssh:file",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        "LC_ALL": "C",
    }


def _downloaded(url: str, *, private: bool) -> SkillTree:
    from hermes.system.public_address import public_only, public_or_private
    from hermes.tools.tool import ToolError
    from hermes.tools.web.address_guard import AddressGuard
    from hermes.tools.web.fetch import FetchLimits, download

    guard = AddressGuard(refusal=public_or_private if private else public_only)
    limits = FetchLimits(body_bytes=MAX_ARCHIVE_BYTES, total_s=_FETCH_S)
    try:
        data, _ = asyncio.run(download(url, guard, limits))
    except ToolError as error:
        raise SkillError(str(error).rstrip(".")) from None
    if url.partition("?")[0].lower().endswith(_ARCHIVES):
        return read_archive(data)
    return {"SKILL.md": TreeFile(data=data)}
