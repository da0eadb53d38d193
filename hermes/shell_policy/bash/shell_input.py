"""Standard input of a command, as far as it is known, and the script that a shell runs from it."""

from __future__ import annotations

from hermes.domain.values import dataclass
from hermes.shell_policy.bash.simple_command import shell_argument
from hermes.shell_policy.bash.wrapper import SHELLS, Script, name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellInput:
    text: str | None = None  # None: it is not known
    feeders: tuple[str, ...] = ()


NO_INPUT = ShellInput()


def shell_script(argv: tuple[str, ...], given: ShellInput) -> list[Script]:
    """Return the script that a shell runs, from `-c` or from known input."""
    name = name_of(argv)
    text, rest = shell_argument(argv) if name in SHELLS else (None, ())
    if text is not None:
        return [Script(text=text, positional=rest)]
    runs_input = (
        name in SHELLS
        or (given.text and name in {"ssh", "su"})
        or (given.text and name in {"sudo", "doas"} and {"-s", "-i"} & set(argv))
        or (given.text and name in {"source", "."} and argv[1:2] in {("/dev/stdin",), ("/dev/fd/0",)})
    )
    return [Script(text=given.text)] if runs_input and given.text is not None else []
