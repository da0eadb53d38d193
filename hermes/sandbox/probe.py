"""Probe that a sandbox works on this machine: run the real command line once and check its result.

Versions and sysctls are not enough, because containers, security modules and kernels differ. bubblewrap's error
message is mapped to a cause and a remedy, and shown as well.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from hermes.domain.values import dataclass

_TIME_LIMIT_S: Final = 10.0
PROOF: Final = (
    'test "$$" -le 3 && ! touch /etc/.hermes-probe 2>/dev/null && '
    'test "$(tail -n +2 /proc/net/route | wc -l)" = 0 && echo "sandboxed $(grep Seccomp: /proc/self/status)"'
)


class Cause(StrEnum):
    WORKS = "works"
    OFF = "off"  # by configuration
    NOT_LINUX = "not_linux"
    NOT_INSTALLED = "not_installed"
    NO_NAMESPACES = "no_namespaces"
    NAMESPACE_LIMIT = "namespace_limit"
    APPARMOR = "apparmor"
    PROC_MASKED = "proc_masked"
    CONTAINER = "container"
    TOO_OLD = "too_old"
    NOT_PROVED = "not_proved"
    OTHER = "other"


# Parts of bubblewrap's error messages, in order of preference.
_SIGNS: Final[Sequence[tuple[str, Cause]]] = (
    ("No permissions to creat", Cause.NO_NAMESPACES),
    ("namespaces exceeded", Cause.NAMESPACE_LIMIT),
    ("No space left on device", Cause.NAMESPACE_LIMIT),
    ("setting up uid map", Cause.APPARMOR),
    ("RTM_NEWADDR", Cause.APPARMOR),
    ("mount proc on", Cause.PROC_MASKED),
    ("Creating new namespace failed", Cause.CONTAINER),
    ("unshare failed", Cause.CONTAINER),
    ("Unknown option", Cause.TOO_OLD),
)
_REMEDIES: Final = {
    Cause.WORKS: "",
    Cause.OFF: "set sandbox.mode to auto",
    Cause.NOT_LINUX: "run Hermes on Linux; this system has no sandbox",
    Cause.NOT_INSTALLED: "install bubblewrap (Debian and Ubuntu: apt install bubblewrap)",
    Cause.NO_NAMESPACES: "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1; in a container, use a "
    "seccomp profile that allows clone, unshare, mount and pivot_root",
    Cause.NAMESPACE_LIMIT: "raise the limit: sysctl user.max_user_namespaces=10000",
    Cause.APPARMOR: "load an AppArmor profile that lets bwrap make user namespaces (Ubuntu: bwrap-userns-restrict in "
    "the package apparmor-profiles)",
    Cause.PROC_MASKED: "start the container with an unmasked /proc (podman: --security-opt unmask=ALL; docker: "
    "--security-opt systempaths=unconfined)",
    Cause.CONTAINER: "run Hermes as an ordinary user, or allow its container to create namespaces",
    Cause.TOO_OLD: "install bubblewrap 0.8 or newer",
    Cause.NOT_PROVED: "the sandbox started, but its isolation check failed; please report it",
    Cause.OTHER: "run bwrap manually to see the error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    cause: Cause
    detail: str = ""  # bubblewrap's error message
    filtered: bool = False  # a seccomp filter is in force

    @property
    def works(self) -> bool:
        return self.cause is Cause.WORKS

    @property
    def remedy(self) -> str:
        return _REMEDIES[self.cause]


def judged(code: int, output: str, errors: str) -> Probe:
    """Return the result of a probe from the run's exit code and output. Pure."""
    if code == 0 and output.startswith("sandboxed"):
        return Probe(cause=Cause.WORKS, filtered=output.split()[-1:] == ["2"])
    words = errors.strip().splitlines()
    detail = words[-1][:300] if words else ""
    cause = next((cause for sign, cause in _SIGNS if sign in errors), None)
    if cause is None:
        cause = Cause.OTHER if "bwrap:" in errors or code else Cause.NOT_PROVED
    return Probe(cause=cause, detail=detail or output.strip()[:300])


def run_probe(argv: Sequence[str], descriptors: Sequence[int]) -> Probe:
    """Run the probe: `argv` is the command line, `descriptors` are those that it names. Blocking."""
    try:
        done = subprocess.run(  # noqa: S603 - our own line
            argv,
            capture_output=True,
            pass_fds=descriptors,
            timeout=_TIME_LIMIT_S,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            check=False,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return Probe(cause=Cause.OTHER, detail=f"it did not end within {_TIME_LIMIT_S:g} s")
    except OSError as error:
        return Probe(
            cause=Cause.NOT_INSTALLED if isinstance(error, FileNotFoundError) else Cause.OTHER, detail=str(error)
        )
    return judged(done.returncode, done.stdout, done.stderr)
