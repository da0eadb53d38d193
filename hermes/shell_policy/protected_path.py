"""Kinds of protected paths: the system, keys and credentials, startup files, Hermes itself.

Paths are compared as text: `..` and `~` are resolved here, symbolic links by the caller. A path with a pattern or
UNKNOWN has the kinds of all protected paths that it could match.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import chain

from hermes.domain.values import dataclass
from hermes.shell_policy.bash.syntax import ANY_DEPTH, UNKNOWN, words
from hermes.shell_policy.startup_path import is_startup


class PathKind(StrEnum):
    DEVICE = "device"  # a disk or memory device
    HERMES_SECRET = "hermes-secret"  # noqa: S105 - a kind of path
    HERMES_HOME = "hermes-home"
    PROCESS_SECRET = "process-secret"  # noqa: S105
    CREDENTIAL = "credential"
    STARTUP = "startup"  # run at login, by cron or by a shell
    PROMPT = "prompt"  # becomes part of a system prompt once the owner approves it
    SYSTEM = "system"
    HOLDS_SECRET = "holds-secret"  # noqa: S105 - a directory that contains secrets of Hermes or of processes


def no_links(_path: str) -> tuple[str, ...]:
    """Return no link targets, for use without a file system."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAddress:
    """Address that the daemon listens on."""

    ports: frozenset[int] = frozenset({8642})
    hosts: tuple[str, ...] = ()  # in addition to localhost and its addresses


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupContext:
    """Directories and facts for path lookups."""

    cwd: str
    home: str
    hermes_home: str
    work: tuple[str, ...] = ()  # paths of the workspace; empty: the whole home
    targets: Callable[[str], tuple[str, ...]] = no_links
    secrets: tuple[str, ...] = ()  # files and directories of Hermes outside its home, all secret
    own: OwnAddress = OwnAddress()
    daemon: tuple[str, ...] = ()  # process ids of Hermes


_SYSTEM_DIRS = words(
    "/bin /boot /dev /etc /lib /lib32 /lib64 /libx32 /opt /proc /root /run /sbin /srv /sys /usr /var /home /mnt"
    " /media /Users /System /Library /Applications /private /Volumes /usr/bin /usr/lib /usr/lib64 /usr/local"
    " /usr/sbin /usr/share /usr/include /var/lib /var/log /var/spool /var/run /usr/local/bin /usr/local/lib"
    " /etc/ssh"
)
_SYSTEM_FILE = re.compile(
    r"/(?:etc|usr|bin|sbin|lib\w*|boot|sys|proc|opt|srv|var/(?:lib|spool|run)|System|Library)(?:/|\Z)"
)
_STILL_FREE = re.compile(r"/(?:proc/self/(?:fd|comm|oom_score_adj)|usr/local/share/fonts|var/(?:lib|run)/user)\b")
_DEVICE = re.compile(
    r"/dev/(?:[shv]d[a-z]|xvd|nvme|mmcblk|disk|mapper|md\d|loop\d|ram\d|mem\b|kmem|port\b|dm-|sr\d|r?disk\d|block)"
    r"|/proc/(?:sysrq-trigger|kcore|\w+/mem)\b|/sys/(?:block|power|firmware|kernel)\b"
)
_PROCESS_SECRET = re.compile(
    rf"/proc/[^/]+/(?:task/[^/]+/)?(?:environ|mem|auxv)\Z|{UNKNOWN}/environ\Z"
    r"|/proc/(?!self/|thread-self/)[^/]+/(?:task/[^/]+/)?(?:fd|map_files)/."
)
_PROCESS_DIR = re.compile(r"/proc(?:/(?:\d+|self|thread-self)(?:/task(?:/\d+)?)?)?")
# Aliases of the root directory and of a process's current directory.
_PROCESS_ROOT = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?root(?=/|\Z)")
_PROCESS_CWD = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?cwd(?=/|\Z)")
_CREDENTIAL = re.compile(
    r"/\.ssh(?:/(?!known_hosts|config\Z|authorized_keys|[\w.-]*\.pub\Z)|\Z)|/id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?\Z"
    r"|/\.(?:netrc|pgpass|my\.cnf|git-credentials|pypirc|npmrc|htpasswd|vault-token|boto|s3cfg|yarnrc\.yml|mylogin\.cnf)\Z"
    r"|/\.(?:aws|gnupg|kube|azure|password-store|oci)(?:/|\Z)|/\.docker/config\.json\Z|/\.config/(?:gcloud|gh|hub|rclone|op|sops)(?:/|\Z)"
    r"|/\.env(?:rc)?(?:\.(?!example|sample|template|dist|test\Z)[\w-]+)?\Z|/\.cargo/credentials|/\.gem/credentials"
    r"|/etc/(?:shadow|gshadow|sudoers|master\.passwd|ssl/private|krb5\.keytab|ssh/ssh_host_\w+_key)|/\.local/share/keyrings"
    r"|/(?:credentials|service[-_]account)\.json\Z|\.(?:pem|p12|pfx|keystore|jks|kdbx|ovpn)\Z|/api\.key\Z|/\.bash_history\Z"
    r"|/\.zsh_history\Z|/Library/Keychains|/\.mozilla/firefox/.*logins\.json|/\.config/google-chrome/.*Login Data"
)
_PROMPT = re.compile(r"/(?:\.hermes\.md|hermes\.md|agents\.md|claude\.md|\.cursorrules)\Z", re.IGNORECASE)
_HERMES_OWN = re.compile(r"(?:/\.?hermes/(?:.*/)?(?:api\.key|\.env)|/\.?hermes/(?:store(?:/|\Z)|hermes\.sock))")
_PATTERN = re.compile(r"[*?\[\0]")
_CONVERSATION = re.compile(r"work/(?P<id>[\w.:-]+(?:/guest)?)/(?P<part>files|outputs)(?:/|\Z)")
_MEDIA_FILE = re.compile(r"media/[0-9a-f]{16}/[0-9a-f]{64}(?:\.[a-z0-9]{1,8})?")
_SKILL_FILE = re.compile(r"skills(?:/[^/.\0*?\[][^/\0*?\[]*)*")  # without hidden files, such as the lock file
_SAMPLE_NAMES = sorted(
    words(
        ".ssh/id_rsa .ssh/id_ed25519 .ssh/id_ecdsa .ssh/authorized_keys .ssh/config .netrc .pgpass .aws/credentials"
        " .gnupg/secring.gpg .kube/config .docker/config.json .git-credentials .pypirc .npmrc .bashrc .zshrc .profile"
        " .bash_profile .env .zshenv .config/gh/hosts.yml .config/gcloud/credentials.db .vault-token .bash_history"
        " .gitconfig .ssh .aws .gnupg"
    )
)
_SYSTEM_SAMPLES = sorted(
    words(
        "/etc/passwd /etc/shadow /etc/sudoers /etc/crontab /etc/hosts /etc/fstab /etc/profile /dev/sda /dev/sda1"
        " /dev/nvme0n1 /dev/vda /etc/gshadow /proc/1/environ /proc/1234/environ /proc/12/environ /proc/123/environ"
        " /proc/sysrq-trigger /etc/sudoers.d/x /proc/self/environ /proc/thread-self/environ /proc/1/task/1/environ"
        " /proc/self/task/12/environ /proc"
    )
)


def absolute(path: str, place: LookupContext) -> str:
    """Return the absolute path without `..`, `//` and `~`; it starts with UNKNOWN if its start is unknown."""
    if path == "~" or path.startswith("~/"):
        path = place.home + path[1:]
    path = path.removeprefix("file://")
    if not path.startswith(("/", UNKNOWN)):
        path = posixpath.join(place.cwd or UNKNOWN, path)
    path = posixpath.normpath(path)
    if not path.startswith("/"):
        return path if path.startswith(UNKNOWN) else from_unknown(path)
    path = "/" + path.lstrip("/")
    if path.startswith("/proc/"):
        path = _PROCESS_CWD.sub(lambda _: place.cwd or UNKNOWN, path)
        while _PROCESS_ROOT.match(path):
            path = _PROCESS_ROOT.sub("", path, count=1) or "/"
    return path


def from_unknown(path: str) -> str:
    """Return a relative path with UNKNOWN in front, after `..` removed its unknown start."""
    rest = re.sub(r"\A(?:\.\.?(?:/|\Z))+", "", path)
    return f"{UNKNOWN}/{rest}" if rest else UNKNOWN


def is_critical(path: str, place: LookupContext) -> bool:
    """Return whether deleting the path or its content would destroy the system or a home."""
    found = absolute(path, place)
    if found.endswith(f"/{UNKNOWN}") and found.count("/") == 1:
        return True  # the unknown part may be empty, which gives the root
    parent, _, last = found.rpartition("/")
    while last and found != "/" and (last == ANY_DEPTH or not re.sub(r"\[[^\]]*\]|[*?.!{},]", "", last)):
        found = parent or ("/" if found.startswith("/") else UNKNOWN)
        parent, _, last = found.rpartition("/")
    if found == UNKNOWN and not path.startswith(UNKNOWN):
        return True  # everything in an unknown directory, which may be the home
    whole = {"/", posixpath.normpath(place.home), posixpath.dirname(posixpath.normpath(place.home))}
    if found in whole or found in _SYSTEM_DIRS or re.fullmatch(r"/(?:home|Users)/[^/]+", found):
        return True
    if _PATTERN.search(found) and found.startswith("/"):
        return any(_could_be(found, each) for each in (*_SYSTEM_DIRS, *whole))
    return False


@lru_cache(maxsize=4096)
def kinds_of(path: str, place: LookupContext) -> frozenset[PathKind]:
    """Return the protected kinds that the path has or could have."""
    found = absolute(path, place)
    if not _PATTERN.search(found):
        return frozenset(_kinds(found, place))
    kinds = _kinds(found, place)
    if found.startswith("/") and not goes_through(found):
        any_depth = ANY_DEPTH in found
        depths = _samples(place)
        for sample in chain.from_iterable(depths.values()) if any_depth else depths.get(found.count("/"), ()):
            if _could_be(found, sample):
                kinds |= _kinds(sample, place)
    return frozenset(kinds)


# Kinds that depend on the text of a path alone.
_BY_TEXT: tuple[tuple[PathKind, Callable[[str], object]], ...] = (
    (PathKind.DEVICE, _DEVICE.match),
    (PathKind.PROCESS_SECRET, _PROCESS_SECRET.search),
    (PathKind.STARTUP, is_startup),
    (PathKind.PROMPT, _PROMPT.search),
    (PathKind.CREDENTIAL, _CREDENTIAL.search),
    (PathKind.SYSTEM, lambda path: _SYSTEM_FILE.match(path) and not _STILL_FREE.match(path)),
)


def _kinds(path: str, place: LookupContext) -> set[PathKind]:
    kinds = {kind for kind, fits in _BY_TEXT if fits(path)}
    if own := _hermes_kind(path, place):
        kinds.add(own)
    if _holds_secret(path, place):
        kinds.add(PathKind.HOLDS_SECRET)
    return kinds


def _hermes_kind(path: str, place: LookupContext) -> PathKind | None:
    for root in hermes_roots(place):
        if path == root or path.startswith(root + "/"):
            return _kind_inside(root, path[len(root) + 1 :], place)
    if any(path == each or path.startswith(each + "/") for each in place.secrets):
        return PathKind.HERMES_SECRET
    return PathKind.HERMES_SECRET if _HERMES_OWN.search(path) else None


def _kind_inside(root: str, inside: str, place: LookupContext) -> PathKind | None:
    """Return the kind of a path in Hermes' home. Skills, media and the conversation's own files are not secret."""
    if _MEDIA_FILE.fullmatch(inside) or _SKILL_FILE.fullmatch(inside):
        return PathKind.HERMES_HOME
    if not (found := _CONVERSATION.match(inside)):
        return PathKind.HERMES_SECRET
    inner = (_CONVERSATION.match(each[len(root) + 1 :]) for each in place.work if each.startswith(f"{root}/"))
    own = {each["id"] for each in inner if each is not None}
    if own and found["id"] not in own:
        return PathKind.HERMES_SECRET  # of another conversation
    return None if found["part"] == "files" else PathKind.HERMES_HOME


def _holds_secret(path: str, place: LookupContext) -> bool:
    while path.endswith((f"/{UNKNOWN}", f"/{ANY_DEPTH}")) and ANY_DEPTH in path:
        path = path.rpartition("/")[0] or "/"
    if path == "/" or _PROCESS_DIR.fullmatch(path):
        return True
    return any(root == path or root.startswith(path + "/") for root in (*hermes_roots(place), *place.secrets))


def goes_through(path: str) -> bool:
    """Return whether the path stands for everything found below a directory."""
    return path.endswith((ANY_DEPTH, f"{ANY_DEPTH}/{UNKNOWN}"))


def hermes_roots(place: LookupContext) -> tuple[str, ...]:
    """Return Hermes' home if it is known, and the default locations."""
    usual = (".hermes", ".local/share/hermes", ".config/hermes", "Library/Application Support/hermes")
    roots = tuple(f"{place.home.rstrip('/')}/{each}" for each in usual)
    return (posixpath.normpath(place.hermes_home), *roots) if place.hermes_home else roots


@lru_cache(maxsize=16)
def _samples(place: LookupContext) -> dict[int, list[str]]:
    """By depth."""
    homes = (place.home.rstrip("/"), "/root")
    own = [
        f"{root}/{name}"
        for root in hermes_roots(place)
        for name in ("api.key", "service.env", "store/data.mdb", "store", "config.yaml", "hermes.sock", "admin.token")
    ]
    own += [root for each in (*hermes_roots(place), *place.secrets) for root in (each, *_parents(each))]
    samples: dict[int, list[str]] = {}
    for each in (*(f"{home}/{name}" for home in homes for name in _SAMPLE_NAMES), *_SYSTEM_SAMPLES, *own):
        samples.setdefault(each.count("/"), []).append(each)
    return samples


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(2, len(parts))]


def _could_be(pattern: str, path: str) -> bool:
    """As the shell matches: not over slashes, and a leading dot only when it is written."""
    if ANY_DEPTH in pattern:
        before, _, after = pattern.partition(f"/{ANY_DEPTH}")
        heads, tails = before.count("/") + 1, after.count("/")
        names = path.split("/")
        if len(names) < heads + tails or not tails:
            return False
        head, tail = "/".join(names[:heads]), "/".join(names[len(names) - tails :])
        return _could_be(before, head) and (
            after == f"/{UNKNOWN}" or _could_be(after[1:].replace(ANY_DEPTH, UNKNOWN), tail)
        )
    parts, names = pattern.replace(UNKNOWN, "*").split("/"), path.split("/")
    return len(parts) == len(names) and all(map(_matches, names, parts))


def _matches(name: str, part: str) -> bool:
    if name.startswith(".") and part[:1] in {"*", "?", "["}:
        return False
    return name == part or fnmatchcase(name, part.replace("[^", "[!"))
