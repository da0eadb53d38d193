"""Syntax tree of a bash command line: words, simple and compound commands, pipelines."""

from __future__ import annotations

from typing import TypeAlias

from hermes.domain.values import dataclass

UNKNOWN = "\0"  # text that is only known at run time; bash strings cannot contain NUL
ANY_DEPTH = UNKNOWN * 2  # part of a path: any directories, as `find` visits them


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An unquoted brace or comma that may belong to a brace expansion."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    name: str
    operation: str = ""  # of `${name:-operand}`: the characters between the name and the operand
    operand: Word = ()
    subscript: Word | None = None
    quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitution:
    """`$(...)`, backticks, `<(...)` or `>(...)`."""

    body: tuple[Pipeline, ...]
    quoted: bool = False
    process: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    operand: Word


Part: TypeAlias = Literal | Mark | Variable | Substitution | Arithmetic
Word: TypeAlias = tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    name: str
    words: tuple[Word, ...]  # exactly one, except for an array
    append: bool = False
    subscript: Word | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    operator: str
    target: Word
    descriptor: str = ""
    here_document: list[Word] | None = None  # its body, filled in later by the parser


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    assigned: tuple[Assigned, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]
    written: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compound:
    """A group, subshell, loop, condition or `case`: all its lists in written order."""

    kind: str  # its first word
    body: tuple[Pipeline, ...]
    words: tuple[Word, ...] = ()  # values of a loop, operands of a test
    variable: str = ""  # of a loop
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    name: str
    body: Command


Command: TypeAlias = Simple | Compound | Function


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """One pipeline of a list."""

    commands: tuple[Command, ...]
    after: str  # the operator before it: `;`, `&&` or `||`
    background: bool = False


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())
