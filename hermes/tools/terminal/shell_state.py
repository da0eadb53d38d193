"""What a conversation's shell remembers from one command to the next: its directory and its exported variables.

Each command has a shell of its own. Before it ends it writes both to a file in memory that it has inherited, also on
`exit` and after a failure: nothing of the daemon's folders has to be visible to it. What
differs from the environment that every command begins with is kept in the conversation's folder, so that a variable
nobody touched follows the daemon's. A shell that was killed, or replaced itself by another program, changes nothing.

The file may hold whatever a command exported: it is private (0600), and is replaced whole or not at all.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from hermes.domain.values import dataclass
from hermes.processes.child import ChildLimits, fixed_file, is_bash, limit_commands
from hermes.tools.tool import ToolError

_FILE: Final = "shell.json"
_CAPTURE_MAX_BYTES: Final = 2**20  # the kernel takes 2 MB, and the next command has to fit in as well
_OF_THE_SHELL: Final = ("_", "SHLVL", "PWD", "SHELLOPTS", "BASHOPTS")  # it sets them itself

# In one line, so that the command's own lines are numbered from 1. What is redirected to nowhere would be seen under
# `set -x`. A trap on EXIT may be replaced by the command's own; bash therefore also has `exit` as a function.
# Subshells have the function too, hence the look at the process id.
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
    cwd: str = ""  # empty: where conversations begin
    changed: Mapping[str, str | None]  # exported variables, by name; None: it was removed

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in {**base, **self.changed}.items() if value is not None}


FRESH: Final = ShellState(changed={})


def shell_argv(*, shell: str, env: str, command: str, capture: int, limits: ChildLimits) -> tuple[str, ...]:
    """How to run the command in this shell, so that its state is in `capture` afterwards. `env` is the program."""
    bash = is_bash(shell)
    before = _BEFORE.format(limits=f"{{ {limit_commands(limits, bash=bash)} }} 2>/dev/null;", env=env)
    options = ("--noprofile", "--norc") if bash else ()
    script = before + (_EXIT if bash else "") + _AFTER
    return (shell, *options, "-c", script, Path(shell).name, command, f"/dev/fd/{capture}")


def load(folder: Path) -> ShellState:
    """Raises ValueError when there is one that cannot be used."""
    try:
        text = (folder / _FILE).read_text("utf-8")
    except FileNotFoundError:
        return FRESH
    stored = json.loads(text)
    if not isinstance(stored, dict) or not _is_state(stored.get("cwd"), stored.get("env")):
        raise ValueError("not a shell's state")
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
    descriptor, name = tempfile.mkstemp(prefix=f".{_FILE}-", dir=folder)  # private by itself
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"cwd": state.cwd, "env": state.changed}, file)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(folder / _FILE)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def open_capture() -> Iterator[int]:
    """A file in memory for a shell to write to. It cannot grow: a command inherits it."""
    with ExitStack() as held:
        try:
            capture = fixed_file(held, _CAPTURE_MAX_BYTES + 1)
        except OSError as error:  # no descriptor, or no memory, is left
            raise ToolError(f"nothing was run: {error.strerror}") from error
        yield capture


def read_capture(capture: int, base: Mapping[str, str]) -> ShellState | None:
    """The state a shell left; None when it left none that can be used."""
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
    return {name: value for name, value in changed.items() if name not in _OF_THE_SHELL}


def nearest_directory(path: Path) -> Path:
    """The directory itself or, when it is gone, the first above it that is there."""
    return next((each for each in (path, *path.parents) if each.is_dir()), Path("/"))
