"""Everything that is needed to start one program in a sandbox, as values."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from hermes.domain.values import dataclass

# Of the programs that make a sandbox: nothing in it was chosen by a command.
OUTER_ENVIRONMENT: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


SWAPPED: Final = "hermes: nothing was run: a directory was replaced while the sandbox was made"


ARGS_FD: Final = 100  # in a shim, which has few descriptors


SECCOMP_FD: Final = 101


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUser:
    """User and group that the tools of a root daemon run as."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    prefix: tuple[str, ...]  # the program that makes the sandbox, ready for `--args FD -- PROGRAM`
    options: tuple[str, ...]
    seccomp: bytes = b""
    user: ToolUser | None = None  # owner of its descriptors; None: the daemon's user
    network: bool = False
    granted_hosts: frozenset[str] = frozenset()  # that its network reaches, besides those of every conversation
    checks: tuple[tuple[str, str], ...] = ()  # paths inside, and the device and inode that each must have

    def arguments(self, environ: Mapping[str, str], *more: str) -> bytes:
        """Return the content of the descriptor that `--args` names. `environ`: variables of the program.

        The variables are set inside only: a command chose some of them, and the programs that make the sandbox run
        outside of it.
        """
        given = {} if self.checks else environ
        variables = [each for name, value in given.items() for each in ("--setenv", name, value)]
        chosen = (*self.options, "--clearenv", *variables, *more)
        return b"".join(each.encode("utf-8", "surrogateescape") + b"\0" for each in chosen)

    def program(self, argv: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return the command line that runs inside. It first checks that no directory was swapped for a link.

        The check gets none of the program's variables, so that an earlier command cannot influence it.
        """
        if not self.checks:
            return tuple(argv)
        paths = " ".join(shlex.quote(path) for path, _ in self.checks)
        wanted = shlex.quote("\n".join(identity for _, identity in self.checks))
        same = f'[ "$(/usr/bin/stat -c %d:%i -- {paths})" = {wanted} ]'
        check = f'{same} || {{ echo "{SWAPPED}" >&2; exit 126; }}; exec "$@"'
        variables = (f"{name}={value}" for name, value in environ.items())
        return ("/bin/sh", "-c", check, "check", "/usr/bin/env", "-i", *variables, *argv)
