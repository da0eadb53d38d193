"""Simple commands of a bash command line, as they would run.

The syntax tree is walked once in the order it is written. Assignments, `cd`, functions and files written on the same
line are followed; commands inside wrappers, shells, substitutions and here-documents are commands like any other.
What cannot be known before it runs is UNKNOWN text, and a command whose name it is in says so in `unresolved`.
Nothing here raises on any text, and the work is bounded: a line beyond the bounds has a `problem`.
"""

from __future__ import annotations

import math
import posixpath
import re
import shlex
from itertools import product

from hermes.domain.values import dataclass
from hermes.shell_policy.bash.expansion import Expander, static_output
from hermes.shell_policy.bash.grammar import MAX_PARTS, parse_list
from hermes.shell_policy.bash.shell_files import ShellFiles
from hermes.shell_policy.bash.shell_input import NO_INPUT, ShellInput, shell_script
from hermes.shell_policy.bash.shell_variables import MAX_CHOICES, ShellVariables
from hermes.shell_policy.bash.simple_command import (
    Redirection,
    SimpleCommand,
    interprets,
    printed_by,
    resolved,
)
from hermes.shell_policy.bash.syntax import (
    UNKNOWN,
    Assigned,
    Command,
    Compound,
    Function,
    Pipeline,
    Redirect,
    Simple,
    Substitution,
    Variable,
)
from hermes.shell_policy.bash.word_grammar import MAX_DEPTH, Unparsable
from hermes.shell_policy.bash.wrapper import Inner, Script, unwrap
from hermes.shell_policy.protected_path import from_unknown

MAX_TEXT = 128 * 1024  # characters
MAX_COMMANDS = 200
MAX_STEPS = 800  # simple commands visited, including repetitions
MAX_WRAPPED = 8  # `sudo env nice ...`
_DECLARES = frozenset({"declare", "typeset", "export", "local", "readonly"})
_FILLS = frozenset({"read", "mapfile", "readarray", "getopts", "printf", "let"})
_SUBSCRIPTS = _DECLARES | _FILLS | {"test", "[", "unset", "wait"}  # evaluate `a[...]` in their arguments
_MAYBE_TEXT = frozenset(
    {"alias", "bind", "complete", "compgen", "git", "vim", "vi", "nvim", "view", "ex", "less", "gdb"}
)
_RUNS_ITS_VALUE = frozenset(
    {"PROMPT_COMMAND", "PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"}
    | {"GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS", "LESSOPEN"}
    | {"RSYNC_RSH", "CVS_RSH", "BROWSER", "GIT_PROXY_COMMAND", "SYSTEMD_EDITOR", "KUBE_EDITOR", "SUDO_EDITOR"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    commands: tuple[SimpleCommand, ...]
    problem: str = ""  # why it could not be followed completely
    fork_bomb: bool = False


def parse_command_line(text: str, *, cwd: str, home: str, hermes_home: str = "") -> CommandLine:
    walk = _Walk(cwd=cwd or UNKNOWN, home=home, hermes_home=hermes_home)
    problem = ""
    if len(text) > MAX_TEXT:
        problem, text = "it is too long to be checked", text[:MAX_TEXT]
    if UNKNOWN in text:
        problem = "there is a NUL in it"
        text = text.replace(UNKNOWN, "")
    try:
        walk.script(text, NO_INPUT)
    except Unparsable as error:
        problem = problem or str(error)
    except RecursionError:
        problem = "it is nested too deeply"
    if walk.overflown:
        problem = problem or "a value in it is too long to be checked"
    return CommandLine(commands=tuple(walk.commands), problem=problem, fork_bomb=walk.fork_bomb)


class _Walk:
    def __init__(self, *, cwd: str, home: str, hermes_home: str) -> None:
        self.commands: list[SimpleCommand] = []
        self.fork_bomb = False
        self.overflown = False
        self._cwd = cwd
        self._variables = ShellVariables(cwd=cwd, home=home, hermes_home=hermes_home)
        self._functions: dict[str, Function] = {}
        self._aliases: dict[str, str] = {}
        self._calling: list[Function] = []
        self._forks = False  # in a pipe or the background
        self._files = ShellFiles()
        self._ran: set[tuple[object, ...]] = set()
        self._uncertain = False
        self._depth = 0
        self._wrapped = 0
        self._steps = 0
        self._parts_left = [MAX_PARTS]
        self._expander = Expander(
            home=home,
            variable=self._values_of,
            substitution=self._output_of,
            separators=lambda: self._variables.last("IFS")[0].replace(UNKNOWN, "") or "\n",
            overflow=self._overflow,
        )

    def _overflow(self) -> None:
        self.overflown = True

    # Lists

    def script(self, text: str, given: ShellInput, positional: tuple[str, ...] | None = None) -> None:
        self._enter()
        items = parse_list(text, self._depth, self._parts_left)
        before = self._variables.positional
        if positional is not None:
            self._variables.candidates["0"] = [positional[:1]]
            self._variables.positional = positional[1:]
        self._items(items, given, maybe=False)
        self._variables.positional = before
        self._variables.candidates["0"] = [("bash",)]
        self._depth -= 1

    def _items(self, items: tuple[Pipeline, ...], given: ShellInput, *, maybe: bool) -> None:
        for item in items:
            forked, self._forks = self._forks, self._forks or item.background or len(item.commands) > 1
            source = given
            for command in item.commands:
                start = len(self.commands)
                self._command(command, source, maybe=maybe or item.after == "||")
                source = self._piped(command, source, self.commands[start:])
            self._forks = forked

    def _piped(self, command: Command, source: ShellInput, ran: list[SimpleCommand]) -> ShellInput:
        names = (*source.feeders, *(each.name for each in ran if each.argv)) or ("",)
        text = None
        if isinstance(command, Simple) and ran:
            text = printed_by(command, ran)
        return ShellInput(text=text, feeders=names)

    def _command(self, command: Command, given: ShellInput, *, maybe: bool) -> None:
        self._enter()
        self._step()
        match command:
            case Simple():
                self._simple(command, given, maybe=maybe)
            case Compound():
                self._compound(command, given, maybe=maybe)
            case Function(name=name):
                self._functions[name] = command
                self._call(command, (UNKNOWN,), given)
        self._depth -= 1

    def _compound(self, command: Compound, given: ShellInput, *, maybe: bool) -> None:
        redirections, given = self._redirections(command.redirects, given)
        if redirections:
            self._emit(SimpleCommand(argv=(), written=command.kind, cwd=self._cwd, redirections=redirections))
        fields = self._expander.fields(command.words)
        if command.variable:
            self._variables.candidates[command.variable] = _loop_values(fields)
        if command.kind == "(":
            before = dict(self._variables.candidates), self._cwd
            self._items(command.body, given, maybe=maybe)
            self._variables.candidates, self._cwd = before
        else:
            self._items(command.body, given, maybe=maybe or command.kind != "{")

    def _call(self, function: Function, arguments: tuple[str, ...], given: ShellInput) -> None:
        if any(each is function for each in self._calling):  # one of the same name inside is another
            self.fork_bomb = self.fork_bomb or self._forks
            return
        before, self._variables.positional = self._variables.positional, arguments
        forked, self._forks = self._forks, False
        self._calling.append(function)
        self._command(function.body, given, maybe=True)
        self._calling.pop()
        self._variables.positional, self._forks = before, forked

    # Simple commands

    def _simple(self, command: Simple, given: ShellInput, *, maybe: bool) -> None:
        """Run the command once for each possible value of its variables."""
        self._variables.choice, self._variables.ambiguous = {}, set()
        start = len(self.commands)
        self._one(command, given, maybe=maybe)
        names = sorted(self._variables.ambiguous)
        ranges = [range(len(self._variables.candidates.get(name, ())) or 1) for name in names]
        if math.prod(map(len, ranges)) > MAX_CHOICES:
            if start < len(self.commands):
                self._emit_unknown(self.commands[start], "its variables have too many possible values")
            return
        for picked in list(product(*ranges))[:-1]:  # the last of each was the first time
            self._variables.choice = dict(zip(names, picked, strict=True))
            self._one(command, given, maybe=True)
        self._variables.choice = {}

    def _one(self, command: Simple, given: ShellInput, *, maybe: bool) -> None:
        redirections, given = self._redirections(command.redirects, given)
        assignments = tuple((each.name, self._assigned(each)) for each in command.assigned)
        self._uncertain = False
        name = tuple(self._expander.fields(command.words[:1]))
        unresolved = "its name depends on the environment" if self._uncertain else ""
        argv = (*name, *self._expander.fields(command.words[1:]))
        if not argv:
            for each, (_, value) in zip(command.assigned, assignments, strict=True):
                self._assign(each, value, maybe=maybe)
        for variable, value in assignments:
            self._value_that_runs(variable, value)
        made = SimpleCommand(
            argv=argv,
            written=command.written,
            cwd=self._cwd,
            redirections=redirections,
            assignments=assignments,
            stdin=given.text,
            feeders=given.feeders,
            unresolved=unresolved,
        )
        start = len(self.commands)
        self._run(made, given, maybe=maybe)
        self._files.redirected(made, printed_by(command, self.commands[start:]))

    def _run(self, command: SimpleCommand, given: ShellInput, *, maybe: bool = True) -> None:
        """Record the command, apply its effects, and continue with the commands it runs."""
        self._step()
        argv = command.argv
        key = (argv, command.written, command.redirections, command.cwd, given.text, command.guess)
        if argv and key in self._ran and not command.assignments and argv[0] not in self._functions:
            return
        self._ran.add(key)
        self._enter()
        self._wrapped += 1
        if self._wrapped > MAX_WRAPPED:
            raise Unparsable("it is wrapped too often")
        self._files.made_by(command)
        runs_file = self._files.run_by(command)
        self._emit(resolved(command, runs_file))
        if argv:
            self._builtin(argv, given, maybe=maybe)
            if runs_file is not None and UNKNOWN not in runs_file:
                self._run_file(command, runs_file, given)
            for inner in (*unwrap(argv, given.text), *shell_script(argv, given)):
                self._inner(inner, command, given)
            self._other_name(command, given)
            if function := self._functions.get(argv[0]):
                self._call(function, argv[1:], given)
        self._wrapped -= 1
        self._depth -= 1

    def _other_name(self, command: SimpleCommand, given: ShellInput) -> None:
        """Follow an alias, copy or link of a program that this line created."""
        argv = command.argv
        if alias := self._aliases.pop(argv[0], None):  # once: an alias of itself would never end
            self.script(" ".join((alias, *map(shlex.quote, argv[1:]))), given)
            self._aliases[argv[0]] = alias
        if original := self._files.original_of(self._cwd, argv[0]):
            self._inner(Inner(argv=(original, *argv[1:])), command, given)

    def _inner(self, inner: Inner | Script, outer: SimpleCommand, given: ShellInput) -> None:
        if isinstance(inner, Inner):
            if inner.argv:
                made = SimpleCommand(
                    argv=inner.argv,
                    written=outer.written,
                    cwd=outer.cwd,
                    stdin=given.text,
                    feeders=given.feeders,
                    guess=inner.guess or outer.guess,
                )
                if not (inner.guess and outer.guess):  # a guess about a guess is noise
                    self._run(made, given)
            return
        if UNKNOWN in inner.text and not outer.guess:
            self._emit_unknown(outer, "part of the text it hands to a shell is not known")
        try:
            self.script(inner.text, given, inner.positional or None)
        except Unparsable:
            if not outer.guess and outer.name not in _MAYBE_TEXT:
                raise

    def _builtin(self, argv: tuple[str, ...], given: ShellInput, *, maybe: bool) -> None:
        name, arguments = argv[0], argv[1:]
        if name in _SUBSCRIPTS:
            for argument in arguments:
                if "[" in argument and ("$(" in argument or "`" in argument):
                    self._value_that_runs("", argument)
        if name in _DECLARES:
            self._declare(name, arguments, maybe=maybe)
        elif name in _FILLS:
            self._fill(name, arguments, given)
        elif name == "set" and arguments and not arguments[0].startswith(("-", "+")):
            self._variables.positional = arguments
        elif name == "set" and "--" in arguments:
            self._variables.positional = arguments[arguments.index("--") + 1 :]
        elif name == "alias":
            made = (argument.partition("=") for argument in arguments)
            self._aliases.update((each, text) for each, equals, text in made if equals and text.strip())
        elif name in {"cd", "pushd"}:
            self._change_directory(arguments)

    def _declare(self, name: str, arguments: tuple[str, ...], *, maybe: bool) -> None:
        refers = any(re.fullmatch(r"-[a-zA-Z]*n[a-zA-Z]*", each) for each in arguments) and name != "export"
        for argument in arguments:
            variable, equals, value = argument.partition("=")
            if equals and refers:
                self._variables.references[variable] = value
            elif equals:
                self._variables.set(variable.rstrip("+"), (value,), maybe=maybe)
                self._value_that_runs(variable, value)

    def _change_directory(self, arguments: tuple[str, ...]) -> None:
        places = [each for each in arguments if not each.startswith("-") or each == "-"]
        target = places[0] if places else self._variables.last("HOME")[0]
        self._cwd = UNKNOWN if target == "-" else posixpath.normpath(posixpath.join(self._cwd, target))
        if not self._cwd.startswith(("/", UNKNOWN)):
            self._cwd = from_unknown(self._cwd)
        self._variables.candidates["PWD"] = [(self._cwd,)]

    def _fill(self, name: str, arguments: tuple[str, ...], given: ShellInput) -> None:
        if name == "printf":
            if arguments[:1] == ("-v",) and len(arguments) > 2:
                printed = static_output(("printf", *arguments[2:]), None)
                self._variables.set(arguments[1], (UNKNOWN if printed is None else printed,), maybe=False)
            return
        names = [each for each in arguments if re.fullmatch(r"(?a)[A-Za-z_]\w*", each)]
        known = name == "read" and len(names) == 1 and given.text is not None
        for each in names:
            self._variables.set(each, ((given.text or "").partition("\n")[0] if known else UNKNOWN,), maybe=False)

    # Variables

    def _assigned(self, assigned: Assigned) -> str:
        if assigned.subscript is not None:
            self._expander.text(assigned.subscript)
        return " ".join(self._expander.text(word) for word in assigned.words)

    def _assign(self, assigned: Assigned, value: str, *, maybe: bool) -> None:
        values = (value,) if len(assigned.words) == 1 else tuple(self._expander.fields(assigned.words))
        self._variables.assign(assigned, values, maybe=maybe)

    def _value_that_runs(self, name: str, value: str) -> None:
        """Follow a variable's value as a command, if bash may run it in arithmetic or a prompt."""
        if name in _RUNS_ITS_VALUE:
            self.script(value, NO_INPUT)
        elif "$(" in value or "`" in value:
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            self.script(f': "{escaped}"', NO_INPUT)

    def _values_of(self, variable: Variable) -> tuple[str, ...]:
        if variable.subscript is not None:
            self._expander.text(variable.subscript)
        operand = self._expander.text(variable.operand) if variable.operand else ""
        values, depends = self._variables.expanded(variable, operand)
        self._uncertain = self._uncertain or depends
        return values

    def _output_of(self, substitution: Substitution) -> str:
        start = len(self.commands)
        before, uncertain, cwd = self._variables.copy(), self._uncertain, self._cwd
        self._enter()
        self._items(substitution.body, NO_INPUT, maybe=False)
        self._depth -= 1
        before.ambiguous |= self._variables.ambiguous
        self._variables, self._uncertain, self._cwd = before, uncertain, cwd
        if substitution.process:
            return "/dev/fd/63"
        items = substitution.body
        ran = self.commands[start:]
        if len(items) == 1 and ran and isinstance(last := items[0].commands[-1], Simple):
            printed = printed_by(last, ran)
            return UNKNOWN if printed is None else printed.rstrip("\n")
        return "" if not items else UNKNOWN

    # Redirections and files

    def _redirections(
        self, redirects: tuple[Redirect, ...], given: ShellInput
    ) -> tuple[tuple[Redirection, ...], ShellInput]:
        made: list[Redirection] = []
        for redirect in redirects:
            if redirect.here_document is not None:
                target = "".join(map(self._expander.text, redirect.here_document))
            elif redirect.operator == "<<<":
                target = self._expander.text(redirect.target)
            else:
                target = " ".join(self._expander.fields((redirect.target,)))
            made.append(Redirection(operator=redirect.operator, target=target))
            if redirect.descriptor not in {"", "0"}:
                continue
            if redirect.operator in {"<<", "<<-", "<<<"}:
                given = ShellInput(text=target + ("\n" if redirect.operator == "<<<" else ""), feeders=("text",))
            elif redirect.operator in {"<", "<>", "<&"}:
                given = ShellInput(text=self._files.text_of(self._cwd, target), feeders=(f"file {target}",))
        return tuple(made), given

    def _run_file(self, command: SimpleCommand, text: str, given: ShellInput) -> None:
        first = text.partition("\n")[0]
        interpreter = command.name
        if first.startswith("#!") and "/" in command.argv[0] and not interprets(interpreter):
            interpreter = first.rpartition("/")[2].split()[-1] if first.split() else ""
        if interprets(interpreter):
            self._emit(SimpleCommand(argv=(interpreter, "-c", text), written=command.written, cwd=command.cwd))
        else:
            self.script(text, given)

    def _emit(self, command: SimpleCommand) -> None:
        if len(self.commands) >= MAX_COMMANDS:
            raise Unparsable("it has too many commands to be checked")
        self.commands.append(command)

    def _emit_unknown(self, command: SimpleCommand, why: str) -> None:
        """Record that a command runs something that is not known."""
        self._emit(SimpleCommand(argv=(UNKNOWN,), written=command.written, cwd=command.cwd, unresolved=why))

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise Unparsable("it has too many commands to be checked")

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH * 2:
            raise Unparsable("it is nested too deeply")


def _loop_values(fields: list[str]) -> list[tuple[str, ...]]:
    """Return the possible values of a loop's variable. Many plain names become one pattern."""
    if len(fields) <= MAX_CHOICES:
        return [(field,) for field in fields] or [("",)]
    if all(re.fullmatch(r"(?a)[\w+@%][\w.+@%-]*", field) for field in fields):
        return [("*",)]
    return [(UNKNOWN,)]
