"""Shell state of a conversation between commands: the directory and the exported variables.

Each command runs in a new shell. Before that shell ends, also on `exit` or failure, it writes both to an inherited
in-memory file, so the daemon's folders need not be visible to it. Only differences from the base environment are
stored in the conversation's folder; other variables follow the daemon's. A shell that was killed or replaced itself
with `exec` changes nothing.

The stored file may contain secrets that a command exported. It is private (0600) and replaced atomically.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from hermes.domain.values import dataclass
from hermes.processes.child import ChildLimits, fixed_file, is_bash, limit_commands
from hermes.system.durable_file import replace_file
from hermes.tools.tool import ToolError

_FILE: Final = "shell.json"
_CAPTURE_MAX_BYTES: Final = 2**20  # the kernel takes 2 MB, and the next command has to fit in as well
_SET_BY_SHELL: Final = ("_", "SHLVL", "PWD", "SHELLOPTS", "BASHOPTS")

# One line, so that the command's own lines are numbered from 1. Redirections to /dev/null hide this from `set -x`.
# The command may replace the EXIT trap, so bash also gets `exit` as a function. Subshells inherit that function,
# so it checks the process id.
_BEFORE: Final = (
    "{limits} __hermes_command=$1 __hermes_state=$2; set --; "
    "__hermes_keep() {{ "
    'if [ -z "${{__hermes_kept-}}" ] && [ "${{BASHPID:-$$}}" = "$$" ]; then __hermes_kept=1; '
    '{{ command printf \'%s\\0\' "$(command pwd; command echo .)"; {env} -0; }} 1<>"$__hermes_state"; fi; '
    'return "$1"; }}; '
    "trap '{{ __hermes_keep $?; }} 2>/dev/null' EXIT; "
)
_EXIT: Final = 'exit() { { set -- "${1-$?}"; __hermes_keep 0; } 2>/dev/null; builtin exit "$1"; }; '
_AFTER: Final = 'eval "$__hermes_command"; { __hermes_keep $?; } 2>/dev/null'


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellState:
    cwd: str = ""  # empty: the working directory
    changed: Mapping[str, str | None]  # exported variables by name; None: removed

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in {**base, **self.changed}.items() if value is not None}


FRESH: Final = ShellState(changed={})


def shell_argv(*, shell: str, env: str, command: str, capture: int, limits: ChildLimits) -> tuple[str, ...]:
    """Return an argv that runs the command and writes the shell's state to `capture`. `env` is the env program."""
    bash = is_bash(shell)
    before = _BEFORE.format(limits=f"{{ {limit_commands(limits, bash=bash)} }} 2>/dev/null;", env=env)
    options = ("--noprofile", "--norc") if bash else ()
    script = before + (_EXIT if bash else "") + _AFTER
    return (shell, *options, "-c", script, Path(shell).name, command, f"/dev/fd/{capture}")


def load(folder: Path) -> ShellState:
    """Return the stored state, or a fresh one. Raises ValueError if the stored state is invalid."""
    try:
        text = (folder / _FILE).read_text("utf-8")
    except FileNotFoundError:
        return FRESH
    stored = json.loads(text)
    if not isinstance(stored, dict) or not _is_state(stored.get("cwd"), stored.get("env")):
        raise ValueError("not a valid shell state")
    return ShellState(cwd=stored["cwd"], changed=stored["env"])


def _is_state(cwd: Any, env: Any) -> bool:
    if not isinstance(cwd, str) or not isinstance(env, dict) or "\0" in cwd:
        return False
    return all(
        name and not set(name) & {"=", "\0"} and (value is None or (isinstance(value, str) and "\0" not in value))
        for name, value in env.items()
    )


def save(folder: Path, state: ShellState) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(folder / _FILE, json.dumps({"cwd": state.cwd, "env": state.changed}))


@contextmanager
def open_capture() -> Iterator[int]:
    """Yield an in-memory file of fixed size for a shell to write its state to."""
    with ExitStack() as held:
        try:
            capture = fixed_file(held, _CAPTURE_MAX_BYTES + 1)
        except OSError as error:  # out of descriptors or memory
            raise ToolError(f"The command was not run: {error.strerror}") from error
        yield capture


def read_capture(capture: int, base: Mapping[str, str]) -> ShellState | None:
    """Return the state that a shell wrote; None if there is none or it is invalid."""
    raw = os.pread(capture, _CAPTURE_MAX_BYTES + 1, 0).rstrip(b"\0") + b"\0"
    cwd, *entries = raw.split(b"\0")
    whole = all(b"=" in entry for entry in entries[:-1])
    if len(raw) > _CAPTURE_MAX_BYTES or not entries[:-1] or not whole or not cwd.endswith(b"\n."):
        return None
    pairs = [os.fsdecode(entry).partition("=") for entry in entries[:-1]]
    after = {name: value for name, _, value in pairs if name and not name.startswith("__hermes_")}
    return ShellState(cwd=os.fsdecode(cwd[:-2]), changed=_difference(base, after))


def _difference(base: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    changed: dict[str, str | None] = {name: value for name, value in after.items() if base.get(name) != value}
    changed |= {name: None for name in base if name not in after}
    return {name: value for name, value in changed.items() if name not in _SET_BY_SHELL}


def nearest_directory(path: Path) -> Path:
    """Return the directory, or its nearest existing parent."""
    return next((each for each in (path, *path.parents) if each.is_dir()), Path("/"))
