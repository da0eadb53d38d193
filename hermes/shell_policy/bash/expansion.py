"""Expansion of words before a command runs: braces, tildes, variables and substitutions, as far as known.

What it does not tell becomes UNKNOWN. The number of fields and their length are bounded; beyond that they are
UNKNOWN too.
"""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from itertools import pairwise

from hermes.shell_policy.bash.ansi import decode_ansi
from hermes.shell_policy.bash.syntax import UNKNOWN, Arithmetic, Literal, Mark, Part, Substitution, Variable, Word

MAX_FIELDS = 64
MAX_VALUE = 512  # characters of a value that patterns are tried on
MAX_LENGTH = 128 * 1024
_SEQUENCE = re.compile(r"(-?\d{1,9}|[A-Za-z])\.\.(-?\d{1,9}|[A-Za-z])(?:\.\.-?\d{1,9})?")
_FORMAT = re.compile(r"%(?:(%)|([sbcq])|[^%])")


def expand_braces(word: Word) -> list[Word]:
    """Expand braces: `{a,b}c` becomes two words. Braces without a comma or sequence stay."""
    if not any(isinstance(part, Mark) and part.text == "{" for part in word):
        return [word]
    done: list[Word] = []
    todo = [word]
    while todo:
        current = todo.pop()
        if len(done) + len(todo) > MAX_FIELDS:
            return [(Variable(name=UNKNOWN),)]
        if choices := _innermost(current):
            todo.extend(reversed(choices))
        else:
            done.append(current)
    return done


def _innermost(word: Word) -> list[Word]:
    """Return the words after expanding the first innermost brace."""
    opened: int | None = None
    for index, part in enumerate(word):
        if not isinstance(part, Mark):
            continue
        if part.text == "{":
            opened = index
        elif part.text == "}" and opened is not None:
            if inner := _choices(word[opened + 1 : index]):
                return [(*word[:opened], *choice, *word[index + 1 :]) for choice in inner]
            opened = None
    return []


def _choices(inner: Word) -> list[Word]:
    commas = [index for index, part in enumerate(inner) if isinstance(part, Mark) and part.text == ","]
    if commas:
        edges = [-1, *commas, len(inner)]
        return [inner[start + 1 : end] for start, end in pairwise(edges)]
    text = "".join(part.text for part in inner if isinstance(part, Literal))
    if len(inner) == 1 and (found := _SEQUENCE.fullmatch(text)):
        return [(Literal(text=each, quoted=True),) for each in _sequence(found[1], found[2])]
    return []


def _sequence(first: str, last: str) -> list[str]:
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit():
        low, high = sorted((int(first), int(last)))
        return [str(number) for number in range(low, high + 1)] if high - low < MAX_FIELDS else ["[0-9]*"]
    if first.isalpha() and last.isalpha():
        low, high = sorted((ord(first), ord(last)))
        return [chr(code) for code in range(low, high + 1)]
    return [UNKNOWN]


class Expander:
    """Expands words to fields with the given lookups of variables and substitutions."""

    def __init__(
        self,
        *,
        home: str,
        variable: Callable[[Variable], tuple[str, ...]],
        substitution: Callable[[Substitution], str],
        separators: Callable[[], str],
        overflow: Callable[[], None],
    ) -> None:
        self._home = home
        self._variable = variable
        self._substitution = substitution
        self._separators = separators
        self._overflow = overflow  # called when a value is longer than can be checked

    def fields(self, words: tuple[Word, ...]) -> list[str]:
        return [field for word in words for each in expand_braces(word) for field in self._split(each)]

    def text(self, word: Word) -> str:
        """Return one text without field splitting, as in an assignment or a here-document."""
        pieces = []
        for index, part in enumerate(word):
            values, _ = self._values(part, first=index == 0)
            pieces.append(" ".join(values))
        return self._bounded("".join(pieces))

    def _split(self, word: Word) -> list[str]:
        fields: list[str] = []
        current = ""
        begun = False
        for index, part in enumerate(word):
            values, quoted = self._values(part, first=index == 0)
            if quoted:
                for number, value in enumerate(values):
                    if number:
                        fields.append(current)
                        current = ""
                    current += value
                begun = begun or bool(values)
                continue
            text = " ".join(values)
            pieces = _pieces(text, self._separators())
            for number, piece in enumerate(pieces):
                if number and (current or begun):
                    fields.append(current)
                    current, begun = "", False
                current += piece
        if current or begun:
            fields.append(current)
        return [self._bounded(field) for field in fields]

    def _bounded(self, text: str) -> str:
        if len(text) <= MAX_LENGTH:
            return text
        self._overflow()
        return UNKNOWN

    def _values(self, part: Part, *, first: bool) -> tuple[tuple[str, ...], bool]:
        """Return the part's texts, and whether they are quoted."""
        match part:
            case Literal(text=text, quoted=quoted):
                return (self._tilde(text) if first and not quoted else text,), True
            case Mark(text=text):
                return (text,), True
            case Variable():
                return self._variable(part), part.quoted
            case Substitution():
                return (self._substitution(part),), part.quoted
            case Arithmetic(operand=operand):
                self.text(operand)  # for the substitutions that it runs
                return (UNKNOWN,), True

    def _tilde(self, text: str) -> str:
        if not text.startswith("~"):
            return text
        user, slash, rest = text[1:].partition("/")
        if user == "":
            return self._home + slash + rest
        if user in {"+", "-"}:
            return UNKNOWN + slash + rest
        return ("/root" if user == "root" else f"/home/{user}") + slash + rest


def _pieces(text: str, separators: str) -> list[str]:
    """Split at separators; a separator at an edge gives an empty piece."""
    if not any(separator in text for separator in separators):
        return [text]
    return re.split(f"[{re.escape(separators)}]+", text)


def changed_value(value: str, operation: str, operand: str) -> str:
    """Return the result of `${name%operand}` and similar operations on a known value."""
    if UNKNOWN in value + operand or len(value) > MAX_VALUE:
        return UNKNOWN
    ends = range(len(value) + 1)
    match operation:
        case "%" | "%%":
            cuts = ends if operation == "%%" else reversed(ends)
            return next((value[:at] for at in cuts if fnmatchcase(value[at:], operand)), value)
        case "#" | "##":
            cuts = reversed(ends) if operation == "##" else ends
            return next((value[at:] for at in cuts if fnmatchcase(value[:at], operand)), value)
        case ":" if found := re.fullmatch(r"\s*(\d{1,4})(?::(\d{1,4}))?", operand):
            return value[int(found[1]) :][: int(found[2]) if found[2] else None]
        case "/" | "//" if not re.search(r"[*?\[\\]", operand):
            old, _, new = operand.partition("/")
            return value.replace(old, new, 1 if operation == "/" else -1) if old else value
        case "^^" | ",,":
            return value.upper() if operation == "^^" else value.lower()
        case _:
            return UNKNOWN


def _decoded(name: str, arguments: tuple[str, ...], stdin: str) -> str | None:
    given = set(arguments)
    files = [each for each in arguments if not each.startswith("-")]
    try:
        if name == "openssl" and given & {"base64", "-base64", "-a"} and "-d" in given:
            raw = base64.b64decode(stdin)
        elif name == "xxd" and any(re.match(r"-[a-z]*r", each) for each in arguments):
            raw = bytes.fromhex("".join(stdin.split()))
        elif files and files != ["-"]:
            return None
        elif name in {"base64", "gbase64"} and any(re.match(r"-[a-z]*[dD]|--d", each) for each in arguments):
            raw = base64.b64decode("".join(stdin.split()) + "==")
        elif name == "base32" and any(re.match(r"-[a-z]*d|--d", each) for each in arguments):
            raw = base64.b32decode("".join(stdin.split()))
        elif name == "rev" and not arguments:
            return "\n".join(line[::-1] for line in stdin.split("\n"))
        else:
            return None
    except ValueError:
        return None
    return raw.decode("utf-8", "replace").replace(UNKNOWN, "")


def static_output(argv: tuple[str, ...], stdin: str | None) -> str | None:
    """Return a command's output if its arguments determine it."""
    name, arguments = argv[0].rpartition("/")[2] if argv else "", argv[1:]
    match name:
        case "echo":
            escapes = False
            while arguments and re.fullmatch(r"-[neE]+", arguments[0]):
                escapes = escapes or "e" in arguments[0]
                arguments = arguments[1:]
            text = " ".join(arguments)
            return decode_ansi(text) if escapes else text
        case "printf" if arguments and arguments[0] != "-v":
            arguments = arguments[1:] if arguments[0] == "--" else arguments
            return _printf(arguments[0], list(arguments[1:])) if arguments else ""
        case "cat" | "tee" if not [each for each in arguments if not each.startswith("-")] or name == "tee":
            return stdin
        case "base64" | "gbase64" | "base32" | "xxd" | "openssl" | "rev" if (
            stdin is not None and UNKNOWN not in stdin
        ):
            return _decoded(name, arguments, stdin)
        case "dirname" if len(arguments) == 1 and UNKNOWN not in arguments[0]:
            return posixpath.dirname(arguments[0]) or "."
        case "basename" if len(arguments) == 1:
            return posixpath.basename(arguments[0])
        case "which" | "type" if arguments:
            return arguments[-1]
        case "command" if len(arguments) > 1 and arguments[0] in {"-v", "-V"}:
            return arguments[-1]
        case _:
            return None


def _printf(form: str, arguments: list[str]) -> str:
    form = decode_ansi(form)
    takes = [found for found in _FORMAT.finditer(form) if not found[1]]
    pieces: list[str] = []

    def one(found: re.Match[str]) -> str:
        if found[1]:
            return "%"
        value = arguments.pop(0) if arguments else ""
        if not found[2]:
            return UNKNOWN
        return decode_ansi(value) if found[2] == "b" else value[:1] if found[2] == "c" else value

    for _ in range(MAX_FIELDS):
        pieces.append(_FORMAT.sub(one, form))
        if not arguments or not takes:
            return "".join(pieces)
    return UNKNOWN
