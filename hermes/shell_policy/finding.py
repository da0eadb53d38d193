"""Finding of a rule about one simple command."""

from __future__ import annotations

from typing import Self

from hermes.domain.values import dataclass, replace
from hermes.shell_policy.bash.simple_command import SimpleCommand
from hermes.shell_policy.bash.syntax import UNKNOWN
from hermes.shell_policy.protected_path import LookupContext, PathKind, absolute, kinds_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    rule: str  # code of the rule; stable, because grants store it
    why: str  # shown after the command, as in "`rm -r x`: deletes a directory tree"


def shown(path: str) -> str:
    """Return a path for a finding: unknown parts as an ellipsis, and not too long."""
    return path.replace(UNKNOWN, "…")[:80]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A simple command and the context for its path lookups."""

    command: SimpleCommand
    place: LookupContext
    name: str
    arguments: tuple[str, ...]

    @classmethod
    def of(cls, command: SimpleCommand, place: LookupContext) -> Self:
        if command.cwd != place.cwd:
            place = replace(place, cwd=command.cwd)
        return cls(command=command, place=place, name=command.name, arguments=command.argv[1:])

    def real(self, path: str) -> tuple[str, ...]:
        """Return the path and the targets of its symbolic links."""
        return (path, *self.place.targets(absolute(path, self.place)))

    def kinds(self, path: str) -> frozenset[PathKind]:
        """Return the kinds of a path and of its link targets."""
        first, *others = (kinds_of(each, self.place) for each in self.real(path))
        return first.union(*others)

    def has(self, *options: str) -> bool:
        """Return whether one of these options is given, alone or in a bundle of short options."""
        for argument in self.arguments:
            if argument in options or any(
                each.startswith("--") and argument.startswith(each + "=") for each in options
            ):
                return True
            if argument.startswith("-") and not argument.startswith("--"):  # noqa: SIM102 - reads best so
                if any(len(each) == 2 and each[1] in argument[1:] for each in options if not each.startswith("--")):
                    return True
        return False
