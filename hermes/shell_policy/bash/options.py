"""Options of a command as pairs of name and value: bundles taken apart, shortened long names completed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from hermes.shell_policy.rules.program_table import Program

Option: TypeAlias = tuple[str, str]  # the name is empty for an operand


def parse_options(arguments: tuple[str, ...], program: Program) -> Iterator[Option]:
    """Yield every option and operand. Where two readings are possible, yield both."""
    index, only_operands = 0, False
    while index < len(arguments):
        argument, following = arguments[index], arguments[index + 1 : index + 2]
        index += 1
        if only_operands or not argument.startswith("-") or argument == "-":
            if index == 1 and program.bare_bundle:
                yield from _old_bundle(argument, arguments[index:], program)
            yield "", argument
        elif argument == "--":
            only_operands = True
        elif argument.startswith("--") or program.single_dash:
            name, value, takes = _long(argument, "".join(following), program)
            yield name, value
            if not takes and not argument.startswith("--"):
                yield from _bundle(argument, following, program)
            index += takes
        else:
            if program.bare_bundle:
                yield from _old_bundle(argument[1:], arguments[index:], program)
            yield from _bundle(argument, following, program)
            index += _wants_value(argument[1:], program)


def _long(argument: str, following: str, program: Program) -> tuple[str, str, bool]:
    given, equals, value = argument.lstrip("-").partition("=")
    if given in program.long_names or len(given) < 2:
        name = given
    else:
        name = next((each for each in program.dangerous if each.startswith(given)), given)
    takes = not equals and name in program.takes_value
    return name, following if takes else value, takes


def _bundle(argument: str, following: tuple[str, ...], program: Program) -> Iterator[Option]:
    letters = argument[1:]
    for position, letter in enumerate(letters):
        if letter in program.valued:
            yield letter, letters[position + 1 :] or "".join(following)
            return
        yield letter, ""


def _wants_value(letters: str, program: Program) -> bool:
    """Return whether the first letter that takes a value is the last one, so that the value is the next argument."""
    at = next((at for at, letter in enumerate(letters) if letter in program.valued), None)
    return at is not None and at == len(letters) - 1


def _old_bundle(letters: str, following: tuple[str, ...], program: Program) -> Iterator[Option]:
    """`tar xfC file directory`: each letter that takes a value takes the next argument."""
    if not letters.isalpha() or len(letters) > 12:
        return
    values = iter(following)
    for letter in letters:
        yield letter, next(values, "") if letter in program.valued else ""
