"""What a bash command line is made of, as values: words of parts, simple and compound commands, pipelines."""

from __future__ import annotations

from typing import TypeAlias

from hermes.domain.values import dataclass

UNKNOWN = "\0"  # stands for text that only the running shell knows; bash itself cannot hold a NUL
ANY_DEPTH = UNKNOWN * 2  # as a part of a path: any directories, as `find` goes through them


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An unquoted brace or comma: it may belong to a brace expansion."""

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
    words: tuple[Word, ...]  # more or less than one only for an array
    append: bool = False
    subscript: Word | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    operator: str
    target: Word
    descriptor: str = ""
    here_document: list[Word] | None = None  # its body, once the parser came to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    assigned: tuple[Assigned, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]
    written: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compound:
    """A group, subshell, loop, condition or `case`: all its lists in the order they are written."""

    kind: str  # its first word
    body: tuple[Pipeline, ...]
    words: tuple[Word, ...] = ()  # what a loop goes over, what a test compares
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
    """A vocabulary, written as one text."""
    return frozenset(text.split())
