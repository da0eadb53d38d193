"""A box: everything needed to start one program in a sandbox, as values.

Options reach bubblewrap through a descriptor, because a command can read its init's command line. A daemon that runs
as root drops to another user first. That user may not be able to reach the sources of the mounts (below /root, for
example), so root binds those to places of a private mount namespace before it drops.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import subprocess
from asyncio.subprocess import Process
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import Final

from hermes.domain.process.sandbox_launch import OUTER_ENVIRONMENT, Box, ToolUser
from hermes.domain.values import replace
from hermes.sandbox.sandbox_options import options
from hermes.sandbox.sandbox_plan import SandboxIdentity, SandboxPlan

_LINE_BYTES: Final = 2**16  # asyncio's default
_STAGE: Final = "/mnt"  # hidden only from the command that is being started
_STAGED: Final = """
set -e; uid=$1 gid=$2 bwrap=$3 places=$4 table=$5; shift 5
mount -t tmpfs -o mode=0755,size=64k stage {stage}
mkdir $places
printf '%s\n' "$table" >{stage}/table
mount --all --fstab {stage}/table
exec setpriv --reuid="$uid" --regid="$gid" --clear-groups --no-new-privs "$bwrap" "$@"
"""


def make_box(
    plan: SandboxPlan,
    *,
    bwrap: str,
    seccomp: bytes,
    terminal: bool = False,
    user: ToolUser | None = None,
    staged: Iterable[str] = (),
) -> Box:
    """Return the box of a plan.

    `staged` are directories with sources of mounts that `user` cannot reach by itself.
    """
    if plan.identity is not SandboxIdentity.DROPPED or user is None:
        chosen = tuple(options(plan, terminal=terminal))
        return Box(prefix=(bwrap,), options=chosen, seccomp=seccomp, network=plan.network, checks=plan.checks)
    places = {directory: f"{_STAGE}/{at}" for at, directory in enumerate(dict.fromkeys(staged))}
    moved = tuple(replace(each, source=_moved(each.source, places)) for each in plan.mounts)
    own = tuple(replace(each, source=_moved(each.source, places)) for each in plan.own)
    return Box(
        prefix=_dropping(bwrap, user, places),
        options=tuple(options(replace(plan, mounts=moved, own=own), terminal=terminal)),
        seccomp=seccomp,
        user=user,
        network=plan.network,
        checks=plan.checks,
    )


def _moved(source: str, places: Mapping[str, str]) -> str:
    for directory, place in places.items():
        if source == directory or source.startswith(f"{directory}/"):
            return place + source[len(directory) :]
    return source


def _dropping(bwrap: str, user: ToolUser, places: Mapping[str, str]) -> tuple[str, ...]:
    uid, gid = str(user.uid), str(user.gid)
    if not places:
        return ("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--no-new-privs", bwrap)
    table = "\n".join(f"{_quoted(source)} {place} none bind 0 0" for source, place in places.items())
    script = _STAGED.format(stage=_STAGE)
    return (
        "unshare",
        "--mount",
        "--",
        "sh",
        "-c",
        script,
        "stage",
        uid,
        gid,
        bwrap,
        " ".join(places.values()),
        table,
    )


def _quoted(path: str) -> str:
    """Escape a path for fstab."""
    return "".join(f"\\{ord(each):03o}" if each in " \t\n\\#" else each for each in path)


def memory_file(held: ExitStack, content: bytes) -> int:
    descriptor = os.memfd_create("sandbox")
    held.callback(os.close, descriptor)
    os.set_blocking(descriptor, False)  # an in-memory file never blocks; this marks the write as non-blocking
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


async def start(
    box: Box | None,
    argv: Sequence[str],
    *,
    environ: Mapping[str, str],
    stdin: int,
    stdout: int = subprocess.DEVNULL,
    limit_bytes: int = _LINE_BYTES,
) -> Process:
    """Start a program in the box, or outside of a sandbox without one. Its errors are not read.

    It has its own session, so that Ctrl-C at the daemon's terminal does not reach it. Call this on the event loop's
    thread: a sandbox ends with the thread that forked it.
    """
    with ExitStack() as held:
        line, descriptors = (argv, ()) if box is None else boxed_line(box, argv, held, environ)
        return await asyncio.create_subprocess_exec(
            *line,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            env=environ if box is None else OUTER_ENVIRONMENT,
            cwd="/",
            limit=limit_bytes,
            start_new_session=True,
            pass_fds=descriptors,
        )


def boxed_line(
    box: Box, argv: Sequence[str], held: ExitStack, environ: Mapping[str, str] = MappingProxyType({})
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the command line for a program in the box, and the descriptors that it inherits.

    The descriptors stay open until `held` closes. Start it with `OUTER_ENVIRONMENT`; the program gets `environ`.
    """
    seccomp = memory_file(held, box.seccomp)
    more = ("--seccomp", str(seccomp)) if box.seccomp else ()
    arguments = memory_file(held, box.arguments(environ, *more))
    return (*box.prefix, "--args", str(arguments), "--", *box.program(argv, environ)), (arguments, seccomp)
