"""Base of the bash parser: characters, words, quotes, substitutions, redirections and here-documents."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from hermes.shell_policy.bash.ansi import decode_ansi
from hermes.shell_policy.bash.syntax import (
    UNKNOWN,
    Arithmetic,
    Literal,
    Mark,
    Part,
    Pipeline,
    Redirect,
    Substitution,
    Variable,
    Word,
)

MAX_DEPTH = 20

_PLAIN = re.compile(r"[\w./:=+@%^~\]*?\[!#-]+")
_QUOTED = re.compile(r'[^"\\$`\0]+')
_HERE = re.compile(r"[^\\$`\0]+")
_BLANK = re.compile(r"(?:[ \t]|\\\n)+")
_PARAMETER = re.compile(r"(?a)[A-Za-z_]\w*|\d+|[@*#?$!_-]")
_REDIRECT = re.compile(r"(\d+|\{\w+\})?(<<<|<<-|<<|<>|<&|>&|>>|>\||<|>)|(&>>|&>)")
_OPERATION = re.compile(r":?[-=+?]|%%?|##?|//?|\^\^?|,,?|[:@]")
_WORD_ENDS = frozenset(" \t\n;&|<>()")
_OPERAND = re.compile(r"[\w./:=+@%^~-]+")
_ANSI_QUOTED = re.compile(r"((?:[^'\\]|\\.)*)'", re.DOTALL)


class Unparsable(Exception):  # noqa: N818 - a finding about the text, not an error of the parser
    """The text is not a command line that can be followed; the message gives the reason."""


class WordParser(ABC):
    def __init__(self, text: str, depth: int, parts_left: list[int]) -> None:
        self._text = text
        self._at = 0
        self._depth = depth
        self._parts_left = parts_left  # shared with the parsers of nested texts
        self._pending: list[tuple[str, bool, bool, list[Word]]] = []  # here-documents whose body follows

    def whole(self) -> tuple[Pipeline, ...]:
        items = self._list(frozenset())
        if self._pending:
            raise Unparsable("a here-document has no body")
        return items

    @abstractmethod
    def _list(self, closers: frozenset[str], *, paren: bool = False, case: bool = False) -> tuple[Pipeline, ...]:
        """Parse the pipelines up to a closer, which is consumed; in a `case` also up to `;;`."""

    # Redirections

    def _redirects(self) -> tuple[Redirect, ...]:
        redirects: list[Redirect] = []
        self._skip_blanks()
        while self._redirect(redirects):
            self._skip_blanks()
        return tuple(redirects)

    def _redirect(self, redirects: list[Redirect]) -> bool:
        found = _REDIRECT.match(self._text, self._at)
        if found is None:
            return False
        operator = found[2] or found[3]
        if operator in {"<", ">"} and not found[1] and self._text.startswith("(", found.end()):
            return False  # a process substitution is a word
        self._at = found.end()
        self._skip_blanks()
        if not self._peek() or (self._peek() in _WORD_ENDS and not self._maybe_here()):
            raise Unparsable("a redirection has no target")
        start = self._at
        target = self._word()
        if operator in {"<<", "<<-"}:
            delimiter = "".join(part.text for part in target if isinstance(part, Literal | Mark))
            quoted = any(mark in self._text[start : self._at] for mark in "'\"\\")
            if not quoted and any(not isinstance(part, Literal | Mark) for part in target):
                raise Unparsable("a here-document's end mark is not plain")
            here: list[Word] = []
            self._pending.append((delimiter, quoted, operator == "<<-", here))
            redirects.append(Redirect(operator=operator, target=(), descriptor=found[1] or "", here_document=here))
        else:
            redirects.append(Redirect(operator=operator, target=target, descriptor=found[1] or ""))
        if operator.startswith("<<") and operator != "<<<" and self._text.find("\n", self._at) < 0:
            raise Unparsable("a here-document has no body")
        return True

    def _maybe_here(self) -> bool:
        return self._text.startswith(("<(", ">("), self._at)

    def _read_here_documents(self) -> None:
        """Read the pending here-documents. Called after the end of a line."""
        pending, self._pending = self._pending, []
        for delimiter, quoted, strip, here in pending:
            lines: list[str] = []
            while True:
                if self._at >= len(self._text):
                    raise Unparsable(f"the here-document up to {delimiter!r} has no end")
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end]
                self._at = min(end + 1, len(self._text))
                line = line.lstrip("\t") if strip else line
                if line == delimiter:
                    break
                lines.append(line)
            body = "".join(f"{line}\n" for line in lines)
            here.append(self._here_document(body, quoted=quoted))

    def _here_document(self, body: str, *, quoted: bool) -> Word:
        if quoted:
            return (Literal(text=body, quoted=True),)
        inner = type(self)(body, self._depth, self._parts_left)
        return inner._double_quoted(_HERE, "")  # noqa: SLF001 - a parser of the same class

    # Words

    def _word(self) -> Word:
        parts: list[Part] = []
        text, start = self._text, self._at
        while self._at < len(text):
            if plain := self._take(_PLAIN):
                self._add(parts, Literal(text=plain[0]))
                continue
            character = text[self._at]
            if character in _WORD_ENDS:
                if character in "<>" and text.startswith("(", self._at + 1):
                    self._at += 2
                    body = self._list(frozenset(), paren=True)
                    self._add(parts, Substitution(body=body, process=True))
                    continue
                break
            self._at += 1
            self._piece(parts, character)
        if self._at == start:
            raise Unparsable("there is an operator where a word should be")  # prevents an endless loop over words
        return tuple(parts)

    def _piece(self, parts: list[Part], character: str) -> None:
        """Parse one part after its special first character, which was consumed."""
        match character:
            case "'":
                self._add(parts, Literal(text=self._up_to("'"), quoted=True))
            case '"':
                self._add(parts, Literal(text="", quoted=True))
                parts.extend(self._double_quoted(_QUOTED, '"'))
            case "\\":
                following = self._text[self._at : self._at + 1]
                self._at += 1
                if following != "\n":
                    self._add(parts, Literal(text=following or "\\", quoted=True))
            case "$":
                self._add(parts, self._dollar(quoted=False))
            case "`":
                self._add(parts, self._backticks(quoted=False))
            case "{" | "}" | ",":
                self._add(parts, Mark(text=character))
            case "\0":
                self._add(parts, Variable(name=UNKNOWN))
            case _:
                self._add(parts, Literal(text=character))

    def _double_quoted(self, plain: re.Pattern[str], end: str) -> Word:
        parts: list[Part] = []
        while True:
            if found := self._take(plain):
                self._add(parts, Literal(text=found[0], quoted=True))
            character = self._peek()
            self._at += 1
            if character == end:  # at the end of a here-document both are empty
                return tuple(parts)
            match character:
                case "":
                    raise Unparsable("a quote has no end")
                case "\\":
                    following = self._peek()
                    self._at += 1
                    if following not in '$`"\\\n':
                        self._add(parts, Literal(text="\\" + following, quoted=True))
                    elif following != "\n":
                        self._add(parts, Literal(text=following or "\\", quoted=True))
                case "$":
                    self._add(parts, self._dollar(quoted=True))
                case "`":
                    self._add(parts, self._backticks(quoted=True))
                case _:
                    self._add(parts, Variable(name=UNKNOWN, quoted=True))

    def _dollar(self, *, quoted: bool) -> Part:
        text = self._text
        character = self._peek()
        if character == "'" and not quoted:
            self._at += 1
            return Literal(text=decode_ansi(self._ansi_quoted()), quoted=True)
        if character == '"' and not quoted:
            return Literal(text="", quoted=True)  # a translated string: the quotes come next
        if character == "(":
            return self._substitution(quoted=quoted)
        if character == "{":
            self._at += 1
            return self._braced(quoted=quoted)
        if character == "[":
            self._at += 1
            return Arithmetic(operand=self._until("]"))
        if name := _PARAMETER.match(text, self._at):
            one = name[0][:1] if name[0][0].isdigit() else name[0]
            self._at += len(one)
            return Variable(name=one, quoted=quoted)
        return Literal(text="$", quoted=quoted)

    def _substitution(self, *, quoted: bool) -> Part:
        if (operand := self._arithmetic()) is not None:
            return Arithmetic(operand=operand)
        self._at += 1
        return Substitution(body=self._list(frozenset(), paren=True), quoted=quoted)

    def _backticks(self, *, quoted: bool) -> Part:
        characters: list[str] = []
        escapes = '$`\\"' if quoted else "$`\\"
        while (character := self._peek()) != "`":
            if not character:
                raise Unparsable("a backtick has no end")
            following = self._text[self._at + 1 : self._at + 2]
            if character == "\\" and following and following in escapes:
                character = following
                self._at += 1
            elif character == "\\" and following:
                character += following
                self._at += 1
            characters.append(character)
            self._at += 1
        self._at += 1
        inner = type(self)("".join(characters), self._depth + 1, self._parts_left)
        return Substitution(body=inner.whole(), quoted=quoted)

    def _braced(self, *, quoted: bool) -> Part:
        text = self._text
        if self._peek() in {" ", "\n", "\t", "|"}:  # runs in the current shell
            self._at += 1
            return Substitution(body=self._list(frozenset({"}"})), quoted=quoted)
        prefix = ""
        if self._peek() in {"!", "#"} and text[self._at + 1 : self._at + 2] not in {"}", ""}:
            prefix = self._peek()
            self._at += 1
        name = self._take(_PARAMETER)
        if name is None:
            raise Unparsable("a ${ has no name")
        subscript: Word | None = None
        if self._peek() == "[":
            self._at += 1
            subscript = self._until("]")
        operation = prefix
        if found := self._take(_OPERATION):
            operation += found[0]
        operand = self._until("}", quoted=quoted)
        return Variable(name=name[0], operation=operation, operand=operand, subscript=subscript, quoted=quoted)

    def _until(self, end: str, *, quoted: bool = False) -> Word:
        """Parse the parts up to a closing character, which is consumed; blanks and operators are plain text there."""
        self._enter()
        parts: list[Part] = []
        while (character := self._peek()) != end:
            if not character:
                raise Unparsable(f"there is no closing {end!r}")
            if plain := self._take(_OPERAND):
                self._add(parts, Literal(text=plain[0]))
                continue
            self._at += 1
            if character == "'" and quoted:
                self._add(parts, Literal(text=character))
            else:
                self._piece(parts, character)
        self._at += 1
        self._depth -= 1
        return tuple(parts)

    def _arithmetic(self) -> Word | None:
        """Parse `(( ... ))`; None, with nothing consumed, if there is none or its brackets are nested subshells."""
        if not self._text.startswith("((", self._at):
            return None
        start = self._at
        self._at += 2
        self._enter()
        parts: list[Part] = []
        open_brackets = 0
        while character := self._peek():
            self._at += 1
            if character == "(":
                open_brackets += 1
            elif character == ")" and open_brackets:
                open_brackets -= 1
            elif character == ")":
                self._depth -= 1
                if self._peek() != ")":
                    self._at = start
                    return None
                self._at += 1
                return tuple(parts)
            else:
                self._piece(parts, character)
        raise Unparsable("a (( has no end")

    # Characters

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Consume what matches here."""
        if found := pattern.match(self._text, self._at):
            self._at = found.end()
        return found

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _at_word_start(self) -> bool:
        return self._at == 0 or self._text[self._at - 1] in _WORD_ENDS

    def _up_to(self, end: str) -> str:
        found = self._text.find(end, self._at)
        if found < 0:
            raise Unparsable("a quote has no end")
        text, self._at = self._text[self._at : found], found + 1
        return text

    def _ansi_quoted(self) -> str:
        found = self._take(_ANSI_QUOTED)
        if found is None:
            raise Unparsable("a quote has no end")
        return found[1]

    def _skip_blanks(self) -> None:
        self._take(_BLANK)

    def _skip_lines(self) -> None:
        while True:
            self._skip_blanks()
            character = self._peek()
            if character == "#" and self._at_word_start():
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif character == "\n":
                self._at += 1
                self._read_here_documents()
            else:
                return

    def _add(self, parts: list[Part], part: Part) -> None:
        self._parts_left[0] -= 1
        if self._parts_left[0] < 0:
            raise Unparsable("it is too long to be checked")
        parts.append(part)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unparsable("it is nested too deeply")
