"""Parser of bash command lines: lists, pipelines and commands.

It follows bash where that decides what runs, and is lenient where bash would only report an error. Text that it
cannot follow raises Unparsable: a line that is not understood never counts as harmless. Work is limited by a number
of parts and a depth, both far above what people write.
"""

from __future__ import annotations

import re

from hermes.shell_policy.bash.syntax import (
    Assigned,
    Command,
    Compound,
    Function,
    Literal,
    Mark,
    Pipeline,
    Redirect,
    Simple,
    Variable,
    Word,
)
from hermes.shell_policy.bash.word_grammar import Unparsable, WordParser

MAX_PARTS = 2_500

_NAME = re.compile(r"(?a)[A-Za-z_]\w*")
_ASSIGNMENT = re.compile(r"(?a)([A-Za-z_]\w*)(\+?)=")
_SUBSCRIPTED = re.compile(r"(?a)([A-Za-z_]\w*)\[")
_RESERVED = re.compile(
    r"(if|then|elif|else|fi|while|until|do|done|for|select|case|esac|function|time|coproc|\{|\}|!|\[\[)"
    r"(?=[ \t\n;&|()<>]|\Z)"
)
_SKIPPED = frozenset({"then", "elif", "else", "do", "!", "time", "coproc"})
_CLOSER = {"if": "fi", "while": "done", "until": "done", "for": "done", "select": "done", "{": "}"}
_WORD_ENDS = frozenset(" \t\n;&|<>()")
_BRACKETS = re.compile(r"\([ \t\n]*\)")
_IN = re.compile(r"in(?=[ \t\n;])")
_ESAC = re.compile(r"esac(?=[ \t\n;&|()<>]|\Z)")
_TEST_END = re.compile(r"\]\](?=[ \t\n;&|()<>]|\Z)")
_CASE_END = re.compile(r";;&|;;|;&")
_APPEND = re.compile(r"(\+?)=")
_OPERATOR = re.compile(r"&&|\|\||&")
_TIME_OPTION = re.compile(r"[ \t]+(?:-p|--)(?=[ \t\n])")


def parse_list(text: str, depth: int = 0, parts: list[int] | None = None) -> tuple[Pipeline, ...]:
    return BashParser(text, depth, parts if parts is not None else [MAX_PARTS]).whole()


class BashParser(WordParser):
    # Lists and pipelines

    def _list(self, closers: frozenset[str], *, paren: bool = False, case: bool = False) -> tuple[Pipeline, ...]:
        """Parse the pipelines up to a closer, which is consumed; in a `case` also up to `;;`."""
        self._enter()
        items: list[Pipeline] = []
        after = ";"
        while not self._at_list_end(closers, paren=paren, case=case):
            if self._peek() in ";&" and not self._text.startswith("&>", self._at):
                self._at += 1
                after = ";"
            elif skipped := self._skip_reserved():
                after = "||" if skipped in {"elif", "else", "then", "do"} else after
            else:
                commands = self._pipeline()
                operator = self._operator()
                items.append(Pipeline(commands=commands, after=after, background=operator == "&"))
                after = operator if operator in {"&&", "||"} else ";"
        self._depth -= 1
        return tuple(items)

    def _at_list_end(self, closers: frozenset[str], *, paren: bool, case: bool) -> bool:
        """Return whether the list ends here, and consume the closer unless it belongs to a `case`."""
        self._skip_lines()
        character = self._peek()
        if not character:
            if closers or paren:
                raise Unparsable("it ends in the middle of a command")
            return True
        if character == ")":
            if not paren:
                raise Unparsable("it closes a bracket that was not opened")
            self._at += 1
            return True
        if case and self._text.startswith((";;", ";&"), self._at):
            return True
        reserved = _RESERVED.match(self._text, self._at)
        if reserved is None or reserved[1] not in closers:
            return False
        if not case:
            self._at = reserved.end()
        return True

    def _skip_reserved(self) -> str:
        """Skip a reserved word that only introduces a list and return it; else return nothing."""
        reserved = _RESERVED.match(self._text, self._at)
        if reserved is None:
            return ""
        word = reserved[1]
        if word in _SKIPPED:
            self._skip_word(reserved)
            return word
        if word in {"fi", "done", "esac", "}"}:
            raise Unparsable(f"there is a {word!r} that closes nothing")
        return ""

    def _pipeline(self) -> tuple[Command, ...]:
        commands = [self._command()]
        while True:
            self._skip_blanks()
            if self._peek() != "|" or self._text.startswith("||", self._at):
                return tuple(commands)
            self._at += 2 if self._text.startswith("|&", self._at) else 1
            self._skip_lines()
            while (reserved := _RESERVED.match(self._text, self._at)) and reserved[1] in _SKIPPED:
                self._skip_word(reserved)
                self._skip_lines()
            if not self._peek():
                raise Unparsable("it ends after a pipe")
            commands.append(self._command())

    def _skip_word(self, reserved: re.Match[str]) -> None:
        self._at = reserved.end()
        while reserved[1] == "time" and self._take(_TIME_OPTION):
            pass

    def _operator(self) -> str:
        self._skip_blanks()
        found = self._take(_OPERATOR)
        return found[0] if found else self._peek()

    # Commands

    def _command(self) -> Command:
        if self._peek() == "(":
            return self._bracketed()
        reserved = _RESERVED.match(self._text, self._at)
        if reserved is None:
            return self._simple()
        word = reserved[1]
        self._at = reserved.end()
        match word:
            case "{" | "if" | "while" | "until":
                body = self._list(frozenset({_CLOSER[word]}))
                return Compound(kind=word, body=body, redirects=self._redirects())
            case "for" | "select":
                return self._loop(word)
            case "case":
                return self._case()
            case "[[":
                return self._test()
            case "function":
                self._skip_blanks()
                name = self._word()
                self._skip_blanks()
                self._take(_BRACKETS)
                return self._function(name)
        raise Unparsable(f"there is a {word!r} in an odd place")

    def _bracketed(self) -> Command:
        if (operand := self._arithmetic()) is not None:
            return Compound(kind="((", body=(), words=(operand,), redirects=self._redirects())
        self._at += 1
        body = self._list(frozenset(), paren=True)
        return Compound(kind="(", body=body, redirects=self._redirects())

    def _loop(self, kind: str) -> Command:
        self._skip_blanks()
        words: list[Word] = []
        variable = ""
        if (operand := self._arithmetic()) is not None:
            words.append(operand)
        elif name := self._take(_NAME):
            variable = name[0]
            self._skip_lines()
            words += self._words() if self._take(_IN) else [(Variable(name="@", quoted=True),)]
        else:
            raise Unparsable("a loop has no variable")
        body = self._list(frozenset({"done"}))
        return Compound(kind=kind, body=body, words=tuple(words), variable=variable, redirects=self._redirects())

    def _case(self) -> Command:
        self._skip_blanks()
        words = [self._word()]
        self._skip_lines()
        if not self._take(_IN):
            raise Unparsable("a case has no 'in'")
        body: list[Pipeline] = []
        while True:
            self._skip_lines()
            if self._take(_ESAC):
                return Compound(kind="case", body=tuple(body), words=tuple(words), redirects=self._redirects())
            if self._peek() == "(":
                self._at += 1
            while self._peek() != ")":
                self._skip_lines()
                if not self._peek():
                    raise Unparsable("a case has no end")
                if self._peek() == "|":
                    self._at += 1
                elif self._peek() != ")":
                    words.append(self._word())
            self._at += 1
            body.extend(self._list(frozenset({"esac"}), case=True))
            self._take(_CASE_END)

    def _test(self) -> Command:
        """Parse `[[ ... ]]`; only its substitutions matter."""
        words: list[Word] = []
        while True:
            self._skip_lines()
            if self._take(_TEST_END):
                return Compound(kind="[[", body=(), words=tuple(words), redirects=self._redirects())
            if not self._peek():
                raise Unparsable("a [[ has no end")
            if self._peek() in "()<>&|;" and not self._text.startswith(("<(", ">("), self._at):
                self._at += 1
            else:
                words.append(self._word())

    def _function(self, name: Word) -> Command:
        self._enter()
        self._skip_lines()
        if not self._peek():
            raise Unparsable("a function has no body")
        text = "".join(part.text for part in name if isinstance(part, Literal | Mark))
        made = Function(name=text, body=self._command())
        self._depth -= 1
        return made

    def _simple(self) -> Command:
        start = self._at
        assigned: list[Assigned] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self._skip_blanks()
            if self._redirect(redirects):
                continue
            character = self._peek()
            if not character or character in "\n;&|)" or (character == "#" and self._at_word_start()):
                break
            if character == "(":
                if len(words) == 1 and not assigned and not redirects and self._take(_BRACKETS):
                    return self._function(words[0])
                raise Unparsable("there is a bracket in an odd place")
            if not words and (made := self._assignment()):
                assigned.append(made)
                continue
            words.append(self._word())
        self._parts_left[0] -= 3  # a command costs more than its words
        if self._at == start:
            raise Unparsable("there is an operator without a command")
        return Simple(
            assigned=tuple(assigned),
            words=tuple(words),
            redirects=tuple(redirects),
            written=self._text[start : self._at].strip(),
        )

    def _assignment(self) -> Assigned | None:
        start = self._at
        subscript: Word | None = None
        if found := self._take(_SUBSCRIPTED):
            subscript = self._until("]")
            equals = self._take(_APPEND)
            if equals is None:
                self._at = start
                return None
            name, append = found[1], bool(equals[1])
        elif found := self._take(_ASSIGNMENT):
            name, append = found[1], bool(found[2])
        else:
            return None
        if self._peek() == "(":
            self._at += 1
            return Assigned(name=name, words=tuple(self._array()), append=append, subscript=subscript)
        value = self._word() if self._peek() and self._peek() not in _WORD_ENDS else self._maybe_process()
        return Assigned(name=name, words=(value,), append=append, subscript=subscript)

    def _maybe_process(self) -> Word:
        return self._word() if self._text.startswith(("<(", ">("), self._at) else ()

    def _array(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self._skip_lines()
            if not self._peek():
                raise Unparsable("an array has no end")
            if self._peek() == ")":
                self._at += 1
                return words
            if self._peek() in _WORD_ENDS and not self._text.startswith(("<(", ">("), self._at):
                raise Unparsable("there is an operator in an array")
            words.append(self._word())

    def _words(self) -> list[Word]:
        """Parse words up to the end of the line or a semicolon."""
        words: list[Word] = []
        while True:
            self._skip_blanks()
            if not self._peek() or self._peek() in "\n;":
                return words
            if self._peek() in "&|()" or (self._peek() in "<>" and self._text[self._at + 1 : self._at + 2] != "("):
                raise Unparsable("there is an operator in a loop's list")
            words.append(self._word())
