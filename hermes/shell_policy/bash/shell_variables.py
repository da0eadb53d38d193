"""Variables of a command line. Each may have one of several possible values."""

from __future__ import annotations

import copy
from typing import Self

from hermes.shell_policy.bash.expansion import changed_value
from hermes.shell_policy.bash.syntax import UNKNOWN, Assigned, Literal, Variable

MAX_CHOICES = 12
DAEMON_PID = "PPID"  # value of `$PPID`: the shell's parent is the daemon
_MAX_REFERENCES = 8


class ShellVariables:
    def __init__(self, *, cwd: str, home: str, hermes_home: str) -> None:
        self.candidates: dict[str, list[tuple[str, ...]]] = {  # possible values; a value is an array
            "HOME": [(home,)],
            "PWD": [(cwd,)],
            "IFS": [(" \t\n",)],
            "SHELL": [("/bin/bash",)],
            "BASH": [("/bin/bash",)],
            "0": [("bash",)],
            "PPID": [(DAEMON_PID,)],
        }
        if hermes_home:
            self.candidates["HERMES_HOME"] = [(hermes_home,)]
        self.references: dict[str, str] = {}  # of `declare -n`
        self.positional: tuple[str, ...] = ()
        self.choice: dict[str, int] = {}  # index of the chosen candidate; default: the last
        self.ambiguous: set[str] = set()  # variables that were read and have several candidates

    def copy(self) -> Self:
        """Return a copy for a subshell."""
        other = copy.copy(self)
        other.candidates = dict(self.candidates)
        return other

    def last(self, name: str, otherwise: tuple[str, ...] = (UNKNOWN,)) -> tuple[str, ...]:
        return self.candidates.get(name, [otherwise])[-1]

    def set(self, name: str, values: tuple[str, ...], *, maybe: bool) -> None:
        """Set a value. `maybe`: the variable may also keep its old value."""
        name = self._referred(name)
        candidates = self.candidates.get(name, []) if maybe else []
        if len(candidates) >= MAX_CHOICES:
            candidates, values = [], (UNKNOWN,)
        self.candidates[name] = [*(each for each in candidates if each != values), values]

    def known(self, variable: Variable) -> tuple[str, ...] | None:
        """Return the chosen value; None if the variable was never set."""
        name = self._referred(variable.name)
        if name in {"@", "*"}:
            return self.positional
        if name.isdigit() and name != "0":
            if UNKNOWN in "".join(self.positional):
                return (UNKNOWN,)
            index = int(name) - 1 if len(name) < 4 else len(self.positional)
            return (self.positional[index],) if index < len(self.positional) else ("",)
        candidates = self.candidates.get(name)
        if not candidates:
            return None
        if len(candidates) > 1:
            self.ambiguous.add(name)
        picked = candidates[min(self.choice.get(name, len(candidates) - 1), len(candidates) - 1)]
        if variable.subscript is None:
            return picked[:1] or ("",)
        index_text = "".join(part.text for part in variable.subscript if isinstance(part, Literal))
        if index_text in {"@", "*"}:
            return picked
        if index_text.isdecimal() and len(index_text) < 4:
            return picked[int(index_text) : int(index_text) + 1] or (UNKNOWN,)
        return (UNKNOWN,)

    def assign(self, assigned: Assigned, values: tuple[str, ...], *, maybe: bool) -> None:
        """Assign expanded values. `name+=` and `name[i]=` keep what was there."""
        if assigned.subscript is not None or (assigned.append and len(assigned.words) != 1):
            values = (*self.last(assigned.name, ()), *values)
        elif assigned.append:
            known = self.last(assigned.name)
            values = ((known[0] if known else "") + values[0],)
        self.set(assigned.name, values, maybe=maybe)

    def expanded(self, variable: Variable, operand: str) -> tuple[tuple[str, ...], bool]:
        """Return the value of `${name...}`, and whether it depends on a variable that was never set."""
        known = self.known(variable)
        match variable.operation:
            case "" | "?" | ":?":
                return (UNKNOWN,) if known is None else known, False
            case "-" | ":-" | "=" | ":=":
                if known is not None and (known != ("",) or variable.operation[0] != ":"):
                    return known, False
                if "=" in variable.operation:
                    self.set(variable.name, (operand,), maybe=True)
                return (operand,), known is None
            case "+" | ":+":
                return (operand,), known is None
            case "!" if known is not None:
                return self.known(Variable(name=known[0])) or (UNKNOWN,), False
            case operation if known is not None and len(known) == 1:
                return (changed_value(known[0], operation, operand),), False
            case _:
                return (UNKNOWN,), False

    def _referred(self, name: str) -> str:
        for _ in range(_MAX_REFERENCES):
            if name not in self.references:
                break
            name = self.references[name]
        return name
